"""`byocviz.build` on small modules: everything that can be asked of a build, and bad input."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tvm")
pytest.importorskip("onnxruntime")

import tvm
from tvm.relax.dpl import is_op, wildcard

import byocviz
from byocviz.building.build import possible
from byocviz.building.errors import (
    BuildCancelled,
    BuildError,
    EngineError,
    LoweringError,
    RuntimeMissing,
)
from byocviz.building.runtimes.gpu import missing_gpu
from byocviz.errors import (
    ArgumentError,
    ByocvizError,
    ByocvizWarning,
    ModuleError,
    StepMissing,
)
from byocviz.flow.relax.verify import max_difference, run_module, seeded_inputs
from tests.corpus import CASES, Case, by_name


def recorded(name: str, **more: Any) -> byocviz.Recording:
    case = by_name(name)
    return byocviz.record(case.build(), case.backend, entry=case.entry, progress=False, **more)


def built(name: str, **more: Any) -> byocviz.Build:
    return byocviz.build(recorded(name, prune=False), cache=False, progress=False, **more)


@pytest.fixture(scope="module")
def chain() -> byocviz.Build:
    return built("chain_cut_once")


NAMES = ("chain", "chain_cut_once", "diamond_two_levels", "none_offloaded", "walkthrough")


@pytest.mark.parametrize("name", NAMES)
def test_it_gives_what_tvm_alone_gives(name: str, tmp_path: Path) -> None:
    """Wholly offloaded, in part, or not at all; built, saved and loaded again."""
    case = by_name(name)
    build = built(name)
    inputs = seeded_inputs(case.build(), case.entry, seed=3)
    wanted = run_module(case.build(), case.entry, inputs)
    assert max_difference(build.run(inputs), wanted) < 1e-4
    check = build.check(inputs)
    assert not any(d.exceeds for d in check.differences)
    assert {d.name for d in check.differences if d.kind == "subgraph"} == set(build.engines)
    loaded = byocviz.load_build(build.save(tmp_path / "build"), progress=False)
    assert max_difference(loaded.run(inputs), wanted) < 1e-4
    assert loaded.recording.results == build.recording.results


@pytest.mark.parametrize("case", [c for c in CASES if c.backend == "tensorrt"][::12], ids=str)
def test_all_that_lowers_builds_and_checks(case: Case) -> None:
    recording = byocviz.record(
        case.build(), case.backend, entry=case.entry, prune=False, progress=False
    )
    try:
        build = byocviz.build(recording, cache=False, isolate=False, progress=False)
    except LoweringError as error:
        pytest.skip(f"does not lower: {error.operator}")
    check = build.check()
    assert [d for d in check.differences if d.exceeds] == []


def test_what_it_did_is_in_the_recording(chain: byocviz.Build, tmp_path: Path) -> None:
    info = chain.recording.results.build
    assert info is not None
    step = chain.recording.last
    # Equal subgraphs share a function, and an engine is the first one's.
    first = {s.function: s.op_ids for s in reversed(step.subgraphs)}
    assert {e.function: e.op_ids for e in info.engines} == first
    for engine in info.engines:
        assert "Conv" in chain.recording.texts[engine.code]
        assert engine.seconds > 0
        assert not engine.cached
    if missing_gpu() is not None:
        assert (info.runtime, info.stands_in_for) == ("onnxruntime", "TensorRT")
        assert "stands in for TensorRT" in chain.summary()
    kinds = [node.kind for node in info.tree]
    assert kinds[0] == "relax.VMExecutable"
    assert kinds.count("engine") == len(info.engines)
    path = chain.recording.save(tmp_path / "chain")
    assert byocviz.load(path).results == chain.recording.results


def test_inputs_by_name_in_order_or_alone(chain: byocviz.Build) -> None:
    ((name, value),) = seeded_inputs(by_name("chain_cut_once").build(), "main").items()
    first = chain.run({name: value})
    for given in ([value], (value,), value, tvm.runtime.tensor(value), memoryview(value)):
        assert max_difference(chain.run(given), first) == 0
    assert name in chain.inputs


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda x: x[:, :1], "shape"),
        (lambda x: x.astype(np.float64), "float64"),
        (lambda x: {"other": x}, "'other' is no parameter"),
        (lambda x: [x, x], "takes 1 inputs; 2 were given"),
        (lambda x: None, "NoneType"),
        (lambda x: "x.npy", "str"),
    ],
)
def test_inputs_that_do_not_fit_are_named(chain: byocviz.Build, change: Any, said: str) -> None:
    (value,) = seeded_inputs(by_name("chain_cut_once").build(), "main").values()
    with pytest.raises(ModuleError, match=said):
        chain.run(change(value))


def test_nan_goes_through(chain: byocviz.Build) -> None:
    ((name, value),) = seeded_inputs(by_name("chain_cut_once").build(), "main").items()
    assert np.isnan(chain.run({name: np.full_like(value, np.nan)})[0]).any()


def test_latency_of_several_partitions(chain: byocviz.Build) -> None:
    other = recorded("chain_cut_once", prune=True)
    found = chain.latency(
        repeat=2,
        warmup=0,
        name="cut",
        settings={"no rules but conv": {"rules": ["nn.conv2d"]}, "pruned": other},
    )
    assert [(v.kind, v.setting) for v in found.variants] == [
        ("tvm", ""),
        ("byoc", "cut"),
        ("byoc", "no rules but conv"),
        ("byoc", "pruned"),
        ("runtime", ""),
    ] or found.variants[-1].kind == "part"
    assert chain.recording.results.latency is found
    for variant in found.variants:
        if variant.cannot:
            assert (variant.seconds, variant.median) == ([], None)
            continue
        assert len(variant.seconds) == 2
        assert variant.median is not None
        assert variant.first is not None
        assert min(variant.seconds) <= variant.median <= max(variant.seconds)
    own = found.variants[1]
    assert own.subgraphs == len(chain.recording.last.subgraphs)
    assert {p.name for p in own.parts} == {*chain.engines, "TVM"}


def test_where_the_runtime_does_not_take_the_whole_its_part_is_timed() -> None:
    build = built("mutual_recursion")
    found = build.latency(repeat=1, warmup=0)
    whole = next(v for v in found.variants if v.kind == "runtime")
    part = next(v for v in found.variants if v.kind == "part")
    assert whole.cannot
    assert part.median is not None


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"repeat": 0}, ArgumentError),
        ({"warmup": -1}, ArgumentError),
        ({"repeat": True}, ArgumentError),
        ({"settings": [1]}, ArgumentError),
        ({"settings": {"a": 3}}, ArgumentError),
        ({"settings": {"a": {"no_such_argument": 1}}}, ArgumentError),
        ({"settings": {"": {}}}, ArgumentError),
    ],
)
def test_settings_that_make_no_sense(
    chain: byocviz.Build, arguments: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        chain.latency(**arguments)


def test_bad_arguments_are_named(tmp_path: Path) -> None:
    recording = recorded("chain")
    with pytest.raises(RuntimeMissing, match="no runtime 'tensort'"):
        byocviz.build(recording, runtime="tensort", progress=False)
    with pytest.raises(ArgumentError, match="made for the backend 'tensorrt'"):
        byocviz.build(recording, "tutorial", progress=False)
    with pytest.raises(StepMissing, match="No step 'purge'"):
        byocviz.build(recording, step="purge", progress=False)
    with pytest.raises(BuildError, match="no codegen 'pyton'"):
        byocviz.build(recording, codegen="pyton", progress=False)
    with pytest.raises(BuildError, match=r"relax\.ext\.tensorrt is not registered"):
        byocviz.build(recording, codegen="native", progress=False)
    with pytest.raises(BuildError, match="no target"):
        byocviz.build(recording, target="llvm -mcpu=x", progress=False)
    with pytest.raises(ByocvizError, match="no option 'thread'"):
        byocviz.build(recording, options={"thread": 1}, progress=False)
    with pytest.raises(BuildError, match="cannot compile and run for 'metal'"):
        byocviz.build(recording, target="metal", progress=False)
    loaded = byocviz.load(recording.save(tmp_path / "chain"))
    with pytest.raises(StepMissing, match="a file holds no modules"):
        byocviz.build(loaded, progress=False)


def test_a_runtime_without_its_gpu_says_so() -> None:
    if missing_gpu() is None:
        pytest.skip("there is a GPU here")
    with pytest.raises(RuntimeMissing):
        byocviz.build(recorded("chain"), runtime="tensorrt", progress=False)


def test_a_symbolic_shape_is_refused_before_anything_is_built() -> None:
    recording = recorded("dynamic_batch_all_offloaded", prune=False)
    with pytest.raises(LoweringError, match="fixed shapes"):
        byocviz.build(recording, cache=False, progress=False)


def test_a_build_that_is_cancelled_leaves_nothing() -> None:
    cancel = byocviz.Cancel()
    recording = recorded("chain_cut_once")
    cancel.cancel()
    with pytest.raises(BuildCancelled):
        byocviz.build(recording, cancel=cancel, cache=False, progress=False)
    assert recording.results.build is None


def test_a_step_before_the_last_is_built_as_it_is() -> None:
    recording = recorded("chain_cut_once", prune=False)
    build = byocviz.build(recording, step="annotate", cache=False, progress=False)
    info = build.recording.results.build
    assert info is not None
    assert info.step == "annotate"
    assert set(build.engines) == {s.function for s in recording.step("annotate").subgraphs}
    assert not any(d.exceeds for d in build.check().differences)


def test_another_build_of_the_recording_does_not_keep_the_first_one_s_figures() -> None:
    recording = recorded("chain_cut_once", prune=False)
    first = byocviz.build(recording, cache=False, progress=False)
    first.check()
    second = byocviz.build(recording, step="annotate", cache=False, progress=False)
    assert recording.results.check is None
    assert recording.results.build is second.info
    assert {t for t in recording.texts if t.startswith("onnx:")} == {
        e.code for e in second.info.engines
    }
    first.check()
    assert recording.results.build is first.info
    assert recording.results.check is not None


def test_the_first_run_is_the_first_even_after_a_check() -> None:
    build = built("chain_cut_once")
    build.check()
    first = build.first_seconds
    assert first is not None
    found = build.latency(repeat=1, warmup=0)
    assert next(v for v in found.variants if v.kind == "byoc").first == first
    again = build.latency(repeat=1, warmup=0)
    for before, after in zip(found.variants, again.variants, strict=True):
        assert before.first == after.first


def test_an_engine_s_error_arrives_as_it_was_raised() -> None:
    build = built("chain_cut_once")
    (engine, *_) = build.engines.values()

    def fails(inputs: Any, outputs: Any) -> None:
        raise EngineError("It failed.", "Mend it.")

    def interrupted(inputs: Any, outputs: Any) -> None:
        raise KeyboardInterrupt

    value = seeded_inputs(by_name("chain_cut_once").build(), "main")
    engine.run_into = fails  # type: ignore[method-assign]
    for ask in (build.run, build.check, build.latency):
        with pytest.raises(EngineError, match=r"It failed\."):
            ask(value)
    engine.run_into = interrupted  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        build.run(value)


@pytest.mark.parametrize("bad", [float("nan"), -1, "x", True, float("inf")])
def test_a_tolerance_is_a_number(chain: byocviz.Build, bad: Any) -> None:
    with pytest.raises(ArgumentError):
        chain.check(atol=bad)


def test_another_module_is_no_setting(chain: byocviz.Build) -> None:
    with pytest.raises(ArgumentError, match="of another module"):
        chain.latency(settings={"other": recorded("diamond_two_levels")}, repeat=1, warmup=0)
    for label in ("", "a\nb", "x" * 300, "\ud800"):
        with pytest.raises(ArgumentError):
            chain.latency(settings={label: {}}, repeat=1, warmup=0)


def test_threads_that_ask_one_build_wait_for_each_other(chain: byocviz.Build) -> None:
    value = seeded_inputs(by_name("chain_cut_once").build(), "main")
    wanted = chain.run(value)
    asks = [
        lambda: chain.latency(value, repeat=3, warmup=0),
        lambda: chain.check(value),
        *[lambda: [max_difference(chain.run(value), wanted) for _ in range(30)]] * 2,
    ]
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(ask) for ask in asks]:
            done.result()


def test_a_recording_with_a_failed_step_is_not_built_unasked() -> None:
    def check(context: Any) -> bool:
        raise KeyError("zap")

    relu = is_op("relax.nn.relu")(wildcard())
    mine = byocviz.Backend("mine", [("mine.relu", relu, {}, check)])
    recording = byocviz.record(by_name("chain").build(), mine, progress=False)
    assert recording.failed is not None
    assert recording.failed.error is not None
    with pytest.raises(StepMissing, match=r"composite.*zap") as error:
        byocviz.build(recording, progress=False)
    assert recording.failed.error.mend in error.value.mend
    build = byocviz.build(recording, step="prepare", cache=False, progress=False)
    assert build.info.step == "prepare"


@pytest.mark.skipif(not missing_gpu(), reason="TensorRT itself may run here")
def test_options_of_what_is_stood_in_for_are_said_to_be_left_out() -> None:
    recording = recorded("chain")
    with pytest.warns(ByocvizWarning, match="fp16") as said:
        build = byocviz.build(recording, options={"fp16": True, "threads": 1}, progress=False)
    assert len(said) == 1
    assert said[0].filename == __file__
    assert "fp16" in build.info.why
    assert "threads" not in build.info.why
    assert dict(build.plan.options) == {"threads": 1}


def test_a_processor_that_llvm_does_not_know() -> None:
    for target in ({"kind": "llvm", "mcpu": "znver44"}, {"kind": "llvm", "mcpu": "skylakee"}):
        with pytest.raises(BuildError, match=r"znver4|skylake"):
            possible(target)
    possible({"kind": "llvm", "mcpu": "generic"})
