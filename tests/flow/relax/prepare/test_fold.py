from __future__ import annotations

from typing import Any

import numpy as np
import tvm
from tvm import relax, te, topi

from byocviz.flow.relax import surgery as s
from byocviz.flow.relax.prepare import apply, fold

A = np.float32([[1, 2, 3], [4, 5, 6]])


def module(build: Any, private: bool = False) -> Any:
    """``build(bb, x)`` gives the output; x is 2 x 3."""
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((2, 3), "float32"))
    with bb.function("main", [x], private=private):
        with bb.dataflow():
            out = bb.emit_output(build(bb, x))
        bb.emit_func_output(out)
    return bb.get()


def check(lab: Any, mod: Any, expected: dict[str, int]) -> Any:
    mod = lab.tagged(mod)
    after, ctx = apply(mod, "fold-constants")
    assert lab.ops(after) == expected
    lab.kept(mod, after)
    assert lab.well_formed(after)
    assert apply(after, "fold-constants")[0] is after
    for a, b in zip(lab.run(mod, A), lab.run(after, A), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    return ctx


def test_arithmetic_on_constants(lab: Any) -> None:
    def build(bb: Any, x: Any) -> Any:
        c = bb.emit(relax.op.add(relax.const(A), relax.const(1.0, "float32")))
        d = bb.emit(relax.op.sqrt(c))
        shared = bb.emit(relax.op.multiply(c, d))
        return relax.op.add(relax.op.multiply(x, d), shared)

    ctx = check(lab, module(build), {"relax.multiply": 1, "relax.add": 1})
    assert ctx.count == 3
    assert not ctx.left


def test_creation_concat_and_aliases(lab: Any) -> None:
    def build(bb: Any, x: Any) -> Any:
        alias = bb.emit(relax.const(A), "alias")
        zeros = bb.emit(relax.op.zeros((2, 3), "float32"))
        both = bb.emit(relax.op.concat([alias, zeros], axis=0))
        return relax.op.matmul(both, relax.op.permute_dims(x))

    ctx = check(lab, module(build), {"relax.permute_dims": 1, "relax.matmul": 1})
    assert ctx.count == 2


def test_primfunc_on_constants(lab: Any) -> None:
    def build(bb: Any, x: Any) -> Any:
        c = bb.emit_te(topi.add, relax.const(A), relax.const(A))
        return relax.op.add(x, c)

    assert check(lab, module(build), {"relax.add": 1}).count == 1


def test_symbolic_values_and_tuples_are_no_target(lab: Any) -> None:
    n = tvm.tirx.Var("n", "int64")
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((n, 3), "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            ones = bb.emit(relax.op.ones((n, 3), "float32"))
            parts = bb.emit(relax.op.split(relax.const(A), 3, axis=1))
            one = bb.emit(relax.TupleGetItem(parts, 0))
            out = bb.emit_output(relax.op.add(relax.op.add(x, ones), relax.op.sum(one)))
        bb.emit_func_output(out)
    mod = bb.get()
    assert apply(mod, "fold-constants")[0] is mod


def test_large_and_quantised_are_left(lab: Any) -> None:
    mod = module(
        lambda bb, x: relax.op.add(
            relax.op.sum(relax.op.zeros((1100, 1000), "float32")), relax.op.sum(x)
        )
    )
    after, ctx = apply(mod, "fold-constants")
    assert after is mod
    assert ctx.left == {fold.TOO_LARGE: 1}

    def quantised(bb: Any, x: Any) -> Any:
        scale, zero = relax.const(np.float32([0.5])), relax.const(np.int8([0]))
        w = relax.const(np.ones((1, 3), "int8"))
        return relax.op.add(x, relax.op.dequantize(w, scale, zero, axis=0))

    mod = module(quantised)
    after, ctx = apply(mod, "fold-constants")
    assert after is mod
    assert ctx.left == {fold.QUANTISED: 1}


def test_a_primfunc_that_calls_foreign_code_is_not_run(lab: Any) -> None:
    def foreign(t: Any) -> Any:
        return te.compute(
            t.shape, lambda i, j: tvm.tirx.call_pure_extern("float32", "no_such_function", t[i, j])
        )

    def build(bb: Any, x: Any) -> Any:
        good = bb.emit(relax.op.exp(relax.const(A)))
        return relax.op.add(relax.op.add(x, good), bb.emit_te(foreign, relax.const(A)))

    after, ctx = apply(module(build), "fold-constants")
    assert ctx.count == 1
    assert ctx.left == {fold.CALLS_OUT: 1}
    assert lab.ops(after) == {"relax.add": 2, "relax.call_tir": 1}


def test_an_operator_that_raises_costs_no_other(lab: Any) -> None:
    def build(bb: Any, x: Any) -> Any:
        good = bb.emit(relax.op.exp(relax.const(A)))
        chained = bb.emit(relax.op.sqrt(good))
        return relax.op.add(relax.op.add(x, chained), bb.emit(relax.op.cos(relax.const(A))))

    def raising(bb: Any, call: Any) -> Any:
        raise ValueError("no lowering today")

    cos = tvm.ir.Op.get("relax.cos")
    lowering = cos.get_attr("FLegalize")
    cos.reset_attr("FLegalize")
    cos.set_attr("FLegalize", raising)
    try:
        after, ctx = apply(module(build), "fold-constants")
    finally:
        cos.reset_attr("FLegalize")
        cos.set_attr("FLegalize", lowering)
    assert ctx.count == 2
    assert ctx.left == {fold.TVM_RAISED: 1}
    assert lab.ops(after) == {"relax.add": 2, "relax.cos": 1}


def test_private_function_with_branches(lab: Any) -> None:
    bb = relax.BlockBuilder()
    c = relax.Var("c", relax.TensorType((), "bool"))
    x = relax.Var("x", relax.TensorType((2, 3), "float32"))
    ty = relax.TensorType((2, 3), "float32")

    def branch(op: Any) -> Any:
        k, v = relax.Var("k", ty), relax.Var("v", ty)
        bindings = [
            relax.VarBinding(k, op(relax.const(A))),
            relax.VarBinding(v, relax.op.add(x, k)),
        ]
        return relax.SeqExpr([relax.BindingBlock(bindings)], v)

    with bb.function("start", [x, c], private=True):
        bb.emit_func_output(bb.emit(relax.If(c, branch(relax.op.exp), branch(relax.op.sqrt))))
    mod = bb.get()
    after, ctx = apply(mod, "fold-constants", entry="start")
    assert ctx.count == 2
    assert lab.ops(after) == {"relax.add": 2}
    for flag in (True, False):
        a, b = (lab.run(m, A, np.array(flag), entry="start")[0] for m in (mod, after))
        np.testing.assert_allclose(a, b, rtol=1e-6)
    assert len(s.relax_functions(after)) == 1
