"""Text and bytes of a Relay type."""

from __future__ import annotations

from typing import Any

import tvm
from tvm import relay

from byocviz.flow.relay.compat import items_of

_MOST = 300
_LARGEST = 2**53
"""Elements or bytes: more are in no memory, and not in every reader's integers."""


def dims(ty: Any) -> list[int] | None:
    """The static shape of a tensor type, or None."""
    if not isinstance(ty, relay.TensorType):
        return None
    sizes = []
    for dim in items_of(ty.shape):
        if not isinstance(dim, tvm.tir.IntImm):
            return None
        sizes.append(int(dim.value))
    return sizes


def elements(ty: Any) -> int | None:
    """How many elements a tensor type has; None where its shape is not wholly known."""
    shape = dims(ty)
    if shape is None:
        return None
    count = 1
    for size in shape:
        count *= size
    return count if count <= _LARGEST else None


def tensor_bytes(ty: Any) -> int | None:
    """Bytes of a tensor of this type, None where they cannot be known."""
    count = elements(ty)
    if count is None:
        return None
    dtype = tvm.runtime.DataType(ty.dtype)
    size = (count * int(dtype.bits) * int(dtype.lanes) + 7) // 8
    return size if size <= _LARGEST else None


def type_text(ty: Any) -> str:
    """As ``float32[1, 3, 300, 300]``; ``?`` stands for a dimension that is not known."""
    if ty is None:
        return "?"
    if isinstance(ty, relay.TensorType):
        sizes = [_size(dim) for dim in items_of(ty.shape)]
        return f"{ty.dtype}[{', '.join(sizes)}]"
    if isinstance(ty, relay.TupleType):
        return f"({', '.join(type_text(field) for field in ty.fields)})"
    if isinstance(ty, relay.FuncType):
        taken = ", ".join(type_text(arg) for arg in ty.arg_types)
        return f"fn({taken}) -> {type_text(ty.ret_type)}"[:_MOST]
    return str.__str__(str(ty))[:_MOST]


def _size(dim: Any) -> str:
    if isinstance(dim, tvm.tir.IntImm):
        return str(dim.value)
    return "?" if isinstance(dim, tvm.tir.Any) else str.__str__(str(dim))


class Types:
    """Text and bytes of types, each type object looked at once."""

    def __init__(self) -> None:
        self._texts: dict[int, tuple[Any, str]] = {}
        self._sizes: dict[int, tuple[Any, int | None, int | None]] = {}

    def text(self, ty: Any) -> str:
        """As `type_text`."""
        if ty is None:
            return "?"
        key = ty.handle.value
        found = self._texts.get(key)
        if found is None:
            # The type is held on to: another may not get its address.
            found = self._texts[key] = ty, type_text(ty)
        return found[1]

    def size(self, ty: Any) -> tuple[int | None, int | None]:
        """As `elements` and `tensor_bytes`."""
        key = ty.handle.value
        found = self._sizes.get(key)
        if found is None:
            found = self._sizes[key] = ty, elements(ty), tensor_bytes(ty)
        return found[1:]
