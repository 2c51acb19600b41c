"""What a check objects to, found by probing; each cause is removed and the operator is taken."""

from __future__ import annotations

import re
from collections import Counter

import pytest
import tvm
import tvm.relax.backend.contrib.tensorrt
import tvm.relax.backend.cuda.cublas
import tvm.relax.backend.cuda.cudnn
import tvm.relax.backend.cuda.cutlass
from tvm import relax
from tvm.relax.dpl import is_op, wildcard

import byocviz
from byocviz.flow.relax.reasons import explain
from byocviz.flow.relax.tag import Tagger

from .lab import Case, anything, calls, const, module, op, rule, table, takes, tensor

N = tvm.tirx.Var("n", "int64")
GOOD = {
    "shape": (1, 3, 8, 8), "dtype": "float32", "size": (16, 16), "layout": "NCHW",
    "method": "nearest_neighbor", "rounding_method": "floor",
    "coordinate_transformation_mode": "half_pixel", "out_dtype": None,
}  # fmt: skip


def resize(**changed):
    how = {**GOOD, **changed}
    shape, dtype, size = how.pop("shape"), how.pop("dtype"), how.pop("size")
    types = [tensor(shape, dtype)]
    if isinstance(size, relax.ShapeType):
        types.append(size)
    else:
        size = relax.ShapeExpr(list(size))

    def build(emit, x, *more):
        return emit(op.image.resize2d(x, more[0] if more else size, **how))

    return module(build, *types)


RESIZE = "relax.image.resize2d"
REFUSED = [
    ({"layout": "NHWC"}, "attr layout"),
    ({"layout": "NHWC", "shape": (1, 8, 8, 3)}, "attr layout"),
    ({"dtype": "float64"}, "dtype"),
    ({"dtype": "int8"}, "dtype"),
    ({"method": "area"}, "attr method"),
    ({"rounding_method": "round"}, "attr rounding_method"),
    ({"coordinate_transformation_mode": "tf_half_pixel_for_nn"},
     "attr coordinate_transformation_mode"),
    ({"out_dtype": "float16"}, "attr out_dtype"),
    ({"layout": "NHWC", "dtype": "float64", "rounding_method": "round"}, "attr layout"),
    ({"layout": "NHWC", "method": "area", "coordinate_transformation_mode": "other"},
     "attr layout"),
]  # fmt: skip


def test_the_good_one_is_taken():
    assert takes(resize(), table("tensorrt"), RESIZE)


@pytest.mark.parametrize(("changed", "label"), REFUSED, ids=str)
def test_resize2d_of_the_tensorrt_table(changed, label):
    rules = table("tensorrt")
    case = Case(resize(**changed), rules)
    reason = case.of(RESIZE)
    assert reason.code == "check-refused"
    assert reason.rule == "tensorrt.image.resize2d"
    assert label in reason.evidence
    assert reason.evidence["check"].startswith("tvm/relax/backend/contrib/tensorrt.py:")
    assert "with" in reason.text
    assert "it matches" in reason.text
    # The evidence says what is there and what is accepted: put it there, and it is taken.
    mended = dict(changed)
    accepted = reason.evidence["accepted"]
    parts = dict(p.split("=") for p in accepted.split(", ")) if "=" in accepted else {}
    seen = [k for k in reason.evidence if k.startswith("attr ") or k == "dtype"]
    assert len(seen) == max(1, len(parts))
    for key in seen:
        name = key.removeprefix("attr ")
        assert str({**GOOD, **changed}[name]) == reason.evidence[key]
        mended[name] = parts.get(name, accepted)
    assert takes(resize(**mended), rules, RESIZE), mended
    # And nothing that is not needed is named.
    for key in seen:
        fewer = {**mended, key.removeprefix("attr "): reason.evidence[key]}
        assert not takes(resize(**fewer), rules, RESIZE), key


def test_a_symbolic_size():
    mod = resize(shape=(1, 3, N, 8), size=(N * 2, 16))
    rules = table("tensorrt")
    reason = Case(mod, rules).of(RESIZE)
    assert reason.code == "check-refused"
    assert "symbolic dimension n" in reason.evidence
    assert "BindSymbolicVars" in reason.mend
    bound = relax.transform.BindSymbolicVars({"n": 8}, "main")(mod)
    assert takes(bound, rules, RESIZE)


