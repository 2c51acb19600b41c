"""All rewrites together, on random modules, on the bundled network and on a long chain."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import relax, topi

from byocviz.errors import StepMissing
from byocviz.flow.relax import surgery as s
from byocviz.flow.relax.prepare import REWRITES, PrepareContext, apply, apply_all, rewrite

SHAPE = (1, 4, 4, 4)


def step(bb: Any, draw: Any, values: list[Any], rng: np.random.Generator) -> Any:
    """One more value of shape `SHAPE`, made in a way that some rewrite knows, or none does."""
    x, y = (draw(st.sampled_from(values)) for _ in range(2))

    def constant(*shape: int) -> Any:
        return relax.const(rng.standard_normal(shape).astype("float32"))

    kind = draw(st.sampled_from(KINDS))
    if kind == "clip":
        lo, hi = sorted(rng.uniform(-2, 2, 2))
        c = relax.const(lo, "float32")
        guard = bb.emit(
            relax.op.where(bb.emit(relax.op.isnan(c)), relax.const(-np.inf, "float32"), c)
        )
        low = bb.emit_te(topi.maximum, x, guard)
        values.append(low)
        return bb.emit_te(topi.minimum, low, relax.const(hi, "float32"))
    if kind in ("sum", "max", "min", "mean"):
        parts = [bb.emit(relax.op.broadcast_to(v, SHAPE)) for v in (x, constant(4, 1, 1), y)]
        stack = bb.emit(relax.op.stack(parts, axis=0))
        return bb.emit(getattr(relax.op, kind)(stack, axis=0))
    if kind == "conv":
        weight, bias = constant(4, 4, 3, 3), bb.emit(relax.op.reshape(constant(4), (1, 4, 1, 1)))
        value = bb.emit(relax.op.nn.conv2d(x, weight, padding=1))
        value = bb.emit(relax.op.add(value, bias))
        stats = [constant(4), constant(4), constant(4), relax.const(np.ones(4, "float32"))]
        norm = bb.emit(relax.op.nn.batch_norm(value, *stats, axis=1, training=draw(st.booleans())))
        return bb.emit(relax.TupleGetItem(norm, 0))
    if kind == "constants":
        moved = bb.emit(relax.op.permute_dims(constant(*SHAPE), [0, 3, 1, 2]))
        return bb.emit(relax.op.multiply(x, bb.emit(relax.op.sin(moved))))
    if kind == "add":
        return bb.emit(relax.op.add(x, y))
    return bb.emit(relax.op.tanh(x))


KINDS = ["clip", "sum", "max", "min", "mean", "conv", "constants", "add", "other"]


def branch(bb: Any, x: Any, cond: Any, op: Any) -> Any:
    """x, or an operator of it and a clamp, by a condition."""
    ty = relax.TensorType(SHAPE, "float32")
    a, b, c = (relax.Var(n, ty) for n in "abc")
    then = relax.SeqExpr(
        [relax.BindingBlock([relax.VarBinding(a, op(x)), relax.VarBinding(b, relax.op.abs(a))])], b
    )
    other = relax.SeqExpr([relax.BindingBlock([relax.VarBinding(c, relax.op.exp(x))])], c)
    return bb.emit(relax.If(cond, then, other))


@st.composite
def modules(draw: Any) -> Any:
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(SHAPE, "float32"))
    cond = relax.Var("c", relax.TensorType((), "bool"))
    dataflow = draw(st.booleans())
    with bb.function("start", [x, cond], private=draw(st.booleans())):
        values = [x]

        def steps() -> None:
            for _ in range(draw(st.integers(1, 4))):
                values.append(step(bb, draw, values, rng))

        if dataflow:
            with bb.dataflow():
                steps()
                out = bb.emit_output(values[-1])
        else:
            steps()
            out = values[-1]
            if draw(st.booleans()):
                out = branch(bb, out, cond, draw(st.sampled_from([relax.op.sin, relax.op.cos])))
        bb.emit_func_output(out)
    return bb.get()


@settings(max_examples=15, deadline=None)
@given(mod=modules(), flag=st.booleans(), seed=st.integers(0, 99))
def test_each_rewrite_keeps_values_spans_and_itself(
    lab: Any, mod: Any, flag: bool, seed: int
) -> None:
    mod = first = lab.tagged(mod)
    for spec in REWRITES:
        ctx = PrepareContext(entry="start")
        after = spec.run(mod, ctx)
        assert (after is mod) == (ctx.count == 0), spec.name
        if spec.name != "aliases":  # it is there to give a call another variable's name
            lab.kept(mod, after)
        assert lab.well_formed(after), spec.name
        if spec.name != "dataflow-blocks":
            assert not ctx.left or set(ctx.left) <= LEFT, ctx.left
        assert spec.run(after, PrepareContext(entry="start")) is after, spec.name
        mod = lab.tagged(after) if after is not mod else mod
    left = lab.ops(mod)
    assert not set(left) & {"relax.stack", "relax.isnan", "relax.where", "relax.call_tir"}
    assert left["relax.permute_dims"] == left["relax.reshape"] == 0
    x = np.random.default_rng(seed).standard_normal(SHAPE).astype("float32")
    for a, b in zip(
        *(lab.run(m, x, np.array(flag), entry="start") for m in (first, mod)), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-3)


LEFT = {"a batch_norm in training mode: it normalises by the batch at hand"}


def test_names_are_unique_and_calls_run_when_pasted(lab: Any) -> None:
    assert len({spec.name for spec in REWRITES}) == len(REWRITES)
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((2,), "float32"))
    w = relax.Var("w", relax.TensorType((2,), "float32"))
    with bb.function("start", [x, w]):
        bb.emit_func_output(bb.emit(relax.op.add(x, w)))
    for spec in REWRITES:
        assert spec.text
        assert spec.origin in ("tvm", "byocviz")
        scope = {"mod": bb.get(), "params": {"w": np.ones(2, "float32")}, "tvm": tvm}
        exec(spec.call_for("start"), scope)
        assert isinstance(scope["mod"], tvm.IRModule)
    with pytest.raises(StepMissing, match="clip"):
        rewrite("klip")


def test_a_module_without_relax_functions(lab: Any) -> None:
    mod = tvm.IRModule({})
    assert apply_all(mod) is mod
    constants = {"lo": np.float32(0), "hi": np.float32(1)}
    whole = lab.onnx([("Clip", ["x", "lo", "hi"], {})], {"x": [2]}, constants)
    prims = {gv: f for gv, f in whole.functions.items() if not isinstance(f, relax.Function)}
    only = tvm.IRModule(prims)
    for spec in REWRITES[:-1]:
        assert apply(only, spec.name)[0] is only


def test_already_lowered(lab: Any) -> None:
    constants = {"w": np.ones((3, 3), "float32")}
    mod = lab.onnx([("MatMul", ["x", "w"], {}), ("Relu", ["t0"], {})], {"x": [2, 3]}, constants)
    mod = lab.tagged(relax.transform.LegalizeOps()(mod))
    x = np.float32([[1, -2, 3], [4, 5, -6]])
    after = apply_all(mod)
    lab.kept(mod, after)
    np.testing.assert_array_equal(lab.run(mod, x)[0], lab.run(after, x)[0])


def test_ten_thousand_operators(lab: Any) -> None:
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, 4), "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            y = x
            for _ in range(1250):
                bias = bb.emit(relax.op.reshape(relax.const(np.ones(4, "float32")), (1, 4)))
                y = bb.emit(relax.op.add(y, bias))
                wide = [bb.emit(relax.op.broadcast_to(v, (1, 4))) for v in (y, x)]
                y = bb.emit(relax.op.sum(bb.emit(relax.op.stack(wide, axis=0)), axis=0))
                y = bb.emit(relax.op.tanh(bb.emit(relax.op.exp(y))))
            out = bb.emit_output(y)
        bb.emit_func_output(out)
    mod = lab.tagged(bb.get())
    after = apply_all(mod)
    assert lab.ops(after) == {"relax.add": 2500, "relax.tanh": 1250, "relax.exp": 1250}
    assert len(lab.marks(after)) == 3750
    assert len(s.View(after["main"]).bindings) <= 5001
