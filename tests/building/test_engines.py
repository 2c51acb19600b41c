"""Engines of real runtimes, built in a process of their own."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tvm")
pytest.importorskip("onnxruntime")

from tvm import relax

import byocviz
from byocviz.building import runtimes
from byocviz.building.cache import EngineCache
from byocviz.building.engines import build_engines, operators
from byocviz.building.errors import BuildCancelled, BuildError, Cancel, RuntimeMissing
from byocviz.building.lower import Lowered, lower
from byocviz.building.runtimes.gpu import missing_gpu
from byocviz.flow.relax.compat import attribute
from byocviz.models import ssd
from tests.building.lower.lab import Cases, T, build, run_onnx
from tests.building.runtimes.odd import Odd, Watched, WatchedRtx
from tests.building.test_isolate import subgraphs

ORT = runtimes.get("onnxruntime")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def whole() -> dict[str, Lowered]:
    """The SSD's subgraph, with the ids of its operators."""
    recording = byocviz.record(ssd.load(), progress=False)
    module = recording.module("prune")
    step = recording.step("prune")
    ids = {s.function: s.op_ids for s in step.subgraphs}
    return {
        str(v.name_hint): lower(f, operators=ids[str(f.attrs["global_symbol"])])
        for v, f in module.functions_items()
        if attribute(f, "Codegen")
    }


def test_operators_are_counted_by_name(whole: dict[str, Lowered]) -> None:
    (subgraph,) = whole.values()
    said = operators(subgraph)
    assert "conv2d x 88, " in said
    counts = [int(part.split(" x ")[1].split()[0]) for part in said.split(", ")]
    assert counts == sorted(counts, reverse=True)
    text = operators(subgraph, most=10_000)
    total = sum(int(part.split(" x ")[1]) for part in text.split(", "))
    assert total == len(subgraph.operators)


@pytest.mark.parametrize("isolate", [True, False])
def test_what_is_built_is_told(isolate: bool) -> None:
    told: list[Any] = []
    build_engines(subgraphs("a", "b"), ORT, isolate=isolate, tell=lambda *said: told.append(said))
    assert told == [
        ("engine 1 of 2: a: relu x 2, add x 1", 0, 2),
        ("engine 2 of 2: b: relu x 2, add x 1", 1, 2),
        ("2 engines built", 2, 2),
    ]


def test_a_hostile_name_is_told_as_short_text() -> None:
    told: list[str] = []
    name = "\x1b[2J" + "a" * 10_000
    build_engines(subgraphs(name), ORT, isolate=False, tell=lambda s, *_: told.append(s))
    assert "\x1b" not in "".join(told)
    assert max(map(len, told)) < 200
    with pytest.raises(BuildError) as caught:
        build_engines(subgraphs(name), Odd(), {"what": "raises"}, isolate=False)
    assert "\x1b" not in caught.value.message
    assert len(caught.value.message) < 300
    assert caught.value.subgraph == name


