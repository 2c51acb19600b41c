"""Every code, and that the operator is taken once the cause is removed."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from tvm import relax
from tvm.relax.dpl import is_call_packed, is_const, is_op, is_tuple, wildcard

import byocviz
from byocviz.errors import ModuleError
from byocviz.flow.relax.compat import Constant
from byocviz.flow.relax.reasons import explain
from byocviz.flow.relax.tag import Tagger

from .lab import (
    Case,
    anything,
    calls,
    const,
    conv_bias_relu,
    conv_relu,
    module,
    op,
    rule,
    table,
    takes,
    tensor,
)

X, W = tensor((1, 4, 8, 8)), tensor((4, 4, 3, 3))
EXP, ADD, RELU = (
    anything("t.exp", "relax.exp"), anything("t.add", "relax.add", 2),
    anything("t.relu", "relax.nn.relu"),
)  # fmt: skip


def conv(emit, x, w):
    return emit(op.nn.conv2d(x, w, padding=1))


def test_nothing_left_asks_nothing():
    assert explain(module(lambda e, x: e(op.exp(x)), X), [], []) == {}


def test_an_id_that_is_nowhere_is_an_error():
    mod = Tagger().tag(module(lambda e, x: e(op.exp(x)), X))
    with pytest.raises(ModuleError, match="Operator 77"):
        explain(mod, [EXP], [77])


def test_no_rule():
    mod = module(lambda e, x: e(op.exp(x)), X)
    case = Case(mod, [ADD])
    reason = case.of("relax.exp")
    assert reason.code == "no-rule"
    assert '("t.exp", is_op("relax.exp")(wildcard()))' in reason.mend
    added = eval('("t.exp", is_op("relax.exp")(wildcard()))')
    assert takes(mod, [ADD, rule(*added)], "relax.exp")
    assert Case(mod, []).of("relax.exp").code == "no-rule"


def test_the_rule_that_is_missing_can_be_added_as_it_says():
    mod = module(lambda e, x: e(op.isnan(x)), X)
    recording = byocviz.record(mod, "tensorrt", prune=False, progress=False)
    (reason,) = recording.last.reasons.values()
    assert reason.code == "no-rule"
    call, _, gain = reason.mend.partition("run it: ")[2].partition("; `blockers()`")
    imports, _, call = call.partition("; ")
    names = {"byocviz": byocviz}
    exec(imports, names)
    assert not byocviz.record(mod, eval(call, names), prune=False, progress=False).last.reasons
    assert "--blockers" in gain
    assert recording.blockers()


def test_no_tensor():
    case = Case(module(lambda e, x: e(op.reshape(x, e(op.shape_of(x)))), X), [ADD])
    assert case.of("relax.shape_of").code == "no-tensor"
    assert case.of("relax.reshape").code == "no-rule"
    # With a rule for it, it is an operator like any other.
    assert (
        "relax.shape_of"
        not in Case(case.module, [anything("t.shape_of", "relax.shape_of")]).left.values()
    )


def test_rule_off_only_where_it_would_match():
    mod = module(lambda e, x: e(op.exp(e(op.log(x)))), X)
    never = anything("t.log", "relax.log", 1, lambda context: False)
    case = Case(mod, [ADD], disabled=[EXP, never])
    reason = case.of("relax.exp")
    assert (reason.code, reason.rule) == ("rule-off", "t.exp")
    assert takes(mod, [ADD, EXP], "relax.exp")
    assert case.of("relax.log").code == "no-rule"
    assert not takes(mod, [ADD, never], "relax.log")


def test_a_disabled_rule_whose_operators_another_one_has():
    def build(emit, x, w):
        return emit(op.nn.relu(conv(emit, x, w)))

    mod = module(build, X, W)
    alone = anything("t.conv", "relax.nn.conv2d", 2)
    off = conv_relu()
    before, after = [off, alone], [alone, off]
    # Its place in the table decides whether it would get the convolution.
    assert Case(mod, [alone], disabled=[off], order=before).of("relax.nn.relu").code == "rule-off"
    assert takes(mod, before, "relax.nn.relu")
    assert Case(mod, [alone], disabled=[off], order=after).of("relax.nn.relu").code == "no-rule"
    assert not takes(mod, after, "relax.nn.relu")
    assert Case(mod, [alone], disabled=[off]).of("relax.nn.relu").code == "no-rule"


def test_not_in_dataflow():
    def build(emit, x, w):
        return emit(op.exp(emit(op.nn.relu(conv(emit, x, w)))))

    mod = module(build, X, W, plain=True)
    rules = [conv_relu(), anything("t.exp", "relax.exp", 1, lambda context: True)]
    case = Case(mod, rules)
    assert {reason.code for reason in case.reasons.values()} == {"not-in-dataflow"}
    assert len(case.left) == 3
    mended = relax.transform.ConvertToDataflow(min_size=1)(mod)
    assert Case(mended, rules).left == {}


def test_not_in_dataflow_only_where_a_rule_matches():
    mod = module(lambda e, x: e(op.exp(e(op.log(x)))), X, plain=True)
    case = Case(mod, [EXP, rule("t.log", is_op("relax.log")(is_const()))])
    assert case.of("relax.exp").code == "not-in-dataflow"
    assert case.of("relax.log").code == "other-form"


def test_a_plain_block_and_a_check_that_minds_it():
    """CUTLASS refuses a value inside a match that a plain block lets others use."""

    def build(emit, x, w):
        return emit(op.add(emit(op.matmul(x, w)), const(64, dtype="float16")))

    types = tensor((32, 32), "float16"), tensor((32, 64), "float16")
    mod = module(build, *types, plain=True)
    case = Case(mod, table("cutlass"))
    assert case.of("relax.matmul").code == "not-in-dataflow"
    assert case.of("relax.add").code == "not-in-dataflow"
    mended = relax.transform.ConvertToDataflow(min_size=1)(mod)
    assert Case(mended, table("cutlass")).left == {}


def test_branches_of_an_if():
    from tvm.script import ir as I
    from tvm.script import relax as R

    @I.ir_module
    class Mod:
        @R.function
        def main(x: R.Tensor((4,), "float32"), c: R.Tensor((), "bool")) -> R.Tensor(
            (4,), "float32"
        ):
            if c:
                a = R.exp(x)
                r = a
            else:
                b = R.log(x)
                r = b
            return r

    case = Case(Mod, [EXP])
    reason = case.of("relax.exp")
    assert reason.code == "not-in-dataflow"
    assert "a branch of an If" in reason.text
    assert case.of("relax.log").code == "no-rule"
    assert takes(relax.transform.ConvertToDataflow(min_size=1)(Mod), [EXP], "relax.exp")


def test_a_function_that_is_primitive_already():
    mod = module(lambda e, x: e(op.exp(x)), X)
    mod = relax.transform.FuseOpsByPattern([EXP])(Tagger().tag(mod))
    tags = calls(mod, composite=True)
    (reason,) = explain(mod, [EXP], tags).values()
    assert reason.code == "other-form"
    assert reason.evidence["attribute"] == "Primitive"


def test_a_function_that_is_a_backends_already():
    mod = module(lambda e, x: e(op.exp(x)), X)
    mod["main"] = mod["main"].with_attr("Codegen", "tensorrt")
    case = Case(mod, [EXP])
    reason = case.of("relax.exp")
    assert reason.code == "other-form"
    assert reason.evidence == {"function": "main", "attribute": "Codegen='tensorrt'"}
    assert "has the attribute Codegen='tensorrt'" in reason.text
    assert "without_attr('Codegen')" in reason.mend
    mod["main"] = mod["main"].without_attr("Codegen")
    assert takes(mod, [EXP], "relax.exp")


def test_calls_of_functions_have_a_reason_too():
    inner = module(lambda e, x: e(op.exp(x)), X)["main"]
    builder = relax.BlockBuilder()
    gv = builder.add_func(inner, "inner")
    x = relax.Var("x", X)
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit_output(relax.Call(gv, [x]))
        builder.emit_func_output(y)
    case = Case(builder.get(), [EXP])
    assert {r.code for r in case.reasons.values()} == {"no-rule"}
    (reason,) = case.reasons.values()
    assert "function inner" in reason.text


# A rule names it, and its form is another: each with what makes it the wanted form.


CASES = [
    (
        "user", [conv_bias_relu(), conv_relu()], "relax.nn.conv2d", "t.conv_relu",
        lambda e, x, w: e(op.sigmoid(conv(e, x, w))),
        lambda e, x, w: e(op.nn.relu(conv(e, x, w))),
        "wants relax.nn.relu as the user of relax.nn.conv2d (%lv); here relax.sigmoid",
    ),
    (
        "user of a user", [conv_bias_relu(), conv_relu()], "relax.add", "t.conv_bias_relu",
        lambda e, x, w: e(op.sigmoid(e(op.add(conv(e, x, w), const(1, 4, 1, 1))))),
        lambda e, x, w: e(op.nn.relu(e(op.add(conv(e, x, w), const(1, 4, 1, 1))))),
        "wants relax.nn.relu as the user of relax.add (%lv1); here relax.sigmoid",
    ),
    (
        "no user", [conv_relu()], "relax.nn.conv2d", "t.conv_relu",
        lambda e, x, w: conv(e, x, w),
        lambda e, x, w: e(op.nn.relu(conv(e, x, w))),
        "here the function's result uses it",
    ),
    (
        "root", [conv_relu()], "relax.nn.relu", "t.conv_relu",
        lambda e, x, w: e(op.nn.relu(e(op.exp(x)))),
        lambda e, x, w: e(op.nn.relu(conv(e, x, w))),
        "wants relax.nn.conv2d as argument 1 (x) of relax.nn.relu; here it is relax.exp",
    ),
    (
        "count", [anything("t.add", "relax.add", 3)], "relax.add", "t.add",
        lambda e, x, w: e(op.add(x, x)), None, "wants 3 arguments of relax.add; the call has 2",
    ),
    (
        "constant",
        [rule("t.conv", is_op("relax.nn.conv2d")(wildcard(), is_const()))],
        "relax.nn.conv2d", "t.conv",
        conv,
        lambda e, x, w: conv(e, x, const(4, 4, 3, 3)),
        "wants a constant as argument 2 (weight) of relax.nn.conv2d; here it is parameter x1",
    ),
    (
        "attr",
        [rule("t.conv", is_op("relax.nn.conv2d")(wildcard(), wildcard()).has_attr({"groups": 1}))],
        "relax.nn.conv2d", "t.conv",
        lambda e, x, w: e(op.nn.conv2d(x, const(4, 2, 3, 3), groups=2)),
        lambda e, x, w: e(op.nn.conv2d(x, w, groups=1)),
        "wants groups 1 of relax.nn.conv2d; here it is 2",
    ),
    (
        "dtype",
        [rule("t.exp", is_op("relax.exp")(wildcard().has_dtype("float16")))],
        "relax.exp", "t.exp",
        lambda e, x, w: e(op.exp(x)),
        lambda e, x, w: e(op.exp(e(op.astype(x, "float16")))),
        "wants dtype float16 of parameter x0; here it is float32",
    ),
    (
        "shape",
        [rule("t.exp", is_op("relax.exp")(wildcard()).has_shape([1, 4, 64]))],
        "relax.exp", "t.exp",
        lambda e, x, w: e(op.exp(x)),
        lambda e, x, w: e(op.exp(e(op.reshape(x, (1, 4, 64))))),
        "wants shape (1, 4, 64) of relax.exp; here it is (1, 4, 8, 8)",
    ),
    (
        "tuple",
        [rule("t.concat", is_op("relax.concat")(is_tuple([wildcard(), wildcard()])))],
        "relax.concat", "t.concat",
        lambda e, x, w: e(op.concat([x, x, x])),
        lambda e, x, w: e(op.concat([x, x])),
        "wants a tuple of 2 as argument 1",
    ),
    (
        "inside a tuple",
        [rule("t.concat", is_op("relax.concat")(is_tuple([is_op("relax.exp")(wildcard()),
                                                           wildcard()])))],
        "relax.exp", "t.concat",
        lambda e, x, w: e(op.concat([x, e(op.exp(x))])),
        lambda e, x, w: e(op.concat([e(op.exp(x)), x])),
        "wants a tuple of 2 as the user of relax.exp",
    ),
    (
        "either", [rule("t.or", is_op("relax.nn.relu")(is_op("relax.exp")(wildcard()) |
                                                       is_op("relax.log")(wildcard())))],
        "relax.exp", "t.or",
        lambda e, x, w: e(op.sigmoid(e(op.exp(x)))),
        lambda e, x, w: e(op.nn.relu(e(op.exp(x)))),
        "wants relax.nn.relu as the user of relax.exp",
    ),
    (
        "in its place",
        [conv_bias_relu()], "relax.nn.conv2d", "t.conv_bias_relu",
        lambda e, x, w: e(op.nn.relu(e(op.add(conv(e, x, w), conv(e, x, w))))),
        lambda e, x, w: e(op.nn.relu(e(op.add(conv(e, x, w), x)))),
        "takes relax.nn.conv2d (%lv) in its place",
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=[case[0] for case in CASES])
def test_other_form(case):
    _, rules, name, nearest, there, wanted, said = case
    mod = module(there, X, W)
    found = Case(mod, rules)
    reason = found.of(name)
    assert reason.code == "other-form"
    assert reason.rule == nearest
    assert said in reason.text
    if wanted is not None:
        assert takes(module(wanted, X, W), rules, name)


def test_every_mismatch_is_told():
    pattern = is_op("relax.add")(
        is_op("relax.nn.conv2d")(wildcard(), is_const()), is_op("relax.exp")(wildcard())
    )
    mod = module(lambda e, x, w: e(op.add(conv(e, x, w), x)), X, W)
    text = Case(mod, [rule("t.x", pattern)]).of("relax.add").text
    assert "a constant as argument 2 (weight)" in text
    assert "relax.exp as argument 2" in text
    mended = module(lambda e, x, w: e(op.add(conv(e, x, const(4, 4, 3, 3)), e(op.exp(x)))), X, W)
    assert takes(mended, [rule("t.x", pattern)], "relax.add")


def test_the_deepest_agreement_wins():
    rules = [anything("t.conv3", "relax.nn.conv2d", 3), conv_relu(), conv_bias_relu()]

    def build(emit, x, w):
        return emit(op.sigmoid(emit(op.add(conv(emit, x, w), const(1, 4, 1, 1)))))

    case = Case(module(build, X, W), rules)
    assert case.of("relax.nn.conv2d").rule == "t.conv_bias_relu"
    assert case.of("relax.add").rule == "t.conv_bias_relu"


def test_of_equals_the_rule_that_names_the_neighbours_wins():
    near = conv_bias_relu()
    matmul = is_op("relax.matmul")(wildcard(), wildcard())
    far = rule("t.mm_add_relu", is_op("relax.nn.relu")(is_op("relax.add")(matmul, wildcard())))

    def build(emit, x, w):
        return emit(op.nn.relu(conv(emit, x, w)))

    mod = module(build, X, W)
    for rules in ([far, near], [near, far]):
        assert Case(mod, rules).of("relax.nn.relu").rule == near.name
    # The one before it in the table, where the neighbours do not tell.
    mod = module(lambda e, x: e(op.nn.relu(e(op.exp(x)))), X)
    for rules in ([far, near], [near, far]):
        assert Case(mod, rules).of("relax.nn.relu").rule == rules[0].name


def test_neighbours_that_use_it_count_as_well():
    const_w = is_op("relax.nn.conv2d")(wildcard(), is_const())
    pooled = rule("t.pooled", is_op("relax.nn.max_pool2d")(is_op("relax.nn.relu")(const_w)))
    summed = rule("t.summed", is_op("relax.sum")(is_op("relax.exp")(const_w)))

    def build(emit, x, w):
        return emit(op.nn.max_pool2d(emit(op.exp(conv(emit, x, w)))))

    mod = module(build, X, W)
    # Both name one operator around the convolution; the exponential is the nearer one.
    for rules in ([pooled, summed], [summed, pooled]):
        assert Case(mod, rules).of("relax.nn.conv2d").rule == "t.summed"


def test_relu_after_a_convolution_with_the_cutlass_table():
    importlib.import_module("tvm.relax.backend.cuda.cutlass")

    def build(bias):
        def made(emit, x, w):
            y = conv_nhwc(emit, x, w)
            return emit(op.nn.relu(emit(op.add(y, const(32, dtype="float16"))) if bias else y))

        return module(made, tensor((1, 8, 8, 16), "float16"), tensor((32, 3, 3, 16), "float16"))

    def conv_nhwc(emit, x, w):
        how = {"data_layout": "NHWC", "kernel_layout": "OHWI", "padding": 1}
        return emit(op.nn.conv2d(x, w, **how))

    rules = table("cutlass")
    reason = Case(build(False), rules).of("relax.nn.relu")
    assert reason.rule == "cutlass.conv2d_bias_relu"
    assert takes(build(True), rules, "relax.nn.relu")


def test_a_constant_that_is_wanted_has_one_mend():
    """By the pattern's ``is_const`` or by a check: the same text, and both its ways do."""
    pattern = is_op("relax.nn.conv2d")(wildcard(), is_const())
    wants = anything(
        "t.conv", "relax.nn.conv2d", 2,
        lambda c: isinstance(c.annotated_expr["root"].args[1], Constant),
    )  # fmt: skip
    mod = module(conv, X, W)
    for fusion in (rule("t.conv", pattern), wants):
        backend = byocviz.Backend("t", [fusion])
        (reason,) = byocviz.record(mod, backend, progress=False).last.reasons.values()
        assert "record(params=...)" in reason.mend
        assert "relax.transform.BindParams" in reason.mend
        assert "so that it is a constant" in reason.mend
        params = {"x1": np.ones((4, 4, 3, 3), "float32")}
        assert not byocviz.record(mod, backend, params=params, progress=False).last.reasons
        bound = relax.transform.BindParams("main", params)(mod)
        assert takes(bound, [fusion], "relax.nn.conv2d")


