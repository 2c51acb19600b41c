"""RunCodegen follows calls without end where a function calls itself, and takes the process with
it (TVM 0.26 and 0.27). What it does for a codegen that returns no modules is done here then."""

from __future__ import annotations

from typing import Any

import tvm
from tvm import relax

from byocviz.flow.relax.compat import attribute, plain
from byocviz.flow.relax.surgery import map_blocks, rebind, with_bindings


def recursive(module: tvm.IRModule) -> str:
    """The name of a Relax function that calls itself, perhaps by way of others; or ""."""
    calls = {plain(v.name_hint): _called(f) for v, f in module.functions_items()}
    for start in sorted(calls):
        seen: set[str] = set()
        todo = list(calls[start])
        while todo:
            name = todo.pop()
            if name == start:
                return start
            if name not in seen:
                seen.add(name)
                todo += calls.get(name, ())
    return ""


def _called(function: Any) -> list[str]:
    found: list[str] = []

    def visit(expr: Any) -> None:
        if isinstance(expr, tvm.ir.GlobalVar):
            found.append(plain(expr.name_hint))

    if isinstance(function, relax.Function):
        relax.analysis.post_order_visit(function, visit)
    return found


def take_out(module: tvm.IRModule) -> tuple[tvm.IRModule, list[Any]]:
    """The module with a call_dps_packed in place of each call of an external function, and these
    functions with their global symbols."""
    external = {
        var: function.with_attr("global_symbol", var.name_hint)
        for var, function in module.functions_items()
        if isinstance(function, relax.Function) and attribute(function, "Codegen")
    }

    def replaced(block: Any) -> list[Any]:
        bindings = [_replaced(binding, external) for binding in block.bindings]
        return [with_bindings(block, bindings)]

    kept = {
        var: map_blocks(function, replaced) if isinstance(function, relax.Function) else function
        for var, function in module.functions_items()
        if var not in external
    }
    made = tvm.IRModule(kept, attrs=module.attrs, global_infos=module.global_infos)
    return relax.transform.Normalize()(made), list(external.values())


def _replaced(binding: Any, external: dict[Any, Any]) -> Any:
    call = binding.value
    if not isinstance(call, relax.Call) or call.op not in external:
        return binding
    ty = call.ty
    out = list(ty.fields) if isinstance(ty, relax.TupleType) else ty
    symbol = plain(call.op.name_hint)
    return rebind(binding, relax.op.call_dps_packed(symbol, relax.Tuple(list(call.args)), out))
