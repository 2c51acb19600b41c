"""`byocviz.record`: what it takes, what it refuses, and what it writes down."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import relax
from tvm.relax.dpl import is_op, wildcard

import byocviz
from byocviz.errors import ArgumentError, BackendError, ByocvizWarning, ModuleError, StepMissing
from tests.corpus import CASES

from . import properties

BY_NAME = {case.name: case for case in CASES}


def build(operators: list[str], shape: tuple[object, ...] = (1, 4, 8, 8)) -> tvm.IRModule:
    """A chain of unary operators over one input."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(shape, "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            value = x
            for name in operators:
                operator = getattr(relax.op.nn, name, None) or getattr(relax.op, name)
                value = builder.emit(operator(value))
            out = builder.emit_output(value)
        builder.emit_func_output(out)
    return builder.get()


def record(module: object, backend: object = "tensorrt", **how: object) -> byocviz.Recording:
    return byocviz.record(module, backend, progress=False, **how)  # type: ignore[arg-type]


def test_the_steps_are_all_there_in_order() -> None:
    recording = record(build(["relu", "leakyrelu", "relu"]), prune=False)
    assert tuple(step.name for step in recording.steps) == properties.ORDER
    assert recording.step("merge").profile.subgraphs == 2
    for step in recording.steps:
        assert step.tvm_seconds >= 0
        assert step.capture_seconds > 0
        assert all(f.text in recording.texts for f in step.functions)
    assert recording.step("composite").changed
    assert not recording.step("partition").changed


def test_the_module_is_not_changed_and_its_recording_repeats() -> None:
    module = build(["relu", "tanh"])
    before = module.script(show_meta=False)
    first = record(module)
    assert module.script(show_meta=False) == before
    second = record(first.__dict__["modules"]["import"])
    assert {i: o.name for i, o in first.ops.items()} == {i: o.name for i, o in second.ops.items()}


@pytest.mark.parametrize("what", [3, None, [1], relax.const(1.0)], ids=repr)
def test_not_a_module(what: object) -> None:
    with pytest.raises(byocviz.ByocvizError) as caught:
        record(what)
    assert caught.value.mend


def test_no_such_entry() -> None:
    with pytest.raises(ModuleError, match=r"no function 'forward'[\s\S]*main"):
        record(build(["relu"]), entry="forward")


def test_the_entry_is_a_tir_function() -> None:
    module = relax.transform.LegalizeOps()(build(["relu"]))
    tir = next(v.name_hint for v in module.get_global_vars() if v.name_hint != "main")
    with pytest.raises(ModuleError, match="not a Relax function"):
        record(module, entry=tir)


def test_no_relax_function() -> None:
    module = relax.transform.LegalizeOps()(build(["relu"]))
    only = {v: f for v, f in module.functions.items() if v.name_hint != "main"}
    with pytest.raises(ModuleError, match="no Relax function"):
        record(tvm.IRModule(only))


def test_unknown_backend_and_rule() -> None:
    with pytest.raises(BackendError, match=r"tensort[\s\S]*tensorrt"):
        record(build(["relu"]), "tensort")
    with pytest.raises(BackendError, match=r"nn\.rely[\s\S]*nn\.relu"):
        record(build(["relu"]), rules={"tensorrt.nn.rely": False})


def test_unknown_rewrite() -> None:
    with pytest.raises(StepMissing, match=r"clop[\s\S]*clip"):
        record(build(["relu"]), prepare={"clop": False})


def test_everything_legalized() -> None:
    module = relax.transform.LegalizeOps()(build(["relu", "tanh"]))
    recording = record(module, prepare=False)
    assert recording.last.profile.subgraphs == 0
    assert {r.code for r in recording.last.reasons.values()} == {"already-lowered"}
    texts = " ".join(r.text for r in recording.last.reasons.values())
    assert "relu" in texts
    assert "tanh" in texts


def test_a_rule_switched_off_and_on() -> None:
    module = build(["relu", "tanh"])
    off = record(module, rules={"nn.relu": False}, prune=False)
    reasons = {off.ops[i].name: r for i, r in off.last.reasons.items()}
    assert reasons["relax.nn.relu"].code == "rule-off"
    assert reasons["relax.nn.relu"].rule == "tensorrt.nn.relu"
    assert not {r.name: r for r in off.backend.rules}["tensorrt.nn.relu"].enabled
    assert record(module, rules={"nn.relu": True}, prune=False).last.profile.coverage_ops == 1
    only = record(module, rules=["tensorrt.tanh"], prune=False)
    assert only.last.profile.ops.keys() == {"relax.nn.relu", "relax.tanh"}
    assert only.last.profile.offloaded_ops == 1