def test_lost_to_a_rule_before_it():
    def build(emit, x, w):
        return emit(op.nn.relu(conv(emit, x, w)))

    mod = module(build, X, W)
    alone = anything("t.conv", "relax.nn.conv2d", 2)
    case = Case(mod, [alone, conv_relu()])
    reason = case.of("relax.nn.relu")
    assert (reason.code, reason.rule) == ("other-form", "t.conv_relu")
    assert reason.evidence["by"] == "t.conv"
    assert "Put t.conv_relu before t.conv" in reason.mend
    assert takes(mod, [conv_relu(), alone], "relax.nn.relu")
    # The recording knows the owner; then nothing has to be matched again.
    told = Case(mod, [alone, conv_relu()], owners={0: "whoever"}).of("relax.nn.relu")
    assert told.evidence["by"] == "whoever"


def test_lost_to_a_match_of_the_same_rule():
    pattern = is_op("relax.add")(is_op("relax.add")(wildcard(), wildcard()), wildcard())

    def build(count):
        def chain(emit, x):
            for _ in range(count):
                x = emit(op.add(x, x))
            return x

        return module(chain, X)

    reason = Case(build(3), [rule("t.two", pattern)]).of("relax.add")
    assert reason.code == "other-form"
    assert reason.evidence["by"] == "t.two"
    assert Case(build(2), [rule("t.two", pattern)]).left == {}