@pytest.mark.parametrize("ty", [relax.ShapeType(ndim=2), relax.ShapeType([16, 16])], ids=str)
def test_a_size_that_is_a_variable(ty):
    reason = Case(resize(size=ty), table("tensorrt")).of(RESIZE)
    assert reason.code == "check-refused"
    assert reason.evidence["shape of argument 2 (size)"] == "a variable"
    assert takes(resize(), table("tensorrt"), RESIZE)


def test_equal_refusals_cost_one_probing(monkeypatch):
    from byocviz.flow.relax.reasons import probe

    searched = Counter()
    run = probe._Search.run

    def counted(self, *known):
        searched[self.rule.name] += 1
        return run(self, *known)

    monkeypatch.setattr(probe._Search, "run", counted)

    def build(emit, x):
        for _ in range(60):
            x = emit(op.image.resize2d(x, (8, 8), layout="NHWC"))
        return x

    case = Case(module(build, tensor((1, 8, 8, 3))), table("tensorrt"))
    assert searched == {"tensorrt.image.resize2d": 1}
    assert len(case.left) == 60
    assert len({id(reason) for reason in case.reasons.values()}) == 1


def conv(emit, x, w, **layouts):
    return emit(op.nn.conv2d(x, w, padding=1, **layouts))


def test_cutlass_layouts_and_the_conversion_that_it_names():
    rules = table("cutlass")
    mod = module(conv, tensor((1, 16, 8, 8), "float16"), tensor((32, 16, 3, 3), "float16"))
    reason = Case(mod, rules).of("relax.nn.conv2d")
    assert reason.evidence["accepted"] == "data_layout=NHWC, kernel_layout=OHWI"
    call = "relax.transform.ConvertLayout({'relax.nn.conv2d': ['NHWC', 'OHWI']})"
    assert call in reason.mend
    converted = eval(call)(mod)
    assert "permute_dims" in reason.mend
    assert "relax.permute_dims" in calls(Tagger().tag(converted)).values()
    assert takes(converted, rules, "relax.nn.conv2d")


def test_what_a_rule_needed_together_is_tried_first_with_other_shapes(monkeypatch):
    from byocviz.flow.relax.reasons import probe

    probes = []
    run = probe._Search.run

    def counted(self, *known):
        cause = run(self, *known)
        probes.append(self.probes)
        return cause

    monkeypatch.setattr(probe._Search, "run", counted)
    rules = [r for r in table("cutlass") if r.name == "cutlass.conv2d"]
    dtype = {"dtype": "float16"}

    def build(emit, x, *weights):
        return [conv(emit, x, w) for w in weights]

    types = [tensor((n, 16, 3, 3), **dtype) for n in (32, 40, 48)]
    case = Case(module(build, tensor((1, 16, 8, 8), **dtype), *types), rules)
    assert len({reason.text for reason in case.reasons.values()}) == 1
    first, *others = probes
    assert len(others) == 2
    assert all(count < 8 < first for count in others)


def test_cudnn_dtype():
    rules = table("cudnn")
    mod = module(conv, tensor((1, 4, 8, 8), "float64"), tensor((4, 4, 3, 3), "float64"))
    reason = Case(mod, rules).of("relax.nn.conv2d")
    assert reason.evidence["dtype"] == "float64"
    dtype = reason.evidence["accepted"]
    mod = module(conv, tensor((1, 4, 8, 8), dtype), tensor((4, 4, 3, 3), dtype))
    assert takes(mod, rules, "relax.nn.conv2d")


def matmul(emit, x, y):
    return emit(op.matmul(x, y))


def resized(shapes, reason, label):
    """The shapes as the evidence says that they would be accepted."""
    before, after = (int(reason.evidence[k].removeprefix("size ")) for k in (label, "accepted"))
    shapes = [list(shape) for shape in shapes]
    for number, axes in re.findall(r"argument (\d+) [^,]*, ax[ei]s ([\d, and]*\d)", label):
        for axis in re.findall(r"\d+", axes):
            assert shapes[int(number) - 1][int(axis)] == before
            shapes[int(number) - 1][int(axis)] = after
    return shapes


