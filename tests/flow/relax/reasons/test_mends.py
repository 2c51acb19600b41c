"""A mend that a script can carry out helps: what it is offered for is gone when it is done."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("tvm")

from tvm import relax

import byocviz
from byocviz.recording import Recording
from tests.corpus import CASES, Case, by_name
from tests.corpus.case import const, flow

NAMES = {"relax": relax}
NUMBER = 6
"""What stands for a dimension that a mend leaves to the person."""

Record = Callable[..., Recording]


def _rule(mod: Any, mend: str, record: Record) -> Recording:
    call = mend.partition("run it: ")[2].partition("; `blockers()`")[0]
    imports, _, made = call.partition("; ")
    names = {"byocviz": byocviz}
    exec(imports, names)
    return record(mod, backend=eval(made, names))


def _passes(mod: Any, mend: str, record: Record) -> Recording:
    for found in re.findall(r"relax\.transform\.\w+\(.*?\)", mend):
        mod = eval(found, {**NAMES, "number": NUMBER})(mod)
    return record(mod, prepare=True) if "prepare=True" in mend else record(mod)


MECHANICAL: list[tuple[str, str, Any]] = [
    ("no-rule", r"Add a rule, ", _rule),
    ("not-in-dataflow", r"relax\.transform\.ConvertToDataflow", _passes),
    ("check-refused", r"relax\.transform\.ConvertLayout", _passes),
    ("no-tensor", r"prepare=True", _passes),
    ("already-lowered", r"prepare=True", _passes),
    ("pruned", r"prune=False", lambda mod, mend, record: record(mod, prune=False)),
]
"""Codes, what of a mend can be carried out, and how."""


def mended(mod: Any, reason: Any, record: Record) -> Recording | None:
    for code, said, carry_out in MECHANICAL:
        if reason.code == code and re.search(said, reason.mend):
            done: Recording = carry_out(mod, reason.mend, record)
            return done
    return None


def texts(recording: Recording) -> set[tuple[str, str]]:
    return {(reason.code, reason.text) for reason in recording.last.reasons.values()}


def offered(mod: Any, backend: str, entry: str = "main", **given: Any) -> list[str]:
    """Carry out every mend that a script can, one at a time; the mends that were."""

    def record(mod: Any, **other: Any) -> Recording:
        kind = {"backend": backend, "entry": entry, "progress": False, **given, **other}
        return byocviz.record(mod, **kind)

    before = record(mod)
    done: list[str] = []
    different = {(r.code, r.text): r for r in before.last.reasons.values()}
    for key, reason in different.items():
        after = mended(mod, reason, record)
        if after is not None:
            assert after.failed is None
            assert key not in texts(after), f"{reason.text} -> {reason.mend}"
            done.append(reason.mend)
    return done


@pytest.mark.thinned(12)
@pytest.mark.parametrize("prepare", [False, True], ids=["as it came", "prepared"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_mend_that_is_offered_helps(case: Case, prepare: bool) -> None:
    offered(case.build(), case.backend, case.entry, prepare=prepare, prune=False)


def test_pruning_can_be_switched_off() -> None:
    mod = flow("x: X", "y = R.nn.relu(x)\nR.output(y)\nreturn y")
    assert any("prune=False" in mend for mend in offered(mod, "tensorrt"))


@pytest.mark.parametrize(
    ("params", "mends"),
    [
        ("x: X", "prepare=True"),
        ('x: R.Tensor(("n", 4, 8, 8), "float32")', "BindSymbolicVars"),
        ('x: R.Tensor(ndim=4, dtype="float32")', ""),
    ],
)
def test_a_shape_that_is_read(params: str, mends: str) -> None:
    """Whatever is offered helps; of unknown dimensions nothing is offered."""
    body = """
    s = R.shape_of(x)
    t = R.shape_to_tensor(s)
    y = R.add(t, t)
    R.output(y)
    return y
    """
    mod = flow(params, body)
    for backend in ("tensorrt", "onnxruntime"):
        said = offered(mod, backend, prepare=False, prune=False)
        shapes = [mend for mend in said if "computes it ahead" in mend]
        assert len(shapes) == (2 if mends else 0)
        assert all(mends in mend for mend in shapes)


def test_a_layout_is_converted_where_a_convolution_carries_it() -> None:
    body = """
    r = R.image.resize2d(c, R.shape([16, 16]), layout="NHWC", rounding_method="floor",
                         coordinate_transformation_mode="half_pixel", method="linear")
    R.output(r)
    return r
    """
    conv = 'c = R.nn.conv2d(x, H, padding=1, data_layout="NHWC", kernel_layout="HWIO")'
    for first, there in ((conv, True), ("c = R.nn.relu(x)", False)):
        text = first + "\n" + textwrap.dedent(body).strip()
        mod = flow('x: R.Tensor((1, 8, 8, 4), "float32")', text, H=const((3, 3, 4, 4), 1))
        said = offered(mod, "tensorrt", prune=False)
        assert any("ConvertLayout" in mend for mend in said) == there


def test_the_prepare_step_is_offered_only_where_it_puts_the_operator_back() -> None:
    clip, scale = by_name("onnx_clip").build(), by_name("call_tir_between").build()
    assert any("prepare=True" in one for one in offered(clip, "tensorrt", prepare=False))
    for mod, prepare in ((clip, True), (scale, False), (scale, True)):
        assert not any("prepare" in one for one in offered(mod, "tensorrt", prepare=prepare))


def test_a_table_of_all_that_can_be_lowered_wants_a_converter_first() -> None:
    body = "y = R.atan2(x, x)\nR.output(y)\nreturn y"
    (reason,) = byocviz.record(
        flow("x: X", body), "onnxruntime", progress=False
    ).last.reasons.values()
    assert reason.code == "no-rule"
    assert "@byocviz.building.lower.converter('relax.atan2')" in reason.mend
