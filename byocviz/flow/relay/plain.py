"""A module of any step as one that TVM alone can compile: all that BYOC put round it taken off."""

from __future__ import annotations

from typing import Any

import tvm
from tvm import relay
from tvm.ir import GlobalVar

from byocviz.flow.relay.compat import (
    BEGIN,
    END,
    attribute,
    functions_of,
    key_of,
    plain,
    typed,
)
from byocviz.flow.relay.scopes import Body, Item, has_callee


def plain_module(module: tvm.IRModule) -> tvm.IRModule:
    """The module with composite and external functions put where they are called, and without
    ``compiler_begin`` and ``compiler_end``."""
    functions = functions_of(module)
    boxed = {
        name
        for name, function in functions.items()
        if attribute(function, "Composite") or attribute(function, "Compiler")
    }
    copy = module.clone()
    inliner = _Inliner(functions, boxed)
    for name, function in functions.items():
        if name not in boxed:
            body = inliner.body(function.body, {})
            new = relay.function.FunctionWithFields(function, body=body)
            copy.update_func(copy.get_global_var(name), new)
    entries = [name for name in functions if name not in boxed]
    return typed(relay.transform.RemoveUnusedFunctions(entries)(typed(copy)))


class _Inliner:
    def __init__(self, functions: dict[str, Any], boxed: set[str]) -> None:
        self.functions = functions
        self.boxed = boxed

    def body(self, root: Any, env: dict[int, Any]) -> Any:
        """The expression rebuilt, its free variables replaced by ``env``."""
        body = Body(root)
        made: dict[int, Any] = {}

        def value(child: Any) -> Any:
            if isinstance(child, int):
                return made[child]
            return env.get(key_of(child), child) if isinstance(child, relay.Var) else child

        for item in body.items.values():
            made[item.key] = self._item(item, [value(child) for child in item.children], env)
        return value(body.root)

    def _item(self, item: Item, parts: list[Any], env: dict[int, Any]) -> Any:
        expr, kind = item.expr, item.kind
        if kind is relay.Call:
            return self._call(item, parts, env)
        if kind is relay.Tuple:
            return relay.Tuple(parts, expr.span)
        if kind is relay.TupleGetItem:
            (whole,) = parts
            if isinstance(whole, relay.Tuple):
                return whole.fields[int(expr.index)]
            return relay.TupleGetItem(whole, expr.index, expr.span)
        if kind is relay.If:
            return relay.If(*parts, expr.span)
        if kind is relay.Let:
            return relay.Let(expr.var, *parts, expr.span)
        if kind is relay.Function:
            return relay.function.FunctionWithFields(expr, body=parts[0])
        if kind is relay.Match:
            clauses = [
                relay.Clause(clause.lhs, part)
                for clause, part in zip(expr.clauses, parts[1:], strict=True)
            ]
            return relay.Match(parts[0], clauses, expr.complete)
        return kind(*parts, expr.span)

    def _call(self, item: Item, parts: list[Any], env: dict[int, Any]) -> Any:
        call, op = item.expr, item.op
        if item.name in (BEGIN, END):
            return parts[0]
        function = op if item.rule else None
        if isinstance(op, GlobalVar) and plain(op.name_hint) in self.boxed:
            function = self.functions[plain(op.name_hint)]
        if function is not None:
            inner = {
                key_of(param): part for param, part in zip(function.params, parts, strict=True)
            }
            return self.body(function.body, {**env, **inner})
        count = len(parts) - has_callee(item)
        new_op = parts[count] if has_callee(item) else op
        if isinstance(op, relay.Var):
            new_op = env.get(key_of(op), op)
        return relay.Call(new_op, parts[:count], call.attrs, call.type_args, call.span)