@pytest.mark.parametrize(
    ("left", "right", "dtype", "label"),
    [
        ((32, 30), (30, 64), "int8", "argument 1 (x1), axis 1 and argument 2 (x2), axis 0"),
        ((32, 32), (32, 66), "int8", "argument 2 (x2), axis 1"),
        ((32, 64), (64, 64), "float64", "dtype"),
    ],
)
def test_cublas_shapes_and_dtypes(left, right, dtype, label):
    rules = table("cublas")
    reason = Case(module(matmul, tensor(left, dtype), tensor(right, dtype)), rules).of(
        "relax.matmul"
    )
    assert reason.code == "check-refused"
    accepted = reason.evidence["accepted"]
    if label == "dtype":
        dtype = accepted
    else:
        left, right = resized([left, right], reason, label)
    assert takes(module(matmul, tensor(left, dtype), tensor(right, dtype)), rules, "relax.matmul")


def divisible(argument, *axes):
    def check(context):
        sizes = context.annotated_expr["root"].args[argument].ty.shape
        return all(int(sizes[axis]) % 8 == 0 for axis in axes)

    return check


DATA, WEIGHT = "argument 1 (data)", "argument 2 (weight)"
EVERYWHERE = [(1, 3, 8, 8), (3, 3, 3, 3)]


@pytest.mark.parametrize(
    ("check", "shapes", "label"),
    [
        (divisible(1, 0), EVERYWHERE, f"{WEIGHT}, axis 0"),
        (divisible(1, 2), EVERYWHERE, f"{WEIGHT}, axis 2"),
        (divisible(1, 2, 3), EVERYWHERE, f"{WEIGHT}, axes 2 and 3"),
        (divisible(1, 1), EVERYWHERE, f"{DATA}, axis 1 and {WEIGHT}, axis 1"),
        # All four together would not do.
        (lambda c: divisible(1, 0)(c) and int(c.annotated_expr["root"].args[1].ty.shape[3]) == 3,
         EVERYWHERE, f"{WEIGHT}, axis 0"),
    ],
    ids=["one", "kernel", "both", "tied", "not the other"],
)  # fmt: skip
def test_a_size_is_named_by_argument_and_axis(check, shapes, label):
    rules = [anything("my.c", "relax.nn.conv2d", 2, check)]
    reason = Case(module(conv, *map(tensor, shapes)), rules).of("relax.nn.conv2d")
    assert reason.text == f"my.c refuses {label}: size 3; with 8 it matches."
    assert reason.evidence[label] == "size 3"
    assert reason.evidence["accepted"] == "size 8"
    assert f"so that {label} ha" in reason.mend
    assert "size 8" in reason.mend
    mended = [tensor(shape) for shape in resized(shapes, reason, label)]
    assert takes(module(conv, *mended), rules, "relax.nn.conv2d")


def test_three_axes_of_one_size_that_go_together():
    pattern = is_op("relax.add")(is_op("relax.add")(wildcard(), wildcard()), wildcard())
    check = lambda c: int(c.matched_expr.ty.shape[1]) % 8 == 0  # noqa: E731

    def build(emit, x, y, z):
        return emit(op.add(emit(op.add(x, y)), z))

    shapes = [(5, 5)] * 3
    rules = [rule("my.add", pattern, {}, check)]
    reason = Case(module(build, *map(tensor, shapes)), rules).of("relax.add")
    (label,) = (key for key in reason.evidence if key.startswith("argument"))
    of = "of the 1st relax.add, axis 1", "of the 2nd relax.add, axis 1"
    assert (
        label == f"argument 1 (x1) {of[0]} and argument 2 (x2) {of[0]} and argument 2 (x2) {of[1]}"
    )
    assert takes(module(build, *[tensor((5, 8))] * 3), rules, "relax.add")


M = tvm.tirx.Var("m", "int64")


def test_only_the_symbols_that_matter_are_named_with_their_axes():
    def check(context):
        return isinstance(context.annotated_expr["root"].args[1].ty.shape[0], tvm.tirx.IntImm)

    rules = [anything("my.m", "relax.matmul", 2, check)]
    mod = module(matmul, tensor((N, M)), tensor((M, 30)))
    reason = Case(mod, rules).of("relax.matmul")
    places = "argument 1 (x1), axis 1 and argument 2 (x2), axis 0"
    assert reason.evidence["symbolic dimension m"] == places
    assert f"refuses symbolic dimension m of {places}; with a number in its place" in reason.text
    call = re.search(r"relax\.transform\.BindSymbolicVars\(.*?\)", reason.mend).group(0)
    assert takes(eval(call, {"relax": relax, "number": 24})(mod), rules, "relax.matmul")


