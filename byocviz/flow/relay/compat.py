"""Small readings of Relay objects that every part needs."""

from __future__ import annotations

from typing import Any

import tvm
from tvm import relay
from tvm.ir import Span

TAG = "byocviz"
"""The source name of the spans in which calls keep their numbers."""

BEGIN, END = "annotation.compiler_begin", "annotation.compiler_end"


def plain(value: Any) -> str:
    """``str(value)``, of the type str itself: TVM's own strings are a subclass of it."""
    return str.__str__(str(value))


def attribute(function: Any, key: str) -> Any:
    """A function's attribute, or None."""
    attrs = function.attrs
    return attrs[key] if attrs is not None and key in attrs.keys() else None  # noqa: SIM118


def composite_of(op: Any) -> str:
    """The rule of a composite function literal; "" for anything else."""
    if not isinstance(op, relay.Function):
        return ""
    rule = attribute(op, "Composite")
    return plain(rule) if rule else ""


def key_of(expr: Any) -> int:
    """An expression's address: TVM makes a new Python object each time that one is asked for.

    It names the expression as long as someone holds on to it.
    """
    return int(expr.handle.value)


def tag_of(call: Any) -> int:
    """The number of a call, or -1 where it has none."""
    span = call.span
    if not isinstance(span, Span) or span.source_name.name != TAG:
        return -1
    return int(span.line)


def functions_of(module: tvm.IRModule) -> dict[str, Any]:
    """The module's Relay functions by name."""
    return {
        plain(var.name_hint): function
        for var, function in module.functions.items()
        if isinstance(function, relay.Function)
    }


def with_functions(module: tvm.IRModule, functions: dict[str, Any]) -> tvm.IRModule:
    """A copy of the module in which functions of these names are replaced; types inferred."""
    copy = module.clone()
    for name, function in functions.items():
        copy.update_func(copy.get_global_var(name), function)
    return typed(copy)


def typed(module: tvm.IRModule) -> tvm.IRModule:
    """The module with its types inferred, which Relay's passes leave out here and there."""
    return relay.transform.InferType()(module)
