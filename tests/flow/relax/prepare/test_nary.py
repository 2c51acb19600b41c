from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import relax

from byocviz.flow.relax.prepare import apply, nary

OPS = {"Sum": "relax.add", "Mean": "relax.add", "Max": "relax.maximum", "Min": "relax.minimum"}


def imported(lab: Any, op: str, shapes: list[Any], **options: Any) -> Any:
    names = [f"x{i}" for i in range(len(shapes))]
    return lab.tagged(lab.onnx([(op, names, {})], dict(zip(names, shapes, strict=True)), **options))


def values(shapes: list[Any], seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    sizes = [[3 if isinstance(d, str) else d for d in shape] for shape in shapes]
    return [rng.standard_normal(shape).astype("float32") for shape in sizes]


def check(lab: Any, mod: Any, expected: dict[str, int], arrays: list[np.ndarray]) -> Any:
    after, ctx = apply(mod, "nary")
    assert lab.ops(after) == expected
    assert lab.well_formed(after)
    lab.kept(mod, after)
    assert apply(after, "nary")[0] is after
    for a, b in zip(lab.run(mod, *arrays), lab.run(after, *arrays), strict=True):
        np.testing.assert_array_equal(a, b)
    return ctx


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("count", [2, 3, 5])
def test_chain(lab: Any, op: str, count: int) -> None:
    shapes = [[2, 3]] * count
    expected = {OPS[op]: count - 1} | ({"relax.divide": 1} if op == "Mean" else {})
    ctx = check(lab, imported(lab, op, shapes), expected, values(shapes))
    assert ctx.count == 1
    assert not ctx.left


def test_operands_that_broadcast(lab: Any) -> None:
    shapes = [[4], [2, 1, 4], [3, 1]]
    check(lab, imported(lab, "Sum", shapes), {"relax.add": 2}, values(shapes))


def test_a_broadcast_that_no_operand_reaches_stays(lab: Any) -> None:
    bb = relax.BlockBuilder()
    args = [relax.Var(n, relax.TensorType((1, 3), "float32")) for n in "ab"]
    with bb.function("main", args):
        with bb.dataflow():
            wide = [bb.emit(relax.op.broadcast_to(a, (2, 3))) for a in args]
            stack = bb.emit(relax.op.stack(wide, axis=0))
            out = bb.emit_output(relax.op.sum(stack, axis=0))
        bb.emit_func_output(out)
    expected = {"relax.broadcast_to": 2, "relax.add": 1}
    check(lab, lab.tagged(bb.get()), expected, values([[1, 3]] * 2))


def test_one_operand(lab: Any) -> None:
    check(lab, imported(lab, "Sum", [[2, 3]]), {}, values([[2, 3]]))
    nodes = [("Sum", ["x"], {}), ("Relu", ["t0"], {})]
    mod = lab.tagged(lab.onnx(nodes, {"x": [2, 3]}))
    check(lab, mod, {"relax.nn.relu": 1}, values([[2, 3]]))


def test_symbolic_shapes(lab: Any) -> None:
    bb = relax.BlockBuilder()
    n = _symbol()
    a = relax.Var("a", relax.TensorType((n, 3), "float32"))
    b = relax.Var("b", relax.TensorType((3,), "float32"))
    with bb.function("main", [a, b]):
        with bb.dataflow():
            wide = [bb.emit(relax.op.broadcast_to(v, (n, 3))) for v in (a, b)]
            out = bb.emit_output(relax.op.max(bb.emit(relax.op.stack(wide, axis=0)), axis=0))
        bb.emit_func_output(out)
    check(lab, lab.tagged(bb.get()), {"relax.maximum": 1}, values([["n", 3], [3]]))


def _symbol() -> Any:
    from tvm import tirx

    return tirx.Var("n", "int64")


def stacked(
    *,
    axis: int = 0,
    reduced: int = 0,
    keepdims: bool = False,
    twice: bool = False,
    dtype: str = "float32",
    op: Any = relax.op.sum,
) -> Any:
    bb = relax.BlockBuilder()
    args = [relax.Var(n, relax.TensorType((2, 2), dtype)) for n in "ab"]
    with bb.function("main", args):
        with bb.dataflow():
            stack = bb.emit(relax.op.stack(args, axis=axis))
            out = bb.emit(op(stack, axis=reduced, keepdims=keepdims))
            result = bb.emit_output(relax.Tuple([out, stack] if twice else [out]))
        bb.emit_func_output(result)
    return bb.get()


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        ({"twice": True}, nary.READ_ELSEWHERE),
        ({"reduced": 1}, nary.OTHER_AXIS),
        ({"axis": 2, "reduced": 0}, nary.OTHER_AXIS),
        ({"reduced": [0, 1]}, nary.OTHER_AXIS),
        ({"reduced": None}, nary.OTHER_AXIS),
        ({"keepdims": True}, nary.KEPT_AXIS),
        ({"dtype": "int32", "op": relax.op.mean}, nary.NOT_FLOAT),
    ],
)
def test_what_is_left(lab: Any, options: dict[str, Any], cause: str) -> None:
    mod = stacked(**options)
    after, ctx = apply(mod, "nary")
    assert after is mod
    assert ctx.count == 0
    assert ctx.left == {cause: 1}


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_any_axis_if_it_is_the_stacks_own(lab: Any, axis: int) -> None:
    mod = lab.tagged(stacked(axis=axis, reduced=axis))
    check(lab, mod, {"relax.add": 1}, values([[2, 2]] * 2))


def test_integer_sum(lab: Any) -> None:
    mod = lab.tagged(stacked(dtype="int32"))
    check(lab, mod, {"relax.add": 1}, [v.astype("int32") for v in values([[2, 2]] * 2)])


def test_infinities_differ_as_the_rewrite_says(lab: Any) -> None:
    mod = imported(lab, "Max", [[1], [1]])
    low = np.array([-np.inf], "float32")
    assert lab.run(apply(mod, "nary")[0], low, low)[0] == -np.inf
    assert "infinity" in nary.SPEC.assumes


@settings(max_examples=12, deadline=None)
@given(
    op=st.sampled_from(sorted(OPS)),
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    data=st.data(),
    seed=st.integers(0, 99),
)
def test_values_stay(lab: Any, op: str, shape: list[int], data: Any, seed: int) -> None:
    shapes = []
    for _ in range(data.draw(st.integers(2, 4))):
        ones = [data.draw(st.booleans()) for _ in shape]
        full = [1 if one else d for one, d in zip(ones, shape, strict=True)]
        shapes.append(full[data.draw(st.integers(0, len(full) - 1)) :])
    mod = imported(lab, op, shapes)
    after, ctx = apply(mod, "nary")
    assert ctx.count == 1
    assert not ctx.left
    lab.kept(mod, after)
    arrays = values(shapes, seed)
    for a, b in zip(lab.run(mod, *arrays), lab.run(after, *arrays), strict=True):
        np.testing.assert_array_equal(a, b)