def test_values_are_written_in_one_notation():
    def check(context):
        return list(context.annotated_expr["root"].attrs.padding) == [0, 0, 0, 0]

    rules = [anything("my.c", "relax.nn.conv2d", 2, check)]
    shapes = tensor((1, 4, 8, 8)), tensor((4, 4, 3, 3))
    reason = Case(module(conv, *shapes), rules).of("relax.nn.conv2d")
    assert "refuses padding [1, 1, 1, 1]; with [0, 0, 0, 0] it matches" in reason.text
    assert "with padding=[0, 0, 0, 0]." in reason.mend
    assert reason.evidence["attr padding"] == "[1, 1, 1, 1]"
    mended = module(lambda e, x, w: e(op.nn.conv2d(x, w, padding=[0, 0, 0, 0])), *shapes)
    assert takes(mended, rules, "relax.nn.conv2d")


def test_the_condition_of_a_lambda_in_a_table_is_its_own():
    rules = [
        anything("t.log", "relax.log", 1, lambda c: c.matched_expr.ty.dtype == "float16"),
        anything("t.exp", "relax.exp", 1, lambda c: c.matched_expr.ty.ndim == 5),
    ]
    reason = Case(module(lambda e, x: e(op.exp(x)), tensor((2,))), rules).of("relax.exp")
    assert reason.evidence["refused at"] == "c.matched_expr.ty.ndim == 5"
    assert takes(module(lambda e, x: e(op.exp(x)), tensor((1,) * 5)), rules, "relax.exp")


def test_cublas_symbolic_reduction():
    mod = module(matmul, tensor((32, N), "float16"), tensor((N, 64), "float16"))
    reason = Case(mod, table("cublas")).of("relax.matmul")
    assert "symbolic dimension n" in reason.evidence
    bound = relax.transform.BindSymbolicVars({"n": 32}, "main")(mod)
    assert takes(bound, table("cublas"), "relax.matmul")


def test_a_value_used_outside_the_match():
    rules = [r for r in table("cublas") if r.name == "cublas.matmul_bias_relu"]

    def build(emit, x, w, leak):
        y = emit(op.add(emit(op.matmul(x, w)), const(64, dtype="float16")))
        z = emit(op.nn.relu(y))
        return [y, z] if leak else z

    types = tensor((32, 32), "float16"), tensor((32, 64), "float16")
    mod = module(lambda emit, x, w: build(emit, x, w, True), *types)
    case = Case(mod, rules)
    for name in ("relax.matmul", "relax.add", "relax.nn.relu"):
        reason = case.of(name)
        assert reason.code == "check-refused"
        assert reason.evidence["used outside"] == "%lv1"
    assert takes(module(lambda emit, x, w: build(emit, x, w, False), *types), rules, "relax.add")


def test_a_value_used_outside_does_not_hinder_the_pass_itself():
    pattern = is_op("relax.nn.relu")(is_op("relax.exp")(wildcard()))

    def build(emit, x):
        y = emit(op.exp(x))
        return [y, emit(op.nn.relu(y))]

    assert takes(module(build, tensor((2,))), [rule("t.x", pattern)], "relax.exp")


def square(emit, x):
    return emit(op.multiply(x, x))


def known_shape(context):
    return context.annotated_expr["root"].args[0].ty.shape is not None


@pytest.mark.parametrize(
    ("check", "types", "label", "mended"),
    [
        (lambda c: c.annotated_expr["root"].args[0].ty.dtype == "float16",
         [tensor((4, 4))], "dtype", [tensor((4, 4), "float16")]),
        (lambda c: int(c.annotated_expr["root"].ty.shape[-1]) % 8 == 0,
         [tensor((4, 12))], "argument 1 (x1), axis 1", [tensor((4, 16))]),
        (lambda c: c.annotated_expr["root"].ty.ndim == 3,
         [tensor((4, 5))], "rank of argument 1 (x1)", [tensor((1, 4, 5))]),
        (known_shape, [tensor(None, ndim=2)], "shape of argument 1 (x1)", [tensor((16, 16))]),
        (lambda c: all(isinstance(d, tvm.tirx.IntImm) for d in c.annotated_expr["root"].ty.shape),
         [tensor((N, 4))], "symbolic dimension n", [tensor((16, 4))]),
    ],
    ids=["dtype", "multiple", "rank", "unknown shape", "symbolic"],
)  # fmt: skip
def test_a_written_check(check, types, label, mended):
    rules = [anything("t.multiply", "relax.multiply", 2, check)]
    reason = Case(module(square, *types), rules).of("relax.multiply")
    assert reason.code == "check-refused"
    assert label in reason.evidence, reason
    assert takes(module(square, *mended), rules, "relax.multiply")