def test_pruned_operators_say_why_and_stand_where_they_stood() -> None:
    recording = record(build(["relu", "leakyrelu", "tanh"]))
    last = recording.last
    assert last.profile.subgraphs == 0
    assert {r.code for r in last.reasons.values()} == {"pruned", "no-rule"}
    pruned = recording.__dict__["modules"]["prune"]
    imported = relax.transform.CanonicalizeBindings()(recording.__dict__["modules"]["import"])
    assert tvm_ffi.structural_equal(pruned["main"], imported["main"], map_free_vars=True)


def test_prune_thresholds() -> None:
    module = build(["relu", "leakyrelu", "tanh", "relu"])
    policy = byocviz.PrunePolicy(min_ops=2)
    recording = record(module, prune=policy)
    assert [s.ops for s in recording.last.subgraphs] == [{"relax.nn.relu": 1, "relax.tanh": 1}]
    assert recording.backend.prune == policy
    assert not record(module, prune=byocviz.PrunePolicy(min_macs=1)).last.subgraphs


def test_parameters_are_bound() -> None:
    case = BY_NAME["equal_composites_with_weights_to_bind"]
    assert case.params is not None
    params = case.params()
    bound = record(case.build(), params=params)
    rewrite = next(r for r in bound.step("prepare").rewrites if r.name == "bind-parameters")
    assert rewrite.count == len(params)
    assert bound.last.profile.param_bytes == sum(v.nbytes for v in params.values())
    unbound = record(case.build())
    assert unbound.last.profile.total == bound.last.profile.total
    assert unbound.last.profile.subgraphs == bound.last.profile.subgraphs


def test_parameters_that_do_not_fit() -> None:
    with pytest.raises(ModuleError, match="w"):
        record(build(["relu"]), params={"w": np.zeros(3, "float32")})


