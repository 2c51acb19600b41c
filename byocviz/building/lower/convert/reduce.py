"""Reductions over axes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from byocviz.building.lower.call import Call
from byocviz.building.lower.graph import Graph, Tensor
from byocviz.building.lower.registry import converter


def _axes(call: Call, rank: int) -> list[int]:
    """The axes that are reduced, counted from the front; None means all."""
    axes = call.attr("axis")
    if axes is None:
        return list(range(rank))
    axes = axes if isinstance(axes, list) else [axes]
    return sorted({call.axis(int(a), rank) for a in axes})


def _shape(x: Tensor, axes: list[int], keep: bool) -> tuple[int, ...]:
    if keep:
        return tuple(1 if i in axes else d for i, d in enumerate(x.dims))
    return tuple(d for i, d in enumerate(x.dims) if i not in axes)


def reduced(g: Graph, operator: str, x: Tensor, axes: list[int], keep: bool) -> Tensor:
    """A reduction node; the axes are an input from opset 18 on (13 for ReduceSum).

    Sums and products of integers become additions and multiplications: see `_folded`.
    """
    if not axes:
        return g.add("Identity", x)
    if operator in _EXACT and "float" not in x.dtype:
        return _folded(g, _EXACT[operator], x, axes, keep)
    shape, keepdims = _shape(x, axes, keep), int(keep)
    if operator == "ReduceSum" or g.opset >= 18:
        return g.add(operator, x, g.ints(axes), keepdims=keepdims, shape=shape)
    return g.add(operator, x, axes=axes, keepdims=keepdims, shape=shape)


_EXACT = {"ReduceSum": "Add", "ReduceProd": "Mul"}


def _folded(g: Graph, operator: str, x: Tensor, axes: list[int], keep: bool) -> Tensor:
    """Integers, summed or multiplied by halves of each axis until one element is left.

    ONNX Runtime's reductions of integers go through floating point: they lose digits from 2^53 on
    and stop at the type's limits. Its Add and Mul are exact and wrap around, as TVM's are.
    """
    shape = _shape(x, axes, keep)
    out = x
    for axis in axes:
        left: list[Tensor] = []
        while (size := out.dims[axis]) > 1:
            sizes = [size // 2, size // 2, *[1] * (size % 2)]
            parts = g.add_several(
                "Split", out, g.ints(sizes), dtypes=[x.dtype] * len(sizes), axis=axis,
                shapes=[(*out.dims[:axis], n, *out.dims[axis + 1 :]) for n in sizes],
            )  # fmt: skip
            out = g.add(operator, parts[0], parts[1])
            left += parts[2:]
        for part in left:
            out = g.add(operator, out, part)
    out = g.reshape(out, shape)
    return g.add("Identity", out) if out is x else out


def _operands(call: Call) -> tuple[Tensor, list[int], bool]:
    x = call.tensor(0)
    axes = _axes(call, x.rank)
    if x.dtype == "bool":
        raise call.refuse("dtype", x.dtype, "ONNX reduces numbers.", "Cast it first.")
    if any(x.dims[a] == 0 for a in axes):
        raise call.refuse("axis", axes, "Nothing is left to reduce: a dimension is 0.")
    return x, axes, bool(call.attr("keepdims"))


_WIDE = ("int32", "int64", "uint32", "uint64")


def _plain(operator: str, small: tuple[str, ...]) -> Any:
    def convert(g: Graph, call: Call) -> Tensor:
        x, axes, keep = _operands(call)
        if "float" not in x.dtype and x.dtype not in (*_WIDE, *small):
            raise call.refuse(
                "dtype",
                x.dtype,
                f"ONNX's {operator} takes floats and {', '.join((*_WIDE, *small))}.",
                "Cast it first.",
            )
        return reduced(g, operator, x, axes, keep)

    return convert


for _name, _operator, _small in (
    ("relax.sum", "ReduceSum", ()),
    ("relax.prod", "ReduceProd", ()),
    ("relax.max", "ReduceMax", ("int8", "uint8")),
    ("relax.min", "ReduceMin", ("int8", "uint8")),
):
    converter(_name)(_plain(_operator, _small))


@converter("relax.mean")
def mean(g: Graph, call: Call) -> Tensor:
    x, axes, keep = _operands(call)
    if "float" in x.dtype:
        return reduced(g, "ReduceMean", x, axes, keep)
    if x.dtype not in _WIDE:
        raise call.refuse("dtype", x.dtype, "ONNX sums floats and wide integers.", "Cast it first.")
    if x.dtype in ("int32", "uint32"):
        raise call.refuse(
            "dtype", x.dtype, f"TVM's own code gives int64 for it, whose type says {x.dtype}.",
            "Cast it to int64 or to a float first.",
        )  # fmt: skip
    # TVM divides the sum, cut towards zero.
    total = reduced(g, "ReduceSum", x, axes, keep)
    count = math.prod(x.dims[a] for a in axes)
    return g.add("Div", total, g.scalar(count, x.dtype))


@converter("relax.variance")
def variance(g: Graph, call: Call) -> Tensor:
    call.floats()
    x, axes, keep = _operands(call)
    return spread(g, x, axes, keep)


@converter("relax.std")
def std(g: Graph, call: Call) -> Tensor:
    call.floats()
    x, axes, keep = _operands(call)
    return g.add("Sqrt", spread(g, x, axes, keep))


def spread(g: Graph, x: Tensor, axes: list[int], keep: bool) -> Tensor:
    """The mean of the squared distances from the mean."""
    away = g.add("Sub", x, reduced(g, "ReduceMean", x, axes, True))
    return reduced(g, "ReduceMean", g.add("Mul", away, away), axes, keep)


def _arg(operator: str) -> Any:
    def convert(g: Graph, call: Call) -> Tensor:
        x = call.tensor(0)
        if x.dtype == "bool":
            raise call.refuse("dtype", x.dtype, f"ONNX's {operator} takes numbers.")
        axis, keep = call.attr("axis"), bool(call.attr("keepdims"))
        if 0 in x.dims if axis is None else x.dims[call.axis(int(axis), x.rank)] == 0:
            raise call.refuse("axis", axis, "Nothing is left to reduce: a dimension is 0.")
        if axis is not None:
            at = call.axis(int(axis), x.rank)
            return g.add(
                operator, x, axis=at, keepdims=int(keep), dtype="int64", shape=_shape(x, [at], keep)
            )
        # Two dimensions: TensorRT finds no position in a vector.
        flat = g.reshape(x, (1, math.prod(x.dims)))
        found = g.add(operator, flat, axis=1, keepdims=0, dtype="int64", shape=(1,))
        return g.reshape(found, call.shape)

    return convert


converter("relax.argmax")(_arg("ArgMax"))
converter("relax.argmin")(_arg("ArgMin"))


@converter("relax.cumsum")
def cumsum(g: Graph, call: Call) -> Tensor:
    x = call.tensor(0)
    if call.dtype not in ("float16", "float32", "float64", *_WIDE):
        raise call.refuse("dtype", call.dtype, "ONNX's CumSum takes floats and wide integers.")
    x = g.cast(x, call.dtype)
    axis = call.attr("axis")
    at = 0 if axis is None else call.axis(int(axis), x.rank)
    if axis is None:
        x = g.reshape(x, (math.prod(x.dims),))
    exclusive = int(bool(call.attr("exclusive", False)))
    return g.add("CumSum", x, g.scalar(at, "int64"), exclusive=exclusive, shape=x.shape)


_LONGEST = 1024
"""Of an axis along which products are cumulated: each element is looked at by every later one."""


@converter("relax.cumprod")
def cumprod(g: Graph, call: Call) -> Tensor:
    """ONNX cumulates sums only: each place multiplies what a triangle leaves of its row."""
    x = call.tensor(0)
    if call.dtype not in ("float16", "float32", "float64", *_WIDE):
        raise call.refuse("dtype", call.dtype, "ONNX multiplies up floats and wide integers.")
    x = g.cast(x, call.dtype)
    axis = call.attr("axis")
    at = 0 if axis is None else call.axis(int(axis), x.rank)
    if axis is None:
        x = g.reshape(x, (math.prod(x.dims),))
    size = x.dims[at]
    if size > _LONGEST:
        raise call.refuse(
            "axis", at, f"It has {size} elements, and by ONNX's operators it grows quadratically: "
            f"at most {_LONGEST} are written.",
        )  # fmt: skip
    exclusive = int(bool(call.attr("exclusive", False)))
    shape = (*x.dims[:at], 1, *x.dims[at:])
    mask = np.tri(size, k=-exclusive, dtype="bool").reshape(size, size, *([1] * (x.rank - at - 1)))
    one = g.scalar(1, x.dtype)
    rows = g.add("Where", g.constant(mask), g.reshape(x, shape), one, dtype=x.dtype,
                 shape=(*x.dims[:at], size, *x.dims[at:]))  # fmt: skip
    return reduced(g, "ReduceProd", rows, [at + 1], False)
