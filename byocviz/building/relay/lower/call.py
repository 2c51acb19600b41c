"""One Relay call as a converter sees it."""

from __future__ import annotations

import copy
from typing import Any

import tvm

from byocviz.building.lower.call import Call
from byocviz.flow.relay.types import dims

_IMMEDIATE = (tvm.tir.IntImm, tvm.tir.FloatImm)
_WINDOWS = ("strides", "dilation", "pool_size", "kernel_size", "output_padding")


class RelayCall(Call):
    """See `Call`. It may be seen with other attributes and arguments than TVM's: as the call of
    Relax that means the same."""

    fixed_mend = "Give the module fixed shapes before it is recorded (relay.Any is none)."

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._given: dict[str, Any] = {}

    def seen(self, *args: Any, **attributes: Any) -> RelayCall:
        """The same call with these attributes, and with ``args`` where there are any."""
        other = copy.copy(self)
        other._given = {**self._given, **attributes}
        if args:
            other.args = list(args)
        return other

    def attr(self, name: str, default: Any = None) -> Any:
        if name in self._given:
            return self._given[name]
        return super().attr(name, default)

    def ints(self, name: str) -> list[int]:
        """Strides, paddings and the like are given for every dimension, whatever was written."""
        values = super().ints(name)
        if name not in (*_WINDOWS, "padding") or name in self._given:
            return values
        rank = self.tensor(0).rank - 2
        if len(values) == 1:
            values *= rank
        if name == "padding" and len(values) == rank:
            values = values * 2
        wanted = 2 * rank if name == "padding" else rank
        if len(values) != wanted:
            raise self.refuse(name, values, f"{wanted} numbers are wanted.")
        return values

    def static_shape(self, ty: Any) -> tuple[int, ...] | None:
        found = dims(ty)
        return None if found is None else tuple(found)

    def dtype_of(self, ty: Any) -> str:
        return str(ty.dtype) if isinstance(ty, tvm.relay.TensorType) else ""

    def immediate(self, value: Any) -> float | int | None:
        if isinstance(value, _IMMEDIATE):
            return value.value  # type: ignore[no-any-return]
        if type(value).__name__ in ("BoxInt", "BoxFloat", "BoxBool"):
            return value.value  # type: ignore[no-any-return]
        return None
