"""What walking a function's body is in every dialect: its edges, its calls' results, its model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from byocviz.building.errors import LoweringError
from byocviz.building.lower.call import Call, plain
from byocviz.building.lower.graph import Graph, Tensor, onnx_type
from byocviz.building.lower.lowered import Lowered, Port
from byocviz.building.lower.model import OPSETS, clean, written
from byocviz.errors import ModuleError

DEEPEST = 64
"""Functions that call each other."""


class BaseWalker:
    """``errors`` gathers what is refused; None raises the first.

    A dialect says how its types are read and walks the body; `_edges` comes after the body.
    """

    dialect = ""
    """As people write it."""
    fixed = ""
    """The mend for a shape that is not fixed."""

    def __init__(
        self,
        name: str,
        opset: int,
        errors: list[LoweringError] | None,
        operators: Sequence[int] | None,
    ) -> None:
        if opset not in OPSETS:
            raise ModuleError(
                f"The opset {opset} is not written here.",
                f"Choose one from {OPSETS.start} to {OPSETS.stop - 1}.",
            )
        self.name = name
        self.graph = Graph(opset)
        self.errors = errors
        self.inputs: list[Port] = []
        self.given = list(operators) if operators is not None else None
        self.calls = 0
        self.depth = 0

    # -- how the dialect's types are read

    def _fields(self, ty: Any) -> list[Any] | None:
        """The fields of a tuple's type; None for another."""
        raise NotImplementedError

    def _shape(self, ty: Any) -> tuple[int, ...] | None:
        """A tensor's shape; None where it is not fixed."""
        raise NotImplementedError

    def _dtype(self, ty: Any) -> str:
        """A tensor's element type; "" where it is not known."""
        raise NotImplementedError

    def _rank(self, ty: Any) -> int:
        """A tensor's rank, for a stand-in where the shape is not fixed."""
        raise NotImplementedError

    def _text(self, ty: Any) -> str:
        """A type for people."""
        raise NotImplementedError

    # -- the edges of the model

    def _refused(self, error: LoweringError) -> None:
        if self.errors is None:
            raise error
        self.errors.append(error)

    def _input(self, name: str, ty: Any, index: int, path: tuple[int, ...]) -> Any:
        fields = self._fields(ty)
        if fields is not None:
            return [
                self._input(f"{name}_{i}", field, index, (*path, i))
                for i, field in enumerate(fields)
            ]
        shape, dtype = self._known("parameter", name, ty)
        tensor = self.graph.input(clean(name), dtype, shape)
        self.inputs.append(Port(tensor.name, dtype, shape, index, path))
        return tensor

    def _known(self, what: str, name: str, ty: Any) -> tuple[tuple[int, ...], str]:
        """Shape and element type of a tensor type; placeholders for what is refused."""
        shape, dtype = self._shape(ty), self._dtype(ty)
        if shape is None:
            self._refused(
                LoweringError(
                    what, -1, plain(name), "type", self._text(ty),
                    "Engines are built for fixed shapes.", self.fixed,
                )
            )  # fmt: skip
            shape = (1,) * self._rank(ty)
        try:
            onnx_type(dtype)
        except KeyError:
            self._refused(
                LoweringError(
                    what, -1, plain(name), "dtype", dtype or "unknown", "ONNX has no such type."
                )
            )
            dtype = "float32"
        return shape, dtype

    def _edges(self, result: Any) -> None:
        """Make the body's value the outputs. Raises `ModuleError` for a wrong number of ids."""
        if self.given is not None and len(self.given) != self.calls:
            raise ModuleError(
                f"{self.name} has {self.calls} operators and {len(self.given)} ids are given.",
                "Give the op_ids of the subgraph whose function it is.",
            )
        self.tuple_output = isinstance(result, list)
        self.outputs: list[tuple[Port, Tensor]] = []
        self._output(result, ())

    def _output(self, value: Any, path: tuple[int, ...]) -> None:
        if isinstance(value, list):
            for index, field in enumerate(value):
                self._output(field, (*path, index))
            return
        if not isinstance(value, Tensor):
            self._refused(
                LoweringError(
                    "result", -1, "", "value", type(value).__name__,
                    "A subgraph gives tensors, or tuples of them.",
                )
            )  # fmt: skip
            return
        name = self.graph.unique(f"output_{len(self.outputs)}")
        self.outputs.append((Port(name, value.dtype, value.dims, -1, path), value))

    # -- calls

    def _identity(self, tag: int) -> int:
        """The next call's id: the one that was given for it, else its tag."""
        number = self.calls
        self.calls += 1
        if self.given is not None and number < len(self.given):
            return int(self.given[number])
        return tag

    def _converted(self, view: Call, function: Callable[..., Any] | None) -> Any:
        """What a call's converter makes of it, of the types that the dialect gives the result."""
        if function is None:
            raise view.refuse("", "", "It has no converter.", "Register one: @converter(name).")
        try:
            result = function(self.graph, view)
        except LoweringError:
            raise
        except Exception as error:  # models come from strangers: whatever it stumbles over
            raise view.refuse(
                "converter",
                function.__name__,
                f"It failed: {type(error).__name__}: {error}",
                "Please report it, with the subgraph's text.",
            ) from error
        if isinstance(result, Tensor):
            return self._typed(view, result, view.dtype, view.shape)
        given = zip(result, view.dtypes, view.shapes, strict=True)
        return [self._typed(view, *one) for one in given]

    def _typed(self, view: Call, tensor: Tensor, dtype: str, shape: tuple[int, ...]) -> Tensor:
        """The tensor with the type that the dialect gives the result."""
        if tensor.dtype != dtype or (tensor.shape is not None and tensor.shape != shape):
            raise view.refuse(
                "result",
                f"{tensor.dtype}{list(tensor.shape or ())}",
                f"{self.dialect} gives {dtype}{list(shape)}: the converter is wrong.",
                "Please report it, with the subgraph's text.",
            )
        return tensor if tensor.shape is not None else Tensor(tensor.name, dtype, shape)

    def _placeholder(self, ty: Any) -> Any:
        """Stands for what was refused, so that the rest can be asked."""
        fields = self._fields(ty)
        if fields is not None:
            return [self._placeholder(field) for field in fields]
        shape = self._shape(ty)
        if shape is None:
            shape = (1,) * self._rank(ty)
        return Tensor(self.graph.unique("refused"), self._dtype(ty) or "float32", shape)

    # -- the model

    def finish(self) -> Lowered:
        return written(self.name, self.graph, self.inputs, self.outputs, self.tuple_output)
