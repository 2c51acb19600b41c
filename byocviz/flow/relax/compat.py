"""What differs between the TVM releases that byocviz reads (0.26 and later)."""

from __future__ import annotations

from typing import Any

import tvm
from tvm import relax

# 0.26 calls a tensor constant relax.Constant and its tensor .data; 0.27 ir.GenericConst, .value.
Constant: Any = getattr(relax, "Constant", None) or tvm.ir.GenericConst


def is_tensor_constant(expr: Any) -> bool:
    """Whether it is a constant tensor: 0.27 keeps a dtype written in a call as a constant too."""
    return isinstance(expr, Constant) and isinstance(expr.ty, relax.TensorType)


def tensor_of(constant: Any) -> Any:
    """The runtime tensor that a constant holds."""
    return constant.data if hasattr(constant, "data") else constant.value


def attribute(function: Any, key: str) -> Any:
    """A function attribute, or None."""
    attrs = function.attrs
    return attrs[key] if attrs is not None and key in attrs else None


def plain(value: Any) -> str:
    """``str(value)``, of the type str itself: TVM's own strings are a subclass of it."""
    return str.__str__(str(value))
