"""Gathering and scattering by index."""

from __future__ import annotations

import math

from byocviz.building.lower.call import Call
from byocviz.building.lower.graph import Graph, Tensor
from byocviz.building.lower.registry import converter


def _indices(g: Graph, x: Tensor) -> Tensor:
    return x if x.dtype in ("int32", "int64") else g.cast(x, "int64")


def _within(call: Call, indices: Tensor, size: int) -> None:
    """Refuse constant indices that no element has: TVM reads beyond the tensor then."""
    if indices.constant and indices.value().size:
        values = indices.value()
        if values.min() < 0 or values.max() >= size:
            raise call.refuse(
                "indices",
                f"{values.min()} to {values.max()}",
                f"There are {size} elements, and what TVM reads beyond them is not defined.",
                "Give indices from 0 on, or mode='clip' or 'wrap'.",
            )


@converter("relax.take")
def take(g: Graph, call: Call) -> Tensor:
    x, indices = call.tensor(0), call.tensor(1, "int64")
    axis, mode = call.attr("axis"), str(call.attr("mode", "fast"))
    if axis is None:
        x = g.reshape(x, (math.prod(x.dims),))
    at = 0 if axis is None else call.axis(int(axis), x.rank)
    size = x.dims[at]
    if size == 0 and 0 not in indices.dims:
        raise call.refuse("axis", at, "There is no element along it to take.")
    indices = _indices(g, indices)
    if mode == "fast":
        _within(call, indices, size)
    elif mode == "clip":
        bounds = g.scalar(0, indices.dtype), g.scalar(size - 1, indices.dtype)
        indices = g.add("Clip", indices, *bounds, shape=indices.shape)
    elif mode == "wrap":
        indices = g.add("Mod", indices, g.scalar(size, indices.dtype), fmod=0)
    else:
        raise call.refuse(
            "mode", mode, "ONNX's Gather gives no NaN for an index out of range.", "mode='clip'"
        )
    return g.add("Gather", x, indices, axis=at, shape=call.shape)


@converter("relax.gather_elements")
def gather_elements(g: Graph, call: Call) -> Tensor:
    x, indices = call.tensor(0), call.tensor(1)
    axis = call.axis(int(call.attr("axis")), x.rank)
    _within(call, indices, x.dims[axis])
    return g.add("GatherElements", x, _indices(g, indices), axis=axis, shape=call.shape)


@converter("relax.gather_nd")
def gather_nd(g: Graph, call: Call) -> Tensor:
    x, indices = call.tensor(0), call.tensor(1)
    batch = int(call.attr("batch_dims"))
    wide = g.cast(indices, "int64")
    return g.add("GatherND", x, wide, batch_dims=batch, shape=call.shape)


def _reduction(g: Graph, call: Call) -> str:
    given = str(call.attr("reduction"))
    name = {"update": "none", "add": "add", "mul": "mul", "min": "min", "max": "max"}.get(given)
    if name is None:
        raise call.refuse("reduction", given, "ONNX knows update, add, mul, min and max.")
    if name in ("min", "max") and g.opset < 18:
        raise call.refuse("reduction", given, "ONNX has it from opset 18 on.", "opset=18")
    return name


@converter("relax.scatter_elements")
def scatter_elements(g: Graph, call: Call) -> Tensor:
    x, indices, updates = call.tensor(0), call.tensor(1), call.tensor(2)
    axis = call.axis(int(call.attr("axis")), x.rank)
    return g.add(
        "ScatterElements", x, _indices(g, indices), updates, axis=axis, shape=call.shape,
        reduction=_reduction(g, call),
    )  # fmt: skip


@converter("relax.scatter_nd")
def scatter_nd(g: Graph, call: Call) -> Tensor:
    x, indices, updates = call.tensor(0), call.tensor(1), call.tensor(2)
    return g.add(
        "ScatterND", x, g.cast(indices, "int64"), updates, shape=call.shape,
        reduction=_reduction(g, call),
    )  # fmt: skip


@converter("relax.one_hot")
def one_hot(g: Graph, call: Call) -> Tensor:
    """By comparing: ONNX's OneHot counts negative indices from the end, TVM does not."""
    # A narrow type may not hold the depth.
    indices = _indices(g, call.tensor(0))
    depth, rank = int(call.attr("depth")), len(call.shape)
    axis = call.axis(int(call.attr("axis")), rank)
    on, off = (g.scalar(call.number(i), call.dtype) for i in (1, 2))
    spread = [1] * rank
    spread[axis] = depth
    shape = (*indices.dims[:axis], 1, *indices.dims[axis:])
    classes = g.constant(list(range(depth)), indices.dtype)
    hit = g.add("Equal", g.reshape(indices, shape), g.reshape(classes, spread), dtype="bool")
    return g.add("Where", hit, on, off, dtype=call.dtype)
