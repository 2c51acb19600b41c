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
from byocviz.flow.relay.scopes import Body, Item, has_callee, with_parts


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
        if item.kind is relay.Call:
            return self._call(item, parts, env)
        if item.kind is relay.TupleGetItem and isinstance(parts[0], relay.Tuple):
            return parts[0].fields[int(item.expr.index)]
        return with_parts(item, parts)

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
