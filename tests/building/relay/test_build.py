"""`byocviz.build` on Relay: what a build gives is what TVM alone gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.relay import needs_relay

needs_relay()

import tvm  # noqa: E402
from tvm import relay  # noqa: E402

import byocviz  # noqa: E402
from byocviz.building.errors import BuildError, EngineError, LoweringError  # noqa: E402
from byocviz.building.relay import codegen  # noqa: E402
from byocviz.building.relay.compiled import GRAPH, MACHINE, complete  # noqa: E402
from byocviz.building.relay.module import build_relay  # noqa: E402
from byocviz.errors import ArgumentError, ModuleError  # noqa: E402
from byocviz.flow.relay.plain import plain_module  # noqa: E402
from byocviz.flow.relay.verify import run_module  # noqa: E402
from tests.corpus_relay import CASES  # noqa: E402
from tests.corpus_relay.case import Case, const, conv, main, x  # noqa: E402

OTHERS = {"subgraph_given", "dynamic_batch"}
"""One holds a subgraph of another backend, one has subgraphs of no fixed shape."""


def recorded(case: Case, **how: Any) -> byocviz.Recording:
    params = case.params() if case.params else None
    return byocviz.record(
        case.build(), case.backend, entry=case.entry, params=params, progress=False,
        **{"prune": False, **how},
    )  # fmt: skip


def built(recording: byocviz.Recording, **how: Any) -> byocviz.Build:
    return byocviz.build(recording, progress=False, **{"isolate": False, "cache": False, **how})


@pytest.mark.thinned(5)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_build_gives_what_tvm_alone_gives(case: Case) -> None:
    recording = recorded(case)
    failed = [step.name for step in recording.steps if step.error is not None]
    if failed:
        assert failed == [case.fails]
        if recording.last.name in ("annotate", "merge"):
            with pytest.raises(BuildError, match="not yet functions"):
                built(recording)
        else:
            assert not built(recording).engines
        return
    if case.name in OTHERS:
        with pytest.raises((BuildError, LoweringError)):
            built(recording)
        return
    build = built(recording)
    assert len(build.engines) == len(recording.last.subgraphs)
    imported = build.imported()
    runs = [build.named(None, seed) for seed in range(2)]
    for inputs, wanted in zip(runs, run_module(imported, case.entry, runs), strict=True):
        given = build.run(inputs)
        assert [(g.shape, g.dtype) for g in given] == [(w.shape, w.dtype) for w in wanted]
        for one, other in zip(given, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)


def test_there_are_enough_cases() -> None:
    assert len({case.name for case in CASES} - OTHERS) - sum(bool(c.fails) for c in CASES) >= 40


CASE = next(case for case in CASES if case.name == "cut_in_two")


@pytest.fixture(scope="module")
def build() -> byocviz.Build:
    return built(recorded(CASE))


def test_each_output_and_subgraph_is_compared(build: byocviz.Build) -> None:
    check = build.check()
    assert [d.kind for d in check.differences] == ["output", "subgraph", "subgraph"]
    assert not any(d.exceeds for d in check.differences)
    assert build.recording.results.check is check


def test_variants_are_timed_side_by_side(build: byocviz.Build) -> None:
    latency = build.latency(
        repeat=2, warmup=1, settings={"as imported": {"prepare": False, "prune": False}}
    )
    kinds = [v.kind for v in latency.variants]
    assert kinds == ["tvm", "byoc", "byoc", "runtime"]
    for variant in latency.variants:
        assert len(variant.seconds) == 2, variant.cannot
    parts = next(v for v in latency.variants if v.kind == "byoc").parts
    assert {p.name for p in parts} == {*build.engines, "TVM"}
    assert build.plot() is not None


def test_the_tree_has_each_engine_under_its_trampoline(build: byocviz.Build) -> None:
    tree = build.info.tree
    engines = {node.name: node.parent for node in tree if node.kind == "engine"}
    assert engines.keys() == build.engines.keys()
    for symbol, parent in engines.items():
        assert (tree[parent].kind, tree[parent].name) == ("llvm", symbol)


def test_operators_keep_their_ids(build: byocviz.Build) -> None:
    for subgraph in build.step.subgraphs:
        assert list(build.runnable.lowered[subgraph.function].operators) == subgraph.op_ids


def test_an_entry_of_operators_is_a_graph_and_one_with_branches_runs_in_the_machine() -> None:
    kinds = dict.fromkeys(("cut_in_two", "outputs_to_tvm"), GRAPH)
    kinds |= dict.fromkeys(("branches", "counting_loop", "walkthrough", "tuple_parameter"), MACHINE)
    for case in CASES:
        if case.name in kinds:
            assert built(recorded(case)).runnable.executable.kind == kinds[case.name], case.name


def test_nothing_stays_registered(build: byocviz.Build) -> None:
    assert tvm.get_global_func("relay.ext.tensorrt", allow_missing=True) is None
    for symbol in build.engines:
        assert tvm.get_global_func(symbol, allow_missing=True) is None


def test_two_builds_of_the_same_symbols_do_not_mix() -> None:
    def scaled(by: float) -> byocviz.Build:
        data = x()
        module = main(relay.nn.relu(conv(relay.multiply(data, relay.const(by)))))
        return built(byocviz.record(module, prune=False, progress=False))

    one, two = scaled(1.0), scaled(2.0)
    assert one.engines.keys() == two.engines.keys()
    image = np.random.default_rng(0).standard_normal((1, 4, 8, 8)).astype("float32")
    first = one.run(image)[0]
    np.testing.assert_allclose(two.run(image)[0], first * 2, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(one.run(image)[0], first)


@pytest.mark.parametrize("name", ["p0", "p1", "tvmgen_default_tensorrt_main_0_i0"])
def test_inputs_may_be_named_as_tvm_names_its_constants(name: str) -> None:
    def module() -> tvm.IRModule:
        made = relay.round(conv(x(name)))
        return main(relay.multiply(conv(made, 2), const((1, 4, 1, 1), 3)))

    build = built(byocviz.record(module(), prune=False, progress=False))
    inputs = build.named(None)
    assert list(inputs) == [name]
    (wanted,) = run_module(module(), "main", [inputs])
    np.testing.assert_allclose(build.run(inputs)[0], wanted[0], rtol=1e-3, atol=1e-4)


def _conv1d() -> Any:
    return relay.nn.conv1d(x(shape=(1, 4, 9)), const((6, 4, 3)))


def _conv2d() -> Any:
    return relay.nn.conv2d(x(), const((6, 4, 3, 3)), padding=(1, 1))


def _nhwc() -> Any:
    weight = const((3, 3, 4, 6))
    return relay.nn.conv2d(x(shape=(1, 8, 8, 4)), weight, data_layout="NHWC", kernel_layout="HWIO")


def _conv3d() -> Any:
    return relay.nn.conv3d(x(shape=(1, 2, 4, 4, 4)), const((3, 2, 3, 3, 3)))


@pytest.mark.parametrize("make", [_conv1d, _conv2d, _nhwc, _conv3d])
def test_a_convolution_on_tvm_may_lack_its_channels(make: Callable[[], Any]) -> None:
    """TVM 0.19 does not compile it so at opt_level 3."""
    recording = byocviz.record(main(relay.round(make())), rules=["add"], progress=False)
    build = built(recording)
    assert not build.engines
    inputs = build.named(None)
    (wanted,) = run_module(recording.module("import"), "main", [inputs])
    np.testing.assert_allclose(build.run(inputs)[0], wanted[0], rtol=1e-3, atol=1e-4)


def test_filling_in_changes_nothing_else() -> None:
    made = relay.transform.InferType()(main(relay.nn.relu(_conv2d())))
    filled = complete(made)
    call = filled["main"].body.args[0]
    assert int(call.attrs.channels) == 6
    assert [int(k) for k in call.attrs.kernel_size] == [3, 3]
    assert [int(p) for p in call.attrs.padding] == [1, 1, 1, 1]
    assert filled["main"].ret_type == made["main"].ret_type
    assert complete(filled).same_as(filled)


def test_an_engine_s_error_keeps_its_type(
    build: byocviz.Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = next(iter(build.engines.values()))

    def fail(*_: Any) -> None:
        raise EngineError("It failed.", "Nothing helps.")

    inputs = build.named(None)
    with monkeypatch.context() as patch:
        patch.setattr(engine, "run_into", fail)
        with pytest.raises(EngineError, match="It failed"):
            build.run(inputs)
    assert build.run(inputs)


def test_a_trampoline_outside_of_a_run_says_so() -> None:
    with pytest.raises(EngineError, match="outside of a build's run"):
        codegen._called("nothing")
    with codegen.running({}), pytest.raises(EngineError, match="no engine for nothing"):
        codegen._called("nothing")


def test_what_cannot_be_built_is_said() -> None:
    recording = recorded(CASE)
    for how, kind, said in (
        ({"target": "cuda"}, BuildError, "for the CPU"),
        ({"target": "nonsense"}, BuildError, "no target"),
        ({"step": "merge"}, BuildError, "not yet functions"),
        ({"codegen": "native"}, BuildError, "no codegen 'native'"),
        ({"backend": "dnnl"}, ArgumentError, "was made for the backend"),
    ):
        with pytest.raises(kind, match=said):
            built(recording, **how)
    module = recording.module("partition")
    with pytest.raises(BuildError, match="not of the backend"):
        build_relay(module, "another", isolate=False)


def test_a_codegen_of_tvm_s_own_is_not_replaced() -> None:
    tvm.register_func("relay.ext.tensorrt", lambda function: None)
    try:
        with pytest.raises(BuildError, match="of its own"):
            built(recorded(CASE))
    finally:
        tvm._ffi.registry.remove_global_func("relay.ext.tensorrt")


def test_inputs_that_do_not_fit_are_refused(build: byocviz.Build) -> None:
    good = build.named(None)["x"]
    for bad in ({}, {"y": good}, {"x": good[:, :2]}, {"x": good.astype("float64")}, [good, good]):
        with pytest.raises(ModuleError):
            build.run(bad)
    np.testing.assert_array_equal(build.run(good)[0], build.run([good])[0])


def test_a_recording_from_a_file_cannot_be_built(build: byocviz.Build, tmp_path: Path) -> None:
    path = tmp_path / "a.byocviz"
    build.recording.save(path)
    again = byocviz.load(path)
    assert again.results.build is not None
    with pytest.raises(byocviz.ByocvizError):
        built(again)


def test_composites_and_subgraphs_come_off_for_tvm_alone(build: byocviz.Build) -> None:
    module = plain_module(build.recording.module("partition"))
    assert not codegen.external(module)
