"""Stand-ins for what MergeCompositeFunctions has no case for.

A match_cast, a call of a packed function or an argument that is a string, say, is replaced by a
call of an empty function on the same variables: the pass sees the same flow of data. Afterwards
what it stood for is put back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import relax
from tvm.ir import GlobalVar, Op

from byocviz.flow.relax.compat import Constant
from byocviz.flow.relax.passes.inline import substitute
from byocviz.flow.relax.surgery import rebind, with_body

_PLAIN = (relax.Var, Constant, relax.ShapeExpr, GlobalVar)


def stub(function: Any) -> Any:
    """A function of the same type that holds nothing to merge."""
    return _stub(list(function.params), function.ret_ty)


def _stub(params: list[Any], ret_ty: Any) -> Any:
    body = relax.Call(relax.ExternFunc("byocviz.stub"), params, ty_args=[ret_ty])
    return relax.Function(params, body, ret_ty, False).with_attr("global_symbol", "byocviz_stub")


def typed(var: Any, function: Any) -> Any:
    """The global variable with the function's type, which the calls of it are checked against."""
    relax.expr._update_type(var, function.ty)
    return var


def _is_plain(expr: Any) -> bool:
    """Whether the pass has a case for it."""
    if isinstance(expr, relax.Call):
        return isinstance(expr.op, (Op, GlobalVar)) and all(_is_plain(a) for a in expr.args[:])
    if isinstance(expr, relax.Tuple):
        return all(_is_plain(field) for field in expr.fields[:])
    if isinstance(expr, relax.TupleGetItem):
        return _is_plain(expr.tuple_value)
    return isinstance(expr, _PLAIN)


class StandIns:
    """Puts stand-ins into one function's dataflow blocks, and what they stand for back."""

    def __init__(self, unused: Callable[[str], str]) -> None:
        self.unused = unused
        self.functions: dict[Any, Any] = {}
        self._away: dict[Any, tuple[Any, list[Any]]] = {}
        """By stand-in: the binding that it stands for, and the variables which that reads."""

    def put(self, function: Any) -> Any:
        blocks = [
            type(block)([self._put(binding) for binding in block.bindings[:]], block.span)
            for block in function.body.blocks[:]
        ]
        if not self._away:
            return function
        body = relax.SeqExpr(blocks, function.body.body, function.body.span)
        return with_body(function, body)

    def _put(self, binding: Any) -> Any:
        if isinstance(binding, relax.VarBinding) and _is_plain(binding.value):
            return binding
        reads = list(relax.analysis.free_vars(binding.value))
        params = [relax.Var(var.name, var.ty) for var in reads]
        function = _stub(params, binding.var.ty)
        var = typed(GlobalVar(self.unused(f"stand_in_{len(self._away)}")), function)
        self.functions[var] = function
        self._away[var] = binding, reads
        return relax.VarBinding(
            binding.var, relax.Call(var, reads, ret_ty=binding.var.ty), binding.span
        )

    def take(self, seq: Any) -> Any:
        """The merged body with everything put back."""
        if not self._away:
            return seq
        blocks = [
            type(block)([self._take(binding) for binding in block.bindings[:]], block.span)
            for block in seq.blocks[:]
        ]
        return relax.SeqExpr(blocks, seq.body, seq.span)

    def _take(self, binding: Any) -> Any:
        value = binding.value
        if not isinstance(value, relax.Call) or value.op not in self._away:
            return binding
        original, reads = self._away[value.op]
        now = dict(zip(reads, value.args[:], strict=True))
        return rebind(original, substitute(original.value, now), binding.var)
