from __future__ import annotations

import tvm
from tvm import relax, te

from .lab import Case, anything, module, op, tensor

RULES = [anything("t.maximum", "relax.maximum", 2), anything("t.relu", "relax.nn.relu")]


def maximum_call(name, hint="maximum"):
    zero = tvm.tirx.const(0, "float32")

    def compute(x):
        return te.compute(x.shape, lambda i, j: tvm.tirx.max(x[i, j], zero), name=hint)

    builder = relax.BlockBuilder()
    x = relax.Var("x", tensor((2, 3)))
    with builder.function("main", [x]):
        with builder.dataflow():
            out = builder.emit_output(builder.emit_te(compute, x, primfunc_name_hint=name))
        builder.emit_func_output(out)
    return builder.get()


def test_a_legalised_operator_names_what_it_was():
    mod = module(lambda emit, x, y: emit(op.maximum(x, y)), tensor((2, 3)), tensor((2, 3)))
    reason = Case(relax.transform.LegalizeOps()(mod), RULES).of("relax.call_tir")
    assert reason.code == "already-lowered"
    assert reason.evidence["operator"] == "relax.maximum"
    assert "maximum over float32[2, 3]" in reason.text
    # Removed: the operator itself is taken.
    assert Case(mod, RULES).left == {}


def test_the_body_tells_where_the_name_does_not():
    reason = Case(maximum_call("fused_thing"), RULES).of("relax.call_tir")
    assert reason.evidence == {
        "function": "fused_thing", "computes": "maximum", "result": "float32[2, 3]",
        "operator": "relax.maximum",
    }  # fmt: skip


def test_a_counted_name_is_the_name():
    assert Case(maximum_call("maximum12"), []).of("relax.call_tir").evidence["operator"] == (
        "relax.maximum"
    )


def test_an_external_function():
    def build(emit, x):
        ty = tensor((2, 3))
        y = emit(relax.op.call_dps_packed("my.kernel", (x,), ty))
        return emit(relax.Call(relax.ExternFunc("my.packed"), [y], ty_args=[ty]))

    case = Case(module(build, tensor((2, 3)), plain=True), RULES)
    said = " ".join(reason.text for reason in case.reasons.values())
    assert case.codes().keys() == {"already-lowered"}
    assert "my.kernel" in said
    assert "my.packed" in said


def test_a_rule_for_the_call_itself_is_compared():
    from tvm.relax.dpl import is_call_tir, is_op

    from .lab import rule

    pattern = is_op("relax.nn.relu")(is_call_tir("other", None))
    mod = maximum_call("maximum")
    reason = Case(mod, [rule("t.x", pattern)]).of("relax.call_tir")
    # That some rule names call_tir is no better cause than that the operator is lowered.
    assert reason.code == "already-lowered"
