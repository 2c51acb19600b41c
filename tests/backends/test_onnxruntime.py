"""The backend onnxruntime: what it takes builds and gives what TVM gives; what it leaves does not
build."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tvm")
pytest.importorskip("onnxruntime")

import byocviz
from byocviz import backends
from byocviz.backends.onnxruntime import _runs
from byocviz.building.errors import BuildError
from byocviz.building.lower import check, converters, lower
from byocviz.building.module import build_module
from byocviz.building.runtimes import get
from byocviz.errors import MissingPackage
from byocviz.flow.relax.compat import attribute
from byocviz.flow.relax.verify import run_module, seeded_inputs
from byocviz.models import ssd
from byocviz.recording import PrunePolicy, Recording
from tests.building.lower.lab import Arg, Cases, T, build, difference
from tests.building.lower.lab import Case as CallCase
from tests.building.lower.test_coverage import cases
from tests.corpus import CASES, Case
from tests.flow.relax.properties import check_all, check_calls

DTYPES = (
    "float16", "bfloat16", "float64", "int8", "uint8", "int16", "uint16", "int32", "int64",
    "uint32", "uint64", "bool",
)  # fmt: skip


def recorded(mod: Any, entry: str = "main") -> Recording:
    return byocviz.record(mod, "onnxruntime", entry=entry, progress=False)


def test_it_has_a_rule_for_every_converter() -> None:
    backend = backends.get("onnxruntime")
    wanted = [f"onnxruntime.{name.removeprefix('relax.')}" for name in converters()]
    assert [rule.name for rule in backend.rules()] == wanted
    assert backend.prune == PrunePolicy()
    assert backend.lowerable() is backend
    assert "onnxruntime" in backends.names()


@pytest.mark.thinned(3)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_module_gives_what_tvm_gives(case: Case) -> None:
    recording = recorded(case.build(), case.entry)
    check_all(recording)
    check_calls(recording)
    assert recording.failed is None
    modules = recording.__dict__["modules"]
    for _, function in modules["prune"].functions_items():
        if attribute(function, "Codegen") == "onnxruntime":
            assert check(function) == []
    codes = {r.code for r in recording.last.reasons.values()}
    assert codes <= {"no-rule", "no-tensor", "already-lowered", "not-lowerable", "not-in-dataflow"}
    others = {s.backend for s in recording.last.subgraphs} - {"onnxruntime"}
    if not recording.last.profile.offloaded_ops or others:
        return
    inputs = seeded_inputs(modules["import"], case.entry, seed=3)
    wanted = run_module(modules["import"], case.entry, inputs)
    built = build_module(modules["prune"], "onnxruntime", "onnxruntime", entry=case.entry)
    loose = 2e-2 if "float16" in case.tags else 1e-4
    for given, want in zip(built.run(inputs), wanted, strict=True):
        assert difference(np.asarray(given.numpy()), want, loose) == ""


def test_the_whole_ssd_runs_in_onnx_runtime() -> None:
    """All of it is one subgraph, the non-maximum suppression included, and finds the same."""
    from PIL import Image

    recording = recorded(ssd.load())
    assert recording.last.profile.coverage_ops == 1
    assert [s.ops["relax.vision.all_class_non_max_suppression"]
            for s in recording.last.subgraphs] == [1]  # fmt: skip
    modules = recording.__dict__["modules"]
    built = build_module(modules["prune"], "onnxruntime", "onnxruntime")
    photo = ssd.photos()["coffee"]
    inputs = [ssd.preprocess(photo)]
    given = [np.asarray(v.numpy()) for v in built.run(inputs)]
    wanted = run_module(modules["import"], "main", inputs)
    for a, b in zip(given[:2], wanted[:2], strict=True):
        assert difference(a, b, 1e-4) == ""
    count = len(wanted[2])
    np.testing.assert_array_equal(given[2][:count], wanted[2])
    assert (given[2][count:] == -1).all(), "rows that pad it to the shape that Relax states"
    with Image.open(photo) as opened:
        found, true = (ssd.postprocess(outputs, opened.size) for outputs in (given, wanted))
    assert [d.label for d in found] == [d.label for d in true]
    assert found
    for one, other in zip(found, true, strict=True):
        assert one.score == pytest.approx(other.score, abs=1e-4)
        assert one.box == pytest.approx(other.box, abs=0.05)


def other_types() -> Iterator[CallCase]:
    """The first case of each operator with floats, in every other element type."""
    seen: set[str] = set()
    for case in cases():
        name = case.name.partition("(")[0]
        reduction = next((a for a in case.args if a in ("add", "mul")), "")
        if (name + reduction) in seen or not any(_is_float(a) for a in _flat(case.args)):
            continue
        seen.add(name + reduction)
        for dtype in DTYPES:
            yield dataclasses.replace(
                case,
                name=f"{dtype} {case.name}",
                args=_as(case.args, dtype),
                kwargs={key: _as(value, dtype) for key, value in case.kwargs.items()},
            )


def _is_float(arg: Any) -> bool:
    return isinstance(arg, Arg) and arg.dtype == "float32"


def _flat(args: Any) -> list[Any]:
    return [x for a in args for x in (_flat(a) if isinstance(a, (list, tuple)) else [a])]


def _as(arg: Any, dtype: str) -> Any:
    if isinstance(arg, (list, tuple)):
        return [_as(a, dtype) for a in arg]
    if not _is_float(arg):
        return arg
    return dataclasses.replace(arg, dtype=dtype)


def _given(value: Any, divides: bool) -> Any:
    """An input; an integer that something is divided by is not 0."""
    array = np.asarray(value)
    return np.where(array == 0, array.dtype.type(1), array) if divides else array


def test_what_it_takes_runs_and_what_has_no_kernel_does_not_build() -> None:
    runtime = get("onnxruntime")
    seen = {"taken": 0, "no-kernel": 0, "not-lowerable": 0}
    for case in other_types():
        try:
            mod, values, _ = build([case])
        except Exception:
            continue  # Relax itself does not take the type
        refusal = _runs(mod["main"])
        seen["taken" if refusal is None else refusal.code] += 1
        if refusal is None:
            engine = runtime.build(lower(mod["main"]), {"threads": 1})
            divides = "div" in case.name or "mod" in case.name
            engine.run([_given(value, divides) for value in values])
        elif refusal.code == "not-lowerable":
            assert check(mod["main"]), case.name
        elif "reduction" not in dict(refusal.evidence)["said"]:
            with pytest.raises(BuildError):
                runtime.build(lower(mod["main"]), {"threads": 1})
    assert min(seen.values()) > 20, seen


def test_what_onnx_runtime_refuses_only_when_it_runs_is_refused_before() -> None:
    from tvm import relax

    from byocviz.building.errors import EngineError

    made = Cases()
    made(relax.op.scatter_nd, T(4, dtype="float16"), T(2, 1, dtype="int64", low=0, high=3),
         T(2, dtype="float16"), "add")  # fmt: skip
    mod, values, _ = build(made)
    refusal = _runs(mod["main"])
    assert refusal is not None
    assert refusal.code == "no-kernel"
    engine = get("onnxruntime").build(lower(mod["main"]))
    with pytest.raises(EngineError):
        engine.run(values)


def test_the_reason_names_the_operator_and_the_types() -> None:
    from tvm import relax

    made = Cases()
    made(relax.op.nn.conv2d, T(1, 2, 4, 4, dtype="float64"), T(2, 2, 1, 1, dtype="float64"))
    (reason,) = recorded(build(made)[0]).last.reasons.values()
    assert reason.code == "no-kernel"
    assert reason.rule == "onnxruntime.nn.conv2d"
    assert "relax.nn.conv2d" in reason.text
    assert "float64" in reason.text
    assert reason.mend
    assert reason.evidence["said"]


def test_without_onnx_runtime_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingPackage, match="onnxruntime"):
        backends.get("onnxruntime").rules()
