"""Puts a function's body where it is called, and variables where others stood."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tvm
from tvm import relax

from byocviz.flow.relax.compat import attribute
from byocviz.flow.relax.surgery import rebind, with_body


def substitute(expr: Any, by: Mapping[Any, Any]) -> Any:
    """The expression with variables (and global variables) replaced; itself where none was.

    Goes into calls, tuples, elements, local functions and Ifs; spans and types stay.
    """
    if isinstance(expr, relax.Call):
        op = by.get(expr.op) if not isinstance(expr.op, relax.Function) else None
        old = expr.args[:]
        new = [substitute(argument, by) for argument in old]
        if op is None and all(a is b for a, b in zip(old, new, strict=True)):
            return expr
        return relax.Call(
            expr.op if op is None else op, new, expr.attrs, expr.ty_args, expr.span, ret_ty=expr.ty
        )
    if isinstance(expr, relax.Tuple):
        old = expr.fields[:]
        new = [substitute(field, by) for field in old]
        if all(a is b for a, b in zip(old, new, strict=True)):
            return expr
        return relax.Tuple(new, expr.span)
    if isinstance(expr, relax.TupleGetItem):
        whole = expr.tuple_value
        other = substitute(whole, by)
        return expr if other is whole else relax.TupleGetItem(other, expr.index, expr.span)
    if isinstance(expr, (relax.Var, relax.GlobalVar)):
        return by.get(expr, expr)
    if isinstance(expr, relax.If):
        return relax.If(
            substitute(expr.cond, by),
            substitute(expr.true_branch, by),
            substitute(expr.false_branch, by),
            expr.span,
        )
    if isinstance(expr, relax.Function):
        return with_body(expr, substitute(expr.body, by))
    if isinstance(expr, relax.SeqExpr):
        blocks = [
            type(block)([rebind(b, substitute(b.value, by)) for b in block.bindings[:]])
            for block in expr.blocks[:]
        ]
        return relax.SeqExpr(blocks, substitute(expr.body, by), expr.span)
    return expr


def _match_symbols(param: Any, argument: Any, symbols: dict[Any, Any]) -> None:
    """What each symbolic dimension of a parameter's type is at the call."""
    if isinstance(param, relax.TupleType):
        for inner, outer in zip(param.fields, argument.fields, strict=True):
            _match_symbols(inner, outer, symbols)
        return
    dims = [getattr(getattr(ty, "shape", ty), "values", None) for ty in (param, argument)]
    if dims[0] is None or dims[1] is None:
        return
    for inner, outer in zip(*dims, strict=True):
        if isinstance(inner, tvm.tirx.Var) and not inner.same_as(outer):
            symbols.setdefault(inner, outer)


class Inliner:
    """Flattens calls of functions into the block that holds the calls."""

    def __init__(self, functions: Mapping[Any, Any]) -> None:
        self.functions = functions
        """Functions to put in place, by GlobalVar. Their local composite functions go too."""

    def block(self, block: Any) -> Any:
        """The block with the calls replaced; itself where it holds none."""
        self.env: dict[Any, Any] = {}
        dataflow = isinstance(block, relax.DataflowBlock)
        self.variable = relax.DataflowVar if dataflow else relax.Var
        bindings: list[Any] = []
        changed = False
        for binding in block.bindings[:]:
            value = binding.value
            if isinstance(value, relax.Call) and value.op in self.functions:
                changed = True
                arguments = [substitute(a, self.env) for a in value.args[:]]
                result = self._body(self.functions[value.op], arguments, bindings)
                bindings.append(relax.VarBinding(binding.var, result))
                continue
            bindings.append(rebind(binding, substitute(value, self.env)))
        return type(block)(bindings, block.span) if changed else block

    def _body(self, function: Any, arguments: list[Any], bindings: list[Any]) -> Any:
        """Append a function's bindings, on fresh variables; returns its result."""
        symbols: dict[Any, Any] = {}
        for param, argument in zip(function.params, arguments, strict=True):
            _match_symbols(param.ty, argument.ty, symbols)
        if symbols:
            function = function.bind_symbolic_vars(symbols)
        for param, argument in zip(function.params, arguments, strict=True):
            self.env[param] = argument
        seq = function.body
        for block in seq.blocks[:]:
            for binding in block.bindings[:]:
                value = binding.value
                if isinstance(value, relax.Function) and attribute(value, "Composite"):
                    self.env[binding.var] = value
                    continue
                callee = None
                if isinstance(value, relax.Call):
                    callee = value.op
                    if isinstance(callee, relax.Var):
                        callee = self.env.get(callee)
                if isinstance(callee, relax.Function):
                    inner = [substitute(a, self.env) for a in value.args[:]]
                    self.env[binding.var] = self._body(callee, inner, bindings)
                    continue
                var = self.variable(binding.var.name, binding.var.ty)
                bindings.append(rebind(binding, substitute(value, self.env), var))
                self.env[binding.var] = var
        return substitute(seq.body, self.env)
