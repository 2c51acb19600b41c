"""One call as a converter sees it: arguments and attributes as plain Python values.

`Call` knows no TVM: `RelaxCall` and Relay's own (`byocviz.building.relay.lower`) say how types and
values are read there.
"""

from __future__ import annotations

from typing import Any

from byocviz.building.errors import LoweringError
from byocviz.building.lower.graph import Graph, Tensor


class Call:
    """A call of an operator. ``args`` holds tensors, lists for tuples, and TVM's own values."""

    fixed_mend = "Give the module fixed shapes before it is recorded."

    def __init__(
        self, graph: Graph, call: Any, ty: Any, args: list[Any], identity: int, variable: str
    ) -> None:
        self.graph = graph
        self.name = plain(call.op.name)
        self.args = args
        self.identity = identity
        self.variable = variable
        self.type = ty
        self._attrs = call.attrs

    # -- how TVM's objects are read

    def static_shape(self, ty: Any) -> tuple[int, ...] | None:
        """The shape of a tensor type; None where it is not wholly known."""
        raise NotImplementedError

    def dtype_of(self, ty: Any) -> str:
        """The element type of a tensor type; "" where it is unknown."""
        raise NotImplementedError

    def immediate(self, value: Any) -> float | int | None:
        """A number that is written in place, as TVM's object."""
        raise NotImplementedError

    def items(self, value: Any) -> Any:
        """The values of a list of TVM's own, or None."""
        return None

    # -- the result

    @property
    def dtype(self) -> str:
        """Element type of the result."""
        return self.dtype_of(self.type)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the result; refuses one that is not wholly known."""
        return self._shape(self.type)

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Shapes of a result that is a tuple."""
        return [self._shape(field) for field in self.type.fields]

    @property
    def dtypes(self) -> list[str]:
        return [self.dtype_of(field) for field in self.type.fields]

    def _shape(self, ty: Any) -> tuple[int, ...]:
        shape = self.static_shape(ty)
        if shape is None:
            raise self.refuse(
                "shape of the result",
                plain(ty),
                "Engines are built for fixed shapes.",
                self.fixed_mend,
            )
        return shape

    # -- attributes

    def attr(self, name: str, default: Any = None) -> Any:
        """An attribute as a plain value: numbers, strings, lists, None."""
        return self._plain(getattr(self._attrs, name, default))

    def ints(self, name: str) -> list[int]:
        value = self.attr(name)
        return [int(v) for v in value] if isinstance(value, list) else [int(value)]

    def raw(self, name: str) -> Any:
        """An attribute as TVM has it."""
        return getattr(self._attrs, name, None)

    @property
    def out_dtype(self) -> str:
        """The attribute ``out_dtype``; empty where it is left open."""
        value = self.attr("out_dtype")
        return "" if value in (None, "", "void") else str(value)

    def axis(self, value: int, rank: int, name: str = "axis") -> int:
        """An axis counted from the front; refuses one that the tensor does not have."""
        if not -rank <= value < rank:
            raise self.refuse(name, value, f"The tensor has {rank} dimensions.")
        return value + rank if value < 0 else value

    # -- arguments

    def tensor(self, index: int, dtype: str | None = None) -> Tensor:
        """An argument as a tensor; a number becomes a scalar constant of ``dtype``."""
        value = self.args[index]
        if isinstance(value, Tensor):
            return value
        number = self._number(value)
        if number is not None and (dtype or self.dtype):
            return self.graph.scalar(number, dtype or self.dtype)
        raise self.refuse(f"argument {index}", _say(value), "A tensor is wanted there.")

    def tensors(self, index: int) -> list[Tensor]:
        """A tuple of tensors."""
        value = self.args[index]
        if isinstance(value, list) and all(isinstance(v, Tensor) for v in value):
            return list(value)
        raise self.refuse(f"argument {index}", _say(value), "A tuple of tensors is wanted there.")

    def number(self, index: int) -> float | int:
        """An argument that is a number known now: written in place, or a constant scalar."""
        value = self.args[index]
        if isinstance(value, Tensor) and value.constant and value.shape in ((), (1,)):
            return value.value().reshape(()).item()  # type: ignore[no-any-return]
        number = self._number(value)
        if number is None:
            raise self.refuse(
                f"argument {index}",
                _say(value),
                "Its value is known only when the module runs, and the engine needs it before.",
                "Bind it as a constant.",
            )
        return number

    def numbers(self, index: int) -> list[int]:
        """A tuple or shape of integers known now."""
        value = self.args[index]
        items = value if isinstance(value, list) else self.items(value)
        found = [self._number(item) for item in items] if items is not None else [None]
        if any(item is None for item in found):
            raise self.refuse(
                f"argument {index}",
                _say(value),
                "Its values are known only when the module runs, and the engine needs them before.",
                "Give the module fixed shapes.",
            )
        return [int(item) for item in found if item is not None]

    # -- refusing

    def refuse(self, attribute: str, value: Any, why: str, mend: str = "") -> LoweringError:
        """The error that says why this call is not lowered; to be raised."""
        return LoweringError(self.name, self.identity, self.variable, attribute, value, why, mend)

    def floats(self, *tensors: Tensor) -> None:
        """Refuse where one of the tensors (by default the first argument) is not of floats."""
        for tensor in tensors or (self.tensor(0),):
            if "float" not in tensor.dtype:
                raise self.refuse(
                    "dtype", tensor.dtype, "ONNX defines this operator for floats only."
                )

    # -- plain values

    def _plain(self, value: Any) -> Any:
        if value is None or isinstance(value, (bool, int, float)):
            return value
        if isinstance(value, str):
            return plain(value)
        number = self._number(value)
        if number is not None:
            return number
        items = self.items(value)
        if items is not None:
            return [self._plain(v) for v in items]
        if hasattr(value, "__len__") and hasattr(value, "__getitem__"):
            return [self._plain(v) for v in value]
        return plain(value)

    def _number(self, value: Any) -> float | int | None:
        if isinstance(value, (bool, int, float)):
            return value
        if isinstance(value, Tensor):
            scalar = value.constant and value.shape == ()
            return value.value().item() if scalar else None
        return self.immediate(value)


def plain(value: Any) -> str:
    """``str(value)``, of the type str itself: TVM's own strings are a subclass of it."""
    return str.__str__(str(value))


def _say(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"{value.dtype}{list(value.dims)}"
    text = plain(value)
    return text if len(text) < 80 else f"{type(value).__name__}"
