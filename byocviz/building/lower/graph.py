"""Writes one ONNX graph, node by node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from byocviz.building.errors import LoweringError
from byocviz.building.lower.schema import nothing_there, wrong_types

Shape = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Tensor:
    """A value of the graph. ``shape`` is None where a node in between left it open."""

    name: str
    dtype: str
    shape: Shape | None
    data: Callable[[], np.ndarray] | None = field(default=None, repr=False)
    """The values, if it is a constant."""

    @property
    def dims(self) -> Shape:
        """The shape, which must be known."""
        assert self.shape is not None, self.name
        return self.shape

    @property
    def rank(self) -> int:
        return len(self.dims)

    @property
    def constant(self) -> bool:
        return self.data is not None

    def value(self) -> np.ndarray:
        """The values of a constant."""
        assert self.data is not None, self.name
        return self.data()


def numpy_dtype(name: str) -> np.dtype[Any]:
    """NumPy's type of that name; bfloat16 by ml_dtypes, which ONNX brings."""
    if name == "bfloat16":
        import ml_dtypes

        name = ml_dtypes.bfloat16
    made: np.dtype[Any] = np.dtype(name)
    return made


class Graph:
    """The ONNX graph of one subgraph as it grows. ``opset`` is of the default domain."""

    def __init__(self, opset: int) -> None:
        self.opset = opset
        self.nodes: list[tuple[str, str, list[str], list[str], dict[str, Any]]] = []
        """Name, operator, inputs, outputs, attributes."""
        self.owners: dict[str, tuple[int, str]] = {}
        """Id and name of the Relax operator, by node."""
        self.values: dict[str, Tensor] = {}
        """What the nodes read and give, by name."""
        self.constants: dict[str, Tensor] = {}
        self._small: dict[tuple[str, Shape, bytes], Tensor] = {}
        self._names: set[str] = set()
        self._identity, self._operator, self._label, self._count = -1, "", "node", 0
        self._variable = ""
        self._unnamed = 0

    # -- names

    def unique(self, name: str) -> str:
        """The name itself, or with a number that makes it the only one."""
        candidate, number = name, 1
        while candidate in self._names:
            number += 1
            candidate = f"{name}_{number}"
        self._names.add(candidate)
        return candidate

    def begin(self, identity: int, operator: str, variable: str = "") -> None:
        """Nodes from here on stand for this call, whose result is bound to ``variable``."""
        short = operator.removeprefix("relax.").rpartition(".")[2] or "node"
        if identity >= 0:
            label = f"{short}_{identity}"
        else:
            self._unnamed += 1
            label = f"{short}_u{self._unnamed}"
        self._identity, self._operator, self._count = identity, operator, 0
        self._variable = variable
        self._label = self.unique(label)

    # -- values

    def input(self, name: str, dtype: str, shape: Shape) -> Tensor:
        return Tensor(self.unique(name), dtype, shape)

    def constant(self, values: Any, dtype: str | None = None) -> Tensor:
        """A constant; equal small ones are one."""
        array = np.asarray(values)
        if dtype is not None:
            array = array.astype(numpy_dtype(dtype))
        if array.nbytes > 1024:
            return self.lazy(str(array.dtype), array.shape, lambda: array)
        key = str(array.dtype), array.shape, array.tobytes()
        if key not in self._small:
            self._small[key] = self.lazy(str(array.dtype), array.shape, lambda: array)
        return self._small[key]

    def lazy(self, dtype: str, shape: Shape, data: Callable[[], np.ndarray]) -> Tensor:
        """A constant whose values are asked for when the model is written."""
        tensor = Tensor(self.unique(f"const_{len(self.constants)}"), dtype, shape, data)
        self.constants[tensor.name] = tensor
        return tensor

    def ints(self, values: Sequence[int]) -> Tensor:
        """An int64 vector: axes, shapes, sizes."""
        return self.constant(np.array(list(values), dtype="int64"))

    def scalar(self, value: Any, dtype: str) -> Tensor:
        return self.constant(np.array(value), dtype)

    # -- nodes

    def add(
        self,
        operator: str,
        *inputs: Tensor | None,
        dtype: str | None = None,
        shape: Shape | None = None,
        **attributes: Any,
    ) -> Tensor:
        """A node with one output. Raises `LoweringError` as `add_several` does.

        ``dtype`` is by default that of the first input. ``shape`` is by default that to which
        the inputs broadcast, which holds for element-wise operators only.
        """
        return self.add_several(operator, *inputs, dtypes=[dtype], shapes=[shape], **attributes)[0]

    def add_several(
        self,
        operator: str,
        *inputs: Tensor | None,
        dtypes: Sequence[str | None],
        shapes: Sequence[Shape | None] | None = None,
        **attributes: Any,
    ) -> list[Tensor]:
        """A node with as many outputs as there are ``dtypes``.

        Raises `LoweringError` for the call at hand where ONNX does not define the node for these
        element types, or runtimes do not run it because a tensor is empty.
        """
        name = self._label if self._count == 0 else self.unique(f"{self._label}.{self._count}")
        self._count += 1
        first = next((i for i in inputs if i is not None), None)
        outputs = []
        for index, dtype in enumerate(dtypes):
            shape = shapes[index] if shapes is not None else None
            if shape is None and len(dtypes) == 1:
                shape = _broadcast(inputs)
            output = name if index == 0 else self.unique(f"{name}:{index}")
            outputs.append(Tensor(output, dtype or (first.dtype if first else "float32"), shape))
        self._must_be_one(operator, inputs, outputs)
        names = [i.name if i is not None else "" for i in inputs]
        while names and not names[-1]:
            names.pop()
        self.values.update((v.name, v) for v in (*inputs, *outputs) if v is not None)
        self.nodes.append((name, operator, names, [o.name for o in outputs], attributes))
        self.owners[name] = self._identity, self._operator
        return outputs

    def _must_be_one(
        self, operator: str, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]
    ) -> None:
        """Refuse what no runtime takes as a node of that operator."""
        given = tuple(i.dtype if i is not None else None for i in inputs)
        why = wrong_types(operator, self.opset, given, tuple(o.dtype for o in outputs))
        if why:
            said = ", ".join(dict.fromkeys(dtype for dtype in given if dtype))
            raise self._refuse("dtype", said, why)
        shapes = [t.shape for t in (*inputs[:1], *outputs[:1]) if t is not None]
        why = nothing_there(operator, shapes)
        if why:
            raise self._refuse("shape", shapes[0] and list(shapes[0]), why)

    def _refuse(self, attribute: str, value: Any, why: str) -> LoweringError:
        return LoweringError(self._operator, self._identity, self._variable, attribute, value, why)

    def transpose(self, x: Tensor, order: Sequence[int]) -> Tensor:
        """The axes in another order; nothing where it is the same, folded for a constant."""
        order = [int(i) for i in order]
        if order == sorted(order):
            return x
        shape = tuple(x.dims[i] for i in order)
        if x.data is not None:
            data = x.data
            return self.lazy(x.dtype, shape, lambda: np.ascontiguousarray(data().transpose(order)))
        return self.add("Transpose", x, perm=order, shape=shape)

    def reshape(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        """Another shape of as many elements, all dimensions written out."""
        shape = tuple(int(i) for i in shape)
        if x.shape == shape:
            return x
        if x.data is not None:
            data = x.data
            return self.lazy(x.dtype, shape, lambda: data().reshape(shape))
        zero: dict[str, Any] = {"allowzero": 1} if 0 in shape else {}
        return self.add("Reshape", x, self.ints(shape), shape=shape, **zero)

    def cast(self, x: Tensor, dtype: str) -> Tensor:
        if x.dtype == dtype:
            return x
        return self.add("Cast", x, dtype=dtype, shape=x.shape, to=onnx_type(dtype))


def _broadcast(inputs: Sequence[Tensor | None]) -> Shape | None:
    shapes = [i.shape for i in inputs if i is not None]
    if not shapes or any(s is None for s in shapes):
        return None
    try:
        return tuple(np.broadcast_shapes(*[s for s in shapes if s is not None]))
    except ValueError:
        return None


def onnx_type(dtype: str) -> int:
    """ONNX's number of an element type. Raises `KeyError` for one that ONNX has not."""
    import onnx

    names = {
        "float16": "FLOAT16",
        "float32": "FLOAT",
        "float64": "DOUBLE",
        "bfloat16": "BFLOAT16",
        "bool": "BOOL",
        **{f"{u}int{b}": f"{u}int{b}".upper() for u in ("", "u") for b in (8, 16, 32, 64)},
    }
    return int(getattr(onnx.TensorProto, names[dtype]))