def test_symbolic_shapes_give_no_figure() -> None:
    n = tvm.tirx.Var("n", "int64")
    x = relax.Var("x", relax.TensorType((n, 3, 8, 8), "float32"))
    w = relax.const(np.ones((4, 3, 3, 3), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            out = builder.emit_output(builder.emit(relax.op.nn.conv2d(x, w)))
        builder.emit_func_output(out)
    recording = record(builder.get())
    profile = recording.last.profile
    assert profile.macs is None
    assert profile.bytes_in is None
    assert profile.param_bytes == 4 * 4 * 3 * 3 * 3
    assert profile.subgraphs == 1, "an unknown figure prunes nothing"
    assert "?" in recording.summary()


@pytest.mark.parametrize("name", ["parameter_returned", "none_offloaded", "chain"])
def test_nothing_or_everything_offloaded(name: str) -> None:
    recording = record(BY_NAME[name].build(), prune=False)
    assert recording.failed is None
    share = {"parameter_returned": 0, "none_offloaded": 0, "chain": 1}[name]
    assert recording.last.profile.coverage_ops == share
    assert recording.summary()


def test_a_step_that_raises_keeps_those_before_it() -> None:
    def explode(_: object) -> bool:
        raise RuntimeError("no such chip")

    x = wildcard()
    relu = is_op("relax.nn.relu")(x)
    backend = byocviz.Backend("chip", lambda: [("chip.relu", relu, {"x": x}, explode)])
    recording = record(build(["relu"]), backend)
    failed = recording.failed
    assert failed is not None
    assert failed.name == "composite"
    assert "no such chip" in failed.error.message + failed.error.trace
    assert [s.name for s in recording.steps] == ["import", "prepare", "composite"]
    assert recording.step("prepare").profile.total == 1
    again = byocviz.recording.from_bytes(byocviz.recording.to_bytes(recording))
    assert again == recording
    assert "no such chip" in recording.summary()


def test_a_module_that_is_not_well_formed() -> None:
    x = relax.Var("x", relax.TensorType((4,), "float32"))
    stray = relax.Var("stray", relax.TensorType((4,), "float32"))
    body = relax.SeqExpr([], relax.op.add(x, stray))
    function = relax.Function([x], body, x.ty).with_attr("global_symbol", "main")
    module = relax.transform.Normalize()(tvm.IRModule({"main": function}))
    with pytest.raises(ModuleError, match="not well formed"):
        record(module)


def test_shared_functions_are_counted_by_call() -> None:
    case = BY_NAME["equal_regions_of_several_operators"]
    recording = record(case.build(), prepare=False, prune=False)
    step = recording.step("partition")
    functions = {s.function for s in step.subgraphs}
    assert len(functions) < len(step.subgraphs)
    shared = {f.name: f for f in step.functions if f.name in functions}
    sites = sorted(i for f in shared.values() for i in f.sites)
    assert sites == list(range(len(step.subgraphs)))
    for name, function in shared.items():
        assert function.graph is not None
        for node in function.graph.nodes:
            if node.kind == "op":
                assert len(node.ops) == len(function.sites), name


def test_what_if_partitions_again() -> None:
    recording = record(build(["relu", "leakyrelu", "tanh", "softplus", "relu"]), prune=False)
    assert recording.last.profile.subgraphs == 3
    blockers = {b.op: b for b in recording.blockers()}
    assert (
        set(blockers) == {"relax.nn.leakyrelu", "relax.nn.mish"} or "relax.nn.leakyrelu" in blockers
    )
    blocker = blockers["relax.nn.leakyrelu"]
    assert (blocker.subgraphs_now, blocker.subgraphs) == (3, 2)
    assert blocker.coverage_ops > blocker.coverage_ops_now
    assert not blocker.error
    # The figure is what really adding such a rule gives.
    table = byocviz.backends.get("tensorrt")
    rule = ("tensorrt.extra", is_op("relax.nn.leakyrelu")(wildcard()))
    more = byocviz.Backend("tensorrt", lambda: [*table.patterns(), rule])
    really = record(build(["relu", "leakyrelu", "tanh", "softplus", "relu"]), more, prune=False)
    assert really.last.profile.subgraphs == blocker.subgraphs
    assert really.last.profile.coverage_ops == pytest.approx(blocker.coverage_ops)


def test_another_entry_is_walked_whole() -> None:
    case = BY_NAME["entry_of_another_name"]
    recording = record(case.build(), entry=case.entry)
    properties.check_all(recording)
    for step in recording.steps:
        assert [f.name for f in step.functions if f.kind == "entry"] == [case.entry]


def test_a_step_that_fails_is_said() -> None:
    def check(context: object) -> bool:
        raise KeyError("zap")

    mine = byocviz.Backend("t", [("t.relu", is_op("relax.nn.relu")(wildcard()), {}, check)])
    with pytest.warns(
        ByocvizWarning, match=r"stops at 'composite'.*zap.*recording\.failed"
    ) as said:
        recording = record(build(["relu"]), mine)
    assert len(said) == 1
    assert said[0].filename == __file__
    assert recording.failed is not None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        record(build(["relu"]))


@pytest.mark.parametrize(
    ("given", "mend"),
    [
        ({"min_op": 3}, r"PrunePolicy\(min_ops=3\)"),
        ({"nonsense": 3}, r"It takes require_macs, min_ops, min_macs"),
        (3, r"byocviz\.PrunePolicy\("),
    ],
)
def test_what_is_no_policy(given: object, mend: str) -> None:
    with pytest.raises(ArgumentError, match=mend):
        record(build(["relu"]), prune=given)


def test_that_only_what_lowers_is_taken_is_told() -> None:
    module = build(["relu"])
    assert "only what lowers" in record(module, lowerable=True).summary(width=100)
    assert "only what lowers" not in record(module).summary(width=100)


@pytest.mark.parametrize(
    ("policy", "mend"),
    [
        (byocviz.PrunePolicy(require_macs=True), "require_macs=False"),
        (byocviz.PrunePolicy(min_ops=2), "min_ops="),
        (byocviz.PrunePolicy(min_macs=1), "min_macs="),
    ],
)
def test_the_mend_of_what_is_pruned_names_its_cause(policy: byocviz.PrunePolicy, mend: str) -> None:
    (reason,) = record(build(["relu"]), prune=policy).last.reasons.values()
    assert reason.code == "pruned"
    named = {name for name in ("require_macs=", "min_ops=", "min_macs=") if name in reason.mend}
    assert mend in reason.mend
    assert len(named) == 1
