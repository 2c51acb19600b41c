from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import tvm
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import relax, te, topi

from byocviz.flow.relax import surgery as s
from byocviz.flow.relax.prepare import apply, clip

X = np.array([[-7.5, -0.0, 0.5], [3.0, 6.0, np.inf], [-np.inf, 1e-30, 100.0]], "float32")


def clipped(lab: Any, lo: Any = None, hi: Any = None, dims: Any = (3, 3), **options: Any) -> Any:
    names = ["x", "lo" if lo is not None else "", "hi" if hi is not None else ""]
    while not names[-1]:
        names.pop()
    dtype = options.get("dtype", "float32")
    constants = {n: np.asarray(v, dtype) for n, v in (("lo", lo), ("hi", hi)) if v is not None}
    return lab.tagged(lab.onnx([("Clip", names, {})], {"x": list(dims)}, constants, **options))


def check(lab: Any, mod: Any, expected: dict[str, int], x: np.ndarray = X) -> Any:
    after, ctx = apply(mod, "clip")
    assert lab.ops(after) == expected
    assert lab.well_formed(after)
    lab.kept(mod, after)
    again, more = apply(after, "clip")
    assert again is after
    assert more.count == 0
    for a, b in zip(lab.run(mod, x), lab.run(after, x), strict=True):
        np.testing.assert_array_equal(a, b)
    return ctx


def test_both_bounds(lab: Any) -> None:
    ctx = check(lab, clipped(lab, 0.0, 6.0), {"relax.clip": 1})
    assert ctx.count == 1
    assert not ctx.left


def test_one_bound_is_exact_even_for_nan(lab: Any) -> None:
    x = X.copy()
    x[0, 0] = np.nan
    assert check(lab, clipped(lab, 0.5), {"relax.maximum": 1}, x).count == 1
    assert check(lab, clipped(lab, None, 0.5), {"relax.minimum": 1}, x).count == 1


def test_bounds_of_one_element(lab: Any) -> None:
    assert check(lab, clipped(lab, [0.0], [6.0]), {"relax.clip": 1}).count == 1


def test_immediate_bounds_of_old_opsets(lab: Any) -> None:
    def old(**attrs: float) -> Any:
        return lab.tagged(lab.onnx([("Clip", ["x"], attrs)], {"x": [3, 3]}, opset=6))

    check(lab, old(min=0.0, max=6.0), {"relax.clip": 1})
    check(lab, old(min=0.25), {"relax.maximum": 1})
    check(lab, old(max=0.25), {"relax.minimum": 1})


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_integers(lab: Any, dtype: str) -> None:
    x = np.array([[-9, 0, 3], [7, 6, 5]], dtype)
    mod = clipped(lab, -2, 6, (2, 3), dtype=dtype)
    check(lab, mod, {"relax.clip": 1}, x)


def test_half_precision(lab: Any) -> None:
    check(lab, clipped(lab, 0.1, 6.0, dtype="float16"), {"relax.clip": 1}, X.astype("float16"))


def test_symbolic_shape(lab: Any) -> None:
    check(lab, clipped(lab, 0.0, 6.0, ("n", 3)), {"relax.clip": 1})


def test_crossed_bounds_keep_their_order(lab: Any) -> None:
    ctx = check(lab, clipped(lab, 6.0, 0.0), {"relax.maximum": 1, "relax.minimum": 1})
    assert ctx.count == 2


def test_inner_value_read_elsewhere(lab: Any) -> None:
    ctx = check(lab, by_hand(outputs="both"), {"relax.maximum": 1, "relax.minimum": 1})
    assert ctx.count == 2


def test_clamp_of_a_clamp(lab: Any) -> None:
    nodes = [("Clip", ["x", "lo", "hi"], {}), ("Clip", ["t0", "lo2", "hi2"], {})]
    values = {"lo": -5.0, "hi": 6.0, "lo2": 0.0, "hi2": 3.0}
    constants = {n: np.float32(v) for n, v in values.items()}
    mod = lab.tagged(lab.onnx(nodes, {"x": [3, 3]}, constants))
    assert check(lab, mod, {"relax.clip": 2}).count == 2