def test_a_weight_must_be_constant_or_must_not():
    def value(context):
        return context.annotated_expr["root"].args[1]

    def free(emit, x, w):
        return emit(op.add(x, w))

    def bound(emit, x):
        return emit(op.add(x, const(4, 4)))

    two, one = (tensor((4, 4)), tensor((4, 4))), (tensor((4, 4)),)
    wants = [anything("t.add", "relax.add", 2, lambda c: not isinstance(value(c), relax.Var))]
    reason = Case(module(free, *two), wants).of("relax.add")
    assert reason.evidence["accepted"] == "a constant"
    assert "BindParams" in reason.mend
    assert takes(module(bound, *one), wants, "relax.add")
    minds = [anything("t.add", "relax.add", 2, lambda c: isinstance(value(c), relax.Var))]
    reason = Case(module(bound, *one), minds).of("relax.add")
    assert reason.evidence["accepted"] == "a variable"
    assert takes(module(free, *two), minds, "relax.add")


def test_two_conditions_in_one_line_are_found_in_pairs():
    def check(c):
        a = c.annotated_expr["root"].attrs
        return a.axis == 1 and c.annotated_expr["root"].ty.dtype == "float16"

    rules = [anything("t.softmax", "relax.nn.softmax", 1, check)]

    def build(axis):
        return lambda emit, x: emit(op.nn.softmax(x, axis=axis))

    reason = Case(module(build(0), tensor((4, 4))), rules).of("relax.nn.softmax")
    assert reason.evidence["attr axis"] == "0"
    assert reason.evidence["accepted"] == "axis=1, dtype=float16"
    assert takes(module(build(1), tensor((4, 4), "float16")), rules, "relax.nn.softmax")


def test_a_number_in_the_call():
    def check(c):
        return c.annotated_expr["root"].args[2].value == 6.0

    rules = [anything("t.clip", "relax.clip", 3, check)]

    def build(high):
        return lambda emit, x: emit(op.clip(x, 0.0, high))

    reason = Case(module(build(5.0), tensor((4,))), rules).of("relax.clip")
    assert reason.evidence["value of argument 3 (max)"] == "5.0"
    assert takes(module(build(float(reason.evidence["accepted"])), tensor((4,))), rules,
                 "relax.clip")  # fmt: skip


def test_a_check_that_never_agrees_says_so_with_its_place():
    def check(context):
        return False

    reason = Case(
        module(square, tensor((4, 4))), [anything("t.no", "relax.multiply", 2, check)]
    ).of("relax.multiply")
    assert reason.code == "check-refused"
    assert "accepted" not in reason.evidence
    line = check.__code__.co_firstlineno + 1
    assert f"test_probe.py:{line}" in reason.mend


def test_a_check_that_raises_says_what_without_the_pass():
    def check(context):
        if context.annotated_expr["root"].ty.dtype == "float32":
            raise NotImplementedError("no float32 here")
        return True

    rules = [anything("t.mul", "relax.multiply", 2, check)]
    mod = Tagger().tag(module(square, tensor((4, 4))))
    # The pass itself would raise; the reasons can still be asked for.
    with pytest.raises(Exception, match="no float32"):
        relax.transform.FuseOpsByPattern(rules)(mod)
    (reason,) = explain(mod, rules, calls(mod)).values()
    assert reason.code == "check-refused"
    assert "NotImplementedError: no float32 here" in reason.text
    assert reason.evidence["dtype"] == "float32"
    dtype = reason.evidence["accepted"]
    assert takes(module(square, tensor((4, 4), dtype)), rules, "relax.multiply")


