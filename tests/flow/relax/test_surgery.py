from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("tvm")

import numpy as np
import tvm
from tvm import relax

from byocviz.flow.relax import surgery as s

TY = relax.TensorType((2, 3), "float32")


def nested() -> Any:
    """add, then an If with exp / (sin, cos), then multiply; a local function beside."""
    bb = relax.BlockBuilder()
    x, c = relax.Var("x", TY), relax.Var("c", relax.TensorType((), "bool"))
    with bb.function("main", [x, c]):
        a = bb.emit(relax.op.add(x, x), "a")
        t, e, f = (relax.Var(n, TY) for n in ("t", "e", "f"))
        y = relax.Var("y", TY)
        local = relax.Function([y], relax.SeqExpr([], y), TY)
        then = relax.SeqExpr([relax.BindingBlock([relax.VarBinding(t, relax.op.exp(a))])], t)
        other = relax.SeqExpr(
            [
                relax.BindingBlock(
                    [
                        relax.VarBinding(e, relax.op.sin(a)),
                        relax.VarBinding(f, relax.op.cos(e)),
                    ]
                )
            ],
            f,
        )
        r = bb.emit(relax.If(c, then, other), "r")
        bb.emit(local, "g")
        bb.emit_func_output(bb.emit(relax.op.multiply(r, a), "m"))
    return bb.get()


def names(mod: Any) -> list[str]:
    return [s.op_name(call) for call in s.calls_in(mod["main"])]


def variable(view: s.View, name: str) -> Any:
    return next(b.var for b in view.bindings.values() if b.var.name == name)


def test_walks_reach_branches_and_local_functions() -> None:
    mod = nested()
    assert sorted(names(mod)) == [f"relax.{n}" for n in ("add", "cos", "exp", "multiply", "sin")]
    view = s.View(mod["main"])
    assert view.uses[s.key(variable(view, "a"))] == 3
    assert view.uses[s.key(mod["main"].params[0])] == 2
    assert s.op_name(view.value(variable(view, "f"))) == "relax.cos"


def test_nothing_changed_is_the_same_object() -> None:
    mod = nested()
    assert s.map_functions(mod, lambda _, f: f) is mod
    assert s.map_functions(mod, lambda _, f: s.map_blocks(f, lambda block: [block])) is mod
    assert s.map_functions(mod, lambda _, f: s.Edits(s.View(f)).apply()) is mod
    call = next(s.calls_in(mod["main"]))
    assert s.substitute(call, {1: call}) is call


def test_map_blocks_reaches_every_block() -> None:
    mod = nested()
    seen = []

    def drop_empty(block: Any) -> list[Any]:
        seen.append([str(b.var.name) for b in block.bindings])
        return [s.with_bindings(block, block.bindings)]

    made = s.map_functions(mod, lambda _, f: s.map_blocks(f, drop_empty))
    assert ["t"] in seen
    assert ["e", "f"] in seen
    assert made is not mod
    assert s.equal(made, mod)
    assert relax.analysis.well_formed(made) is not False


def test_edits_replace_remove_and_substitute() -> None:
    mod = nested()
    view = s.View(mod["main"])
    edits = s.Edits(view)
    a, e, f = (variable(view, n) for n in "aef")
    edits.read_instead(a, mod["main"].params[0])
    new = view.beside(f, "new", TY)
    edits.rebind(f, relax.op.tanh(new), [relax.VarBinding(new, relax.op.exp(e))])
    assert edits.uses[s.key(a)] == 0
    assert edits.uses[s.key(e)] == 1
    made = s.with_functions(mod, {mod.get_global_var("main"): edits.apply()})
    assert sorted(names(made)) == [f"relax.{n}" for n in ("exp", "exp", "multiply", "sin", "tanh")]
    assert relax.analysis.well_formed(made) is not False
    assert sorted(names(mod)) == [f"relax.{n}" for n in ("add", "cos", "exp", "multiply", "sin")]


def test_only_unread_values_are_removed() -> None:
    mod = nested()
    view = s.View(mod["main"])
    edits = s.Edits(view)
    e, f, m = (variable(view, n) for n in "efm")
    edits.rebind(f, relax.op.abs(mod["main"].params[0]))
    edits.remove_unread([e, m])
    made = s.with_functions(mod, {mod.get_global_var("main"): edits.apply()})
    assert sorted(names(made)) == [f"relax.{n}" for n in ("abs", "add", "exp", "multiply")]


def test_calls_on_other_arguments_keep_span_and_type() -> None:
    from tvm.ir import SourceName, Span

    x, y = relax.Var("x", TY), relax.Var("y", TY)
    span = Span(SourceName("byocviz"), 7, 7, 0, 0)
    call = relax.Call(tvm.ir.Op.get("relax.add"), [x, x], None, [], span, ret_ty=TY)
    for made in (s.with_args(call, [x, y]), s.substitute(call, {s.key(x): y})):
        assert made.span.line == 7
        assert s.equal(made.ty, TY)
        assert made.args[1].same_as(y)


def test_dataflow_variables_live_in_their_block() -> None:
    bb = relax.BlockBuilder()
    x = relax.Var("x", TY)
    with bb.function("main", [x]):
        with bb.dataflow():
            inner = bb.emit(relax.op.exp(x))
            shown = bb.emit_output(relax.op.sin(inner))
        last = bb.emit(relax.op.cos(shown))
        bb.emit_func_output(last)
    view = s.View(bb.get()["main"])
    last = next(b.var for b in view.bindings.values() if s.op_name(b.value) == "relax.cos")
    shown = next(b.var for b in view.bindings.values() if s.op_name(b.value) == "relax.sin")
    inner = view.bindings[s.key(shown)].value.args[0]
    assert view.visible(inner, shown)
    assert not view.visible(inner, last)
    assert view.visible(shown, last)
    assert isinstance(view.beside(shown, "n", TY), relax.DataflowVar)
    assert not isinstance(view.beside(last, "n", TY), relax.DataflowVar)


def test_constants_shapes_and_types() -> None:
    value = np.arange(6, dtype="int8").reshape(2, 3)
    constant = relax.const(value)
    assert s.is_constant(constant)
    assert not s.is_constant(relax.Var("x", TY))
    np.testing.assert_array_equal(s.to_numpy(constant), value)
    assert s.static_shape(constant.ty) == (2, 3)
    assert s.dtype_of(constant.ty) == "int8"
    assert s.static_shape(relax.TensorType(None, "float32", ndim=2)) is None
    assert s.static_shape(relax.TensorType((tvm.tirx.Var("n", "int64"), 3), "float32")) is None
    assert s.static_shape(relax.TupleType([])) is None
    assert s.dtype_of(relax.TupleType([])) == ""
    assert s.dtype_of(relax.TensorType((2,), None)) == ""
    assert s.op_name(constant) == ""
