"""Small readings of Relay objects that every part needs."""

from __future__ import annotations

from typing import Any

import tvm
from tvm import relay
from tvm.ir import SourceName, Span
from tvm.ir.container import _ffi_api

TAG = "byocviz"
"""The source name of the spans in which calls keep their numbers."""

_item, _size = _ffi_api.ArrayGetItem, _ffi_api.ArraySize

BEGIN, END = "annotation.compiler_begin", "annotation.compiler_end"


def plain(value: Any) -> str:
    """``str(value)``, of the type str itself: TVM's own strings are a subclass of it."""
    return str.__str__(str(value))


def attribute(function: Any, key: str) -> Any:
    """A function's attribute, or None."""
    attrs = function.attrs
    return attrs._dict().get(key) if attrs is not None else None


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


SOURCE = SourceName(TAG)


def tag_of(call: Any) -> int:
    """The number of a call, or -1 where it has none."""
    span = call.span
    # TVM keeps one object for all source names that are the same.
    if not isinstance(span, Span) or key_of(span.source_name) != key_of(SOURCE):
        return -1
    return int(span.line)


def items_of(array: Any) -> list[Any]:
    """The items of one of TVM's arrays, asked for once each: iterating asks for the size too."""
    return [_item(array, index) for index in range(_size(array))]


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


def aside() -> Any:
    """A pass context for what runs while a pass does: what it finds wrong lies in the context, and
    the pass would raise it as if it were its own."""
    now = tvm.transform.PassContext.current()
    return tvm.transform.PassContext(
        opt_level=now.opt_level,
        required_pass=now.required_pass,
        disabled_pass=now.disabled_pass,
        config=now.config,
    )


def typed(module: tvm.IRModule) -> tvm.IRModule:
    """The module with its types inferred, which Relay's passes leave out here and there."""
    return relay.transform.InferType()(module)
