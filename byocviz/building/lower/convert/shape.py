"""Operators that only give the same elements another shape or order."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from byocviz.building.lower.call import Call
from byocviz.building.lower.graph import Graph, Tensor
from byocviz.building.lower.registry import converter


@converter("relax.reshape", "relax.flatten", "relax.nn.batch_flatten")
def reshape(g: Graph, call: Call) -> Tensor:
    """The result's shape is known, so that 0 and -1 need no reading."""
    x = call.tensor(0)
    if math.prod(x.dims) != math.prod(call.shape):
        raise call.refuse("shape", list(call.shape), f"{list(x.dims)} has other elements.")
    same = x.shape == call.shape
    return g.add("Identity", x) if same else g.reshape(x, call.shape)


@converter("relax.expand_dims")
def expand_dims(g: Graph, call: Call) -> Tensor:
    x = call.tensor(0)
    rank = len(call.shape)
    axes = sorted(call.axis(a, rank) for a in call.ints("axis"))
    if not axes:
        return g.add("Identity", x)
    return g.add("Unsqueeze", x, g.ints(axes), shape=call.shape)


@converter("relax.squeeze")
def squeeze(g: Graph, call: Call) -> Tensor:
    x = call.tensor(0)
    axis = call.attr("axis")
    if axis is None:
        axes = [i for i, d in enumerate(x.dims) if d == 1]
    else:
        axes = sorted({call.axis(a, x.rank) for a in call.ints("axis")})
    if not axes:
        return g.add("Identity", x)
    return g.add("Squeeze", x, g.ints(axes), shape=call.shape)


@converter("relax.permute_dims")
def permute_dims(g: Graph, call: Call) -> Tensor:
    x = call.tensor(0)
    axes = call.attr("axes")
    order = list(range(x.rank))[::-1] if axes is None else [call.axis(a, x.rank) for a in axes]
    return g.add("Transpose", x, perm=order, shape=call.shape)


@converter("relax.layout_transform")
def layout_transform(g: Graph, call: Call) -> Tensor:
    """An index map that only permutes is a transpose."""
    from tvm import tirx

    x = call.tensor(0)
    index_map = call.raw("index_map")
    start = list(index_map.initial_indices)
    order: list[int] = []
    for index in index_map.final_indices:
        at = [i for i, var in enumerate(start) if var.same_as(index)]
        if not isinstance(index, tirx.Var) or not at:
            raise call.refuse(
                "index_map",
                str(index_map),
                "Only a permutation of the dimensions is expressed; this one splits, joins or "
                "computes them.",
                "Leave it on TVM (switch the rule layout_transform off), or write it as reshape "
                "and permute_dims.",
            )
        order.append(at[0])
    if sorted(order) != list(range(x.rank)):
        raise call.refuse("index_map", str(index_map), "It drops or repeats a dimension.")
    return g.add("Transpose", x, perm=order, shape=call.shape)


@converter("relax.broadcast_to")
def broadcast_to(g: Graph, call: Call) -> Tensor:
    return g.add("Expand", call.tensor(0), g.ints(call.shape), shape=call.shape)


@converter("relax.concat")
def concat(g: Graph, call: Call) -> Tensor:
    parts = call.tensors(0)
    axis = call.attr("axis")
    if axis is None:
        parts, axis = [g.reshape(p, (math.prod(p.dims),)) for p in parts], 0
    at = call.axis(int(axis), parts[0].rank)
    return g.add("Concat", *parts, axis=at, shape=call.shape)


@converter("relax.stack")
def stack(g: Graph, call: Call) -> Tensor:
    axis = call.attr("axis")
    at = call.axis(int(axis or 0), len(call.shape))
    shape = tuple(1 if i == at else d for i, d in enumerate(call.shape))
    parts = [g.add("Unsqueeze", p, g.ints([at]), shape=shape) for p in call.tensors(0)]
    return g.add("Concat", *parts, axis=at, shape=call.shape)


@converter("relax.tile")
def tile(g: Graph, call: Call) -> Tensor:
    x = call.tensor(0)
    repeats = call.ints("repeats")
    rank = max(len(repeats), x.rank)
    x = g.reshape(x, (1,) * (rank - x.rank) + x.dims)
    repeats = [1] * (rank - len(repeats)) + repeats
    return g.add("Tile", x, g.ints(repeats), shape=call.shape)


@converter("relax.repeat")
def repeat(g: Graph, call: Call) -> Tensor:
    x = call.tensor(0)
    axis = call.attr("axis")
    if axis is None:
        x = g.reshape(x, (math.prod(x.dims),))
    at = 0 if axis is None else call.axis(int(axis), x.rank)
    picks = np.repeat(np.arange(x.dims[at]), int(call.attr("repeats")))
    return g.add("Gather", x, g.ints(picks.tolist()), axis=at, shape=call.shape)


@converter("relax.nn.pixel_shuffle")
def pixel_shuffle(g: Graph, call: Call) -> Tensor:
    x = call.tensor(0)
    factor = int(call.attr("upscale_factor"))
    *lead, channels, height, width = x.dims
    split = (*lead, channels // factor**2, factor, factor, height, width)
    n = len(lead)
    order = [*range(n), n, n + 3, n + 1, n + 4, n + 2]
    return g.reshape(g.transpose(g.reshape(x, split), order), call.shape)


_PAD_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@converter("relax.nn.pad")
def pad(g: Graph, call: Call) -> Tensor:
    x = call.tensor(0)
    mode = str(call.attr("pad_mode"))
    widths = call.ints("pad_width")
    if mode not in _PAD_MODES:
        raise call.refuse("pad_mode", mode, f"Known: {', '.join(_PAD_MODES)}.")
    if mode == "circular" and g.opset < 19:
        raise call.refuse("pad_mode", mode, "ONNX wraps from opset 19 on.", "opset=19")
    before, after = widths[::2], widths[1::2]
    if min(widths, default=0) < 0:
        raise call.refuse("pad_width", widths, "A negative width cuts: runtimes differ there.")
    if mode == "replicate" and any(
        size == 0 and left + right for size, left, right in zip(x.dims, before, after, strict=True)
    ):
        raise call.refuse("pad_width", widths, f"{list(x.dims)} has no edge to repeat.")
    limits = {"reflect": -1, "circular": 0}
    if mode in limits:
        for size, left, right in zip(x.dims, before, after, strict=True):
            if max(left, right) > max(size + limits[mode], 0):
                raise call.refuse("pad_width", widths, f"It is wider than {list(x.dims)} allows.")
    fill: list[Any] = []
    if mode == "constant":
        fill = [g.scalar(call.attr("pad_value"), x.dtype)]
    return g.add("Pad", x, g.ints(before + after), *fill, mode=_PAD_MODES[mode], shape=call.shape)


@converter("relax.meshgrid")
def meshgrid(g: Graph, call: Call) -> list[Tensor]:
    """Each vector along its own axis, spread over the others."""
    parts = call.tensors(0)
    indexing = str(call.attr("indexing") or "ij")
    if indexing != "ij":
        raise call.refuse(
            "indexing",
            indexing,
            "Relax gives it the shape of 'ij'.",
            "Transpose the result of 'ij'.",
        )
    out = []
    for axis, (part, shape) in enumerate(zip(parts, call.shapes, strict=True)):
        spread = [1] * len(parts)
        spread[axis] = math.prod(part.dims)
        out.append(g.add("Expand", g.reshape(part, spread), g.ints(shape), shape=shape))
    return out
