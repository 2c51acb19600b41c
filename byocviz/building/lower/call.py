"""One Relax call as a converter sees it: arguments and attributes as plain Python values."""

from __future__ import annotations

from typing import Any

from tvm import relax, tirx

from byocviz.building.errors import LoweringError
from byocviz.building.lower.graph import Graph, Tensor
from byocviz.flow.relax.compat import plain
from byocviz.flow.relax.surgery import dtype_of, static_shape


class Call:
    """A call of an operator. ``args`` holds tensors, lists for tuples, and TVM's own values."""

    def __init__(
        self, graph: Graph, call: Any, args: list[Any], identity: int, variable: str
    ) -> None:
        self.graph = graph
        self.name = plain(call.op.name)
        self.args = args
        self.identity = identity
        self.variable = variable
        self.type = call.ty
        self._attrs = call.attrs

    # -- the result

    @property
    def dtype(self) -> str:
        """Element type of the result."""
        return dtype_of(self.type)

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
        return [dtype_of(field) for field in self.type.fields]

    def _shape(self, ty: Any) -> tuple[int, ...]:
        shape = static_shape(ty)
        if shape is None:
            raise self.refuse(
                "shape of the result",
                plain(ty),
                "Engines are built for fixed shapes.",
                "Give the module fixed shapes before it is recorded "
                "(relax.transform.BindSymbolicVars).",
            )
        return shape

    # -- attributes

    def attr(self, name: str, default: Any = None) -> Any:
        """An attribute as a plain value: numbers, strings, lists, None."""
        return _plain(getattr(self._attrs, name, default))

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
        number = _number(value)
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
        number = _number(value)
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
        items = value if isinstance(value, list) else getattr(value, "values", None)
        found = [_number(item) for item in items] if items is not None else [None]
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


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        return plain(value)
    number = _number(value)
    if number is not None:
        return number
    if isinstance(value, relax.ShapeExpr):
        return [_plain(v) for v in value.values]
    if hasattr(value, "__len__") and hasattr(value, "__getitem__"):
        return [_plain(v) for v in value]
    return plain(value)


def _number(value: Any) -> float | int | None:
    if isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, (tirx.IntImm, tirx.FloatImm)):
        return value.value  # type: ignore[no-any-return]
    if isinstance(value, Tensor) and value.constant and value.shape == ():
        return value.value().item()  # type: ignore[no-any-return]
    return None


def _say(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"{value.dtype}{list(value.dims)}"
    text = plain(value)
    return text if len(text) < 80 else f"{type(value).__name__}"