def test_a_rule_for_an_external_function_concerns_no_operator():
    rules = [rule("t.packed", is_call_packed("mine", [wildcard()]))]
    assert Case(module(lambda e, x: e(op.exp(x)), X), rules).of("relax.exp").code == "no-rule"


def test_constraints_between_patterns_are_not_asked_by_the_pass():
    from tvm.relax.dpl import PatternContext
    from tvm.relax.dpl.pattern import SameShapeConstraint

    with PatternContext():
        left, right = wildcard(), wildcard()
        pattern = is_op("relax.add")(left, right)
        SameShapeConstraint(left, right)
    mod = module(lambda e, x: e(op.add(x, const(1, 4, 1, 1))), X)
    assert takes(mod, [rule("t.add", pattern)], "relax.add")


def test_equal_causes_share_one_reason():
    def build(emit, x):
        for _ in range(20):
            x = emit(op.exp(x))
        return x

    case = Case(module(build, X), [ADD])
    assert len(case.reasons) == 20
    assert len({id(reason) for reason in case.reasons.values()}) == 1


def test_without_recorded_refusals_the_answer_is_the_same():
    mod = module(lambda e, x, w: e(op.nn.relu(e(op.add(conv(e, x, w), const(1, 4, 1, 1))))), X, W)
    case = Case(mod, table("cutlass"))
    assert explain(case.module, case.rules, case.left) == case.reasons