def by_hand(
    *,
    shape: Any = (3, 3),
    hi: Any = 6.0,
    outputs: str = "last",
    swapped: bool = False,
    first: Any = topi.maximum,
    second: Any = topi.minimum,
) -> Any:
    """max(x, 0) then min(., hi), each a PrimFunc, written without an importer."""
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(shape, "float32"))
    lo, top = relax.const(0.0, "float32"), relax.const(np.asarray(hi, "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            a = bb.emit_te(first, *((lo, x) if swapped else (x, lo)))
            b = bb.emit_te(second, *((top, a) if swapped else (a, top)))
            out = bb.emit_output(relax.Tuple([a, b]) if outputs == "both" else b)
        bb.emit_func_output(out)
    return bb.get()


def test_operands_the_other_way_round(lab: Any) -> None:
    check(lab, by_hand(swapped=True), {"relax.clip": 1})


def test_minimum_first_is_exact_even_for_nan(lab: Any) -> None:
    x = X.copy()
    x[0, 0] = np.nan
    check(lab, by_hand(first=topi.minimum, second=topi.maximum, hi=-2.0), {"relax.clip": 1}, x)


def test_argument_that_the_primfunc_does_not_read(lab: Any) -> None:
    mod = by_hand(first=lambda x, _: topi.minimum(x, 6.0), second=lambda x, _: topi.maximum(x, 1.0))
    refused(lab, mod, {clip.NOT_ELEMENTWISE: 2})


def refused(lab: Any, mod: Any, left: dict[str, int]) -> None:
    after, ctx = apply(mod, "clip")
    assert after is mod
    assert ctx.count == 0
    assert ctx.left == left


def test_nan_bound_is_left(lab: Any) -> None:
    mod = clipped(lab, math.nan)
    refused(lab, mod, {clip.IS_NAN: 1})


def test_bound_that_varies_over_the_input_is_left(lab: Any) -> None:
    mod = by_hand(hi=[1.0, 2.0, 3.0])
    after, ctx = apply(mod, "clip")
    assert ctx.left == {clip.NOT_SCALAR: 1}
    assert lab.ops(after) == {"relax.maximum": 1, "relax.call_tir": 1}


def test_bound_that_is_no_constant_is_left(lab: Any) -> None:
    mod = lab.onnx([("Clip", ["x", "lo", "hi"], {})], {"x": [3, 3], "lo": [], "hi": []})
    refused(lab, mod, {clip.NOT_CONSTANT: 2})


def test_other_primfuncs_are_not_taken_by_their_name(lab: Any) -> None:
    def maximum(x: Any, low: Any) -> Any:  # reads its neighbour
        return te.compute(x.shape, lambda i, j: te.max(x[i, 2 - j], low()), name="T_maximum")

    mod = by_hand(first=maximum)
    after, ctx = apply(mod, "clip")
    assert ctx.left == {clip.NOT_ELEMENTWISE: 1}
    assert lab.ops(after) == {"relax.call_tir": 1, "relax.minimum": 1}

    def reduced(x: Any, _low: Any) -> Any:
        return topi.max(x, axis=0, keepdims=True)

    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, 3), "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            out = bb.emit_output(bb.call_te(reduced, x, relax.const(0.0)))
        bb.emit_func_output(out)
    mod = bb.get()
    assert apply(mod, "clip")[0] is mod


def test_broadcast_of_the_input_is_no_clamp(lab: Any) -> None:
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((), "float32"))
    low = relax.const(np.zeros((3,), "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            out = bb.emit_output(bb.call_te(topi.maximum, x, low))
        bb.emit_func_output(out)
    mod = bb.get()
    after, ctx = apply(mod, "clip")
    assert after is mod
    assert sum(ctx.left.values()) == 1


def test_shared_guard_stays_while_something_reads_it(lab: Any) -> None:
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((3, 3), "float32"))
    c = relax.const(0.5, "float32")
    with bb.function("main", [x]):
        with bb.dataflow():
            test = bb.emit(relax.op.isnan(c))
            guard = bb.emit(relax.op.where(test, relax.const(-np.inf, "float32"), c))
            a = bb.emit_te(topi.maximum, x, guard)
            b = bb.emit(relax.op.multiply(a, guard))
            out = bb.emit_output(b)
        bb.emit_func_output(out)
    mod = lab.tagged(bb.get())
    check(lab, mod, {"relax.isnan": 1, "relax.where": 1, "relax.maximum": 1, "relax.multiply": 1})


def test_in_a_branch_and_another_entry(lab: Any) -> None:
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((3, 3), "float32"))
    c = relax.Var("c", relax.TensorType((), "bool"))
    prim = te.placeholder((), "float32")
    grid = te.placeholder([tvm.tirx.IntImm("int64", 3)] * 2, "float32")
    gv = bb.add_func(te.create_prim_func([grid, prim, topi.maximum(grid, prim)]), "top")
    ty = relax.TensorType((3, 3), "float32")
    call = relax.op.call_tir
    with bb.function("start", [x, c], private=True):
        low = relax.const(1.0, "float32")
        then = relax.Var("t", ty)
        other = relax.Var("e", ty)
        branch = relax.If(
            c,
            relax.SeqExpr(
                [relax.BindingBlock([relax.VarBinding(then, call(gv, [x, low], ty))])], then
            ),
            relax.SeqExpr([relax.BindingBlock([relax.VarBinding(other, relax.op.exp(x))])], other),
        )
        bb.emit_func_output(bb.emit(branch))
    mod = bb.get()
    after, ctx = apply(mod, "clip", entry="start")
    assert ctx.count == 1
    assert lab.ops(after) == {"relax.maximum": 1, "relax.exp": 1}
    for flag in (True, False):
        a, b = (lab.run(m, X, np.array(flag), entry="start") for m in (mod, after))
        np.testing.assert_array_equal(a, b)


@settings(max_examples=12, deadline=None)
@given(
    bounds=st.tuples(*[st.none() | st.floats(-8, 8, width=32)] * 2).filter(
        lambda b: any(v is not None for v in b)
    ),
    dims=st.lists(st.integers(1, 4), min_size=0, max_size=4),
    seed=st.integers(0, 99),
)
def test_values_stay(lab: Any, bounds: Any, dims: list[int], seed: int) -> None:
    mod = clipped(lab, *bounds, dims)
    after, ctx = apply(mod, "clip")
    assert ctx.count >= 1
    assert not ctx.left
    assert lab.ops(after)["relax.call_tir"] == 0
    x = (np.random.default_rng(seed).standard_normal(dims) * 6).astype("float32")
    for a, b in zip(lab.run(mod, x), lab.run(after, x), strict=True):
        np.testing.assert_array_equal(a, b)


def test_linear_in_the_number_of_operators(lab: Any) -> None:
    nodes = [("Clip", ["x" if i == 0 else f"t{i - 1}", "lo", "hi"], {}) for i in range(300)]
    mod = lab.onnx(nodes, {"x": [3, 3]}, {"lo": np.float32(0), "hi": np.float32(6)})
    after, ctx = apply(mod, "clip")
    assert ctx.count == 300
    assert lab.ops(after) == {"relax.clip": 300}
    assert len(s.View(after["main"]).bindings) <= 301