def test_surroundings_that_nothing_explains_are_called_that():
    def check(context):
        return len(context.var_usages) < 4

    def build(emit, x):
        return emit(op.exp(emit(op.exp(emit(op.multiply(emit(op.exp(x)), x))))))

    reason = Case(module(build, tensor((4,))), [anything("t.m", "relax.multiply", 2, check)]).of(
        "relax.multiply"
    )
    assert reason.code == "check-refused"
    assert reason.evidence["alone"] == "accepted"
    assert "test_probe.py" in reason.mend
    assert takes(module(square, tensor((4,))), [anything("t.m", "relax.multiply", 2, check)],
                 "relax.multiply")  # fmt: skip


def test_probing_prints_nothing(capfd):
    Case(resize(layout="NHWC"), table("tensorrt"))
    out, err = capfd.readouterr()
    assert out == err == ""


@pytest.mark.parametrize("kinds", [1, 12])
def test_a_slow_check_is_not_probed_for_ever(monkeypatch, kinds):
    from byocviz.flow.relax.reasons import probe

    now = [0.0]
    monkeypatch.setattr(probe.time, "perf_counter", lambda: now[0])
    asked = Counter()

    def slow(context):
        asked["slow"] += 1
        now[0] += 1.0
        return False

    def quick(context):
        asked["quick"] += 1
        return str(context.annotated_expr["root"].ty.dtype) == "float16"

    def build(emit, *params):
        return [emit(make(x)) for x in params for make in (op.exp, op.log, op.tanh)]

    mod = module(build, *[tensor((2, i + 1)) for i in range(kinds)])
    rules = [
        anything("t.slow", "relax.exp", check=slow),
        anything("t.slower", "relax.tanh", check=lambda c: slow(c)),
        anything("t.quick", "relax.log", check=quick),
    ]
    case = Case(mod, rules)
    # Each check was asked once for every match by the pass itself.
    assert asked["slow"] - 2 * kinds <= 4
    for name, where in (("relax.exp", "slow"), ("relax.tanh", "slower")):
        for nth in range(kinds):
            reason = case.of(name, nth)
            assert reason.code == "check-refused"
            assert reason.rule == f"t.{where}"
            assert "no change was found in the time given" in reason.text
            assert reason.evidence["probing"] == "stopped"
            assert re.search(r"test_probe\.py:\d+", reason.evidence["check"])
            assert reason.evidence["check"] in reason.mend
    # A quick check is probed all the same.
    assert case.of("relax.log").evidence["accepted"] == "float16"
    assert asked["quick"] > kinds


def test_a_check_that_waits_is_not_asked_often():
    import time

    asked = []

    def waiting(context):
        asked.append(context)
        time.sleep(0.4)
        return False

    mod = module(lambda e, x: e(op.exp(x)), tensor((2, 3)))
    case = Case(mod, [anything("t.slow", "relax.exp", check=waiting)])
    assert "in the time given" in case.of("relax.exp").text
    assert len(asked) < 10


@pytest.mark.parametrize("relu", [False, True], ids=["alone", "with relu"])
@pytest.mark.parametrize("deep", [False, True], ids=["groups", "groups and more"])
def test_groups_of_a_depthwise_convolution(deep, relu):
    """The weight's shape goes with them: no size is named that the check does not read."""
    conv = is_op("relax.nn.conv2d")(wildcard(), wildcard())
    whole = is_op("relax.nn.relu")(conv) if relu else conv

    def check(context):
        call = context.annotated_expr["conv"]
        if call.attrs.groups != 1:
            return False
        return not deep or (int(call.args[0].ty.shape[1]) % 8 == 0 and call.attrs.dilation[0] == 1)

    def build(emit, x, w):
        made = emit(op.nn.conv2d(x, w, padding=1, groups=32))
        return emit(op.nn.relu(made)) if relu else made

    mod = module(build, tensor((1, 32, 8, 8), "float32"), tensor((32, 1, 3, 3), "float32"))
    mine = byocviz.Backend("t", [("t.conv", whole, {"conv": conv}, check)])
    found = byocviz.record(mod, mine, prune=False, progress=False).last.reasons.values()
    assert {r.text for r in found} == {"t.conv refuses groups 32; with 1 it matches."}
    assert {r.mend for r in found} == {
        "Export the model with groups=1; the weight's shape follows."
    }