@pytest.mark.parametrize("isolate", [True, False])
def test_the_ssd_in_onnx_runtime(whole: dict[str, Lowered], isolate: bool, tmp_path: Path) -> None:
    ((symbol, subgraph),) = whole.items()
    cache = EngineCache(tmp_path / "engines")
    built = build_engines(whole, ORT, {"threads": 1}, isolate=isolate, cache=cache)
    one = built[symbol]
    assert (one.bytes, one.cached) == (None, False)
    assert one.seconds > 0
    assert not cache.folder.exists()  # it has no engines to keep
    rng = np.random.default_rng(0)
    values = [rng.random(p.shape, "float32") for p in subgraph.inputs]
    given, wanted = one.engine.run(values), run_onnx(subgraph, values)
    for a, b in zip(given, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("isolate", [True, False])
def test_what_onnx_runtime_refuses_is_the_same_error(isolate: bool) -> None:
    given = subgraphs("fine", "bad")
    for node in given["bad"].model.graph.node:
        if node.op_type == "Add":
            node.op_type = "NoSuchOperator"
    with pytest.raises(BuildError) as caught:
        build_engines(given, ORT, isolate=isolate)
    assert "relax.add" in caught.value.message
    assert caught.value.subgraph == "bad"
    assert caught.value.onnx_path is None


@pytest.mark.parametrize("runtime", [Watched(), WatchedRtx()], ids=lambda one: one.name)
def test_native_libraries_build_without_tvm(runtime: Any) -> None:
    if runtime.supports(running=False) is not None:
        pytest.skip(f"{runtime.title}: {runtime.supports(running=False)}")
    (built,) = build_engines(subgraphs(), runtime).values()
    modules = json.loads(built.engine)  # type: ignore[arg-type]
    assert "onnxruntime" in modules
    assert not {"tvm", "tvm_ffi", "torch"} & set(modules)


def test_unknown_options_and_runtimes_that_are_not_there() -> None:
    with pytest.raises(RuntimeMissing, match="threads"):
        build_engines(subgraphs(), ORT, {"thread": 1})
    rtx = runtimes.get("tensorrt")
    if rtx.supports() is not None:
        with pytest.raises(RuntimeMissing, match="TensorRT"):
            build_engines(subgraphs(), rtx)


def test_nothing_to_build() -> None:
    told: list[Any] = []
    assert build_engines({}, ORT, tell=lambda *said: told.append(said)) == {}
    assert told == [("0 engines built", 0, 0)]


def test_auto_takes_the_best_there_is_and_says_so() -> None:
    choice = runtimes.auto()
    real, rtx = runtimes.get("tensorrt").supports(), runtimes.get("tensorrt-rtx").supports()
    if real is None:
        assert (choice.runtime.name, choice.stands_in_for, choice.why) == ("tensorrt", "", "")
    elif rtx is None:
        assert (choice.runtime.name, choice.stands_in_for) == ("tensorrt-rtx", "")
        assert "TensorRT" in choice.why
    else:
        assert (choice.runtime.name, choice.stands_in_for) == ("onnxruntime", "TensorRT")
        said = "is not installed" if "not installed" in real else "NVIDIA"
        assert said in choice.why


def test_a_choice_for_every_backend() -> None:
    for asked in ("auto", None):
        assert runtimes.choose(asked, "tensorrt").why == runtimes.auto().why
        mine = runtimes.choose(asked, "onnxruntime")
        assert (mine.runtime.name, mine.stands_in_for, mine.why) == ("onnxruntime", "", "")
        other = runtimes.choose(asked, "cutlass")
        assert (other.runtime.name, other.stands_in_for) == ("onnxruntime", "cutlass")
        assert "cutlass" in other.why
    named = runtimes.choose("onnxruntime", "tensorrt")
    assert (named.runtime.name, named.stands_in_for) == ("onnxruntime", "TensorRT")
    assert named.why
    assert runtimes.choose("tensorrt-rtx", "tensorrt").stands_in_for == ""
    odd = Odd()
    assert runtimes.choose(odd, "tensorrt").runtime is odd
    with pytest.raises(RuntimeMissing, match="auto"):
        runtimes.choose("nothing", "tensorrt")


class TestRtx:
    """TensorRT-RTX builds without a GPU, so all but running is tested for real."""

    SM89 = {"compute_capability": "8.9"}  # noqa: RUF012

    @pytest.fixture(autouse=True)
    def _installed(self) -> None:
        pytest.importorskip("tensorrt_rtx")
        self.rtx = runtimes.get("tensorrt-rtx")

    def test_the_ssd_is_built_and_taken_from_the_cache(
        self, whole: dict[str, Lowered], tmp_path: Path
    ) -> None:
        cache = EngineCache(tmp_path / "engines")
        ((symbol, subgraph),) = whole.items()
        (first,) = build_engines(whole, self.rtx, self.SM89, cache=cache).values()
        assert not first.cached
        assert first.bytes is not None
        assert first.bytes > 1_000_000
        assert first.engine.serialized() is not None
        assert len(list(cache.folder.iterdir())) == 1
        again = build_engines(whole, self.rtx, self.SM89, cache=cache)[symbol]
        assert again.cached
        assert again.engine.serialized() == first.engine.serialized()
        facts = again.engine.describe()
        assert facts["bytes"] == str(first.bytes)
        assert facts["compute_capability"] == "8.9"
        for options in ({"compute_capability": "8.6"}, {**self.SM89, "fp16": True}):
            other = build_engines({"x": subgraph}, self.rtx, options, cache=cache)["x"]
            assert not other.cached

    def test_half_precision_makes_the_ssd_smaller(self, whole: dict[str, Lowered]) -> None:
        sizes = [
            next(iter(build_engines(whole, self.rtx, {**self.SM89, "fp16": fp16}).values())).bytes
            for fp16 in (False, True)
        ]
        assert sizes[0] is not None
        assert sizes[1] is not None
        assert sizes[1] < 0.6 * sizes[0]

    @pytest.mark.parametrize("isolate", [True, False])
    def test_each_refusal_says_why(self, isolate: bool) -> None:
        """Also the second of a process: the library hands its messages to one logger."""
        for _ in range(2):
            cases = Cases()
            cases(
                relax.op.vision.all_class_non_max_suppression, T(1, 5, 4), T(1, 2, 5),
                relax.const(3, "int64"), relax.const(0.5, "float32"),
                relax.const(0.1, "float32"),
            )  # fmt: skip
            module, _, _ = build(cases)
            with pytest.raises(BuildError) as caught:
                build_engines(
                    {"nms": lower(module["main"], name="nms")},
                    self.rtx,
                    self.SM89,
                    isolate=isolate,
                )
            assert "does not say why" not in caught.value.message
            assert caught.value.subgraph == "nms"

    @pytest.mark.parametrize("dtype", ["float16", "int8", "int32", "int64", "bool"])
    def test_a_type_that_it_has_at_the_boundary(self, dtype: str) -> None:
        cases = Cases()
        cases(relax.op.permute_dims, T(2, 3, dtype=dtype))
        module, _, _ = build(cases)
        built = build_engines({"t": lower(module["main"])}, self.rtx, self.SM89)
        assert built["t"].bytes

    def test_float64_is_refused_before_the_build(self) -> None:
        cases = Cases()
        cases(relax.op.permute_dims, T(2, 3, dtype="float64"))
        module, _, _ = build(cases)
        told: list[Any] = []
        with pytest.raises(BuildError, match="float64") as caught:
            build_engines(
                {"t": lower(module["main"])}, self.rtx, self.SM89,
                tell=lambda *said: told.append(said),
            )  # fmt: skip
        assert told == []
        assert "relax.permute_dims" in caught.value.message

    def test_cancelling_a_build_under_way(self, whole: dict[str, Lowered], tmp_path: Path) -> None:
        cancel = Cancel()
        timer = threading.Timer(0.4, cancel.cancel)
        cache = EngineCache(tmp_path / "engines")
        many = {str(i): lowered for i in range(200) for lowered in whole.values()}
        timer.start()
        with pytest.raises(BuildCancelled):
            build_engines(many, self.rtx, self.SM89, cancel=cancel, cache=cache)
        assert {path.suffix for path in cache.folder.glob("*")} <= {".engine"}

    def test_without_a_gpu_the_layers_cannot_be_read(self, whole: dict[str, Lowered]) -> None:
        (built,) = build_engines(whole, self.rtx, self.SM89).values()
        if missing_gpu() is not None:
            assert built.engine.layers() == ""
