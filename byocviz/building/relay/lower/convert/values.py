"""Clipping, picking, sorting, filling and resizing, where Relay's attributes differ."""

from __future__ import annotations

from typing import Any

import numpy as np

from byocviz.building.lower.graph import Graph, Tensor
from byocviz.building.relay.lower.call import RelayCall
from byocviz.building.relay.lower.registry import converter, shared


@converter("clip")
def clip(g: Graph, call: RelayCall) -> Any:
    """The bounds are attributes."""
    x = call.tensor(0)
    bounds = [float(call.attr(name)) for name in ("a_min", "a_max")]
    if "int" in x.dtype:
        # Bounds beyond the type bound nothing.
        limits = np.iinfo(x.dtype)
        bounds = [min(max(b, float(limits.min)), float(limits.max)) for b in bounds]
        whole = [int(b) if float(b).is_integer() else b for b in bounds]
        bounds = [min(max(b, limits.min), limits.max) for b in whole]
    return shared("clip")(g, call.seen(x, *bounds))


@converter("full", "full_like")
def full(g: Graph, call: RelayCall) -> Any:
    value = call.tensor(1 if call.name == "full_like" else 0)
    return shared("full")(g, call.seen(None, value))


@converter("arange")
def arange(g: Graph, call: RelayCall) -> Tensor:
    start, _, step = (call.number(i) for i in range(3))
    return g.constant(start + step * np.arange(call.shape[0]), call.dtype)


@converter("take")
def take(g: Graph, call: RelayCall) -> Any:
    if call.attr("batch_dims"):
        raise call.refuse("batch_dims", call.attr("batch_dims"), "ONNX's Gather has no batches.")
    return shared("take")(g, call)


@converter("gather")
def gather(g: Graph, call: RelayCall) -> Any:
    return shared("gather_elements")(g, call)


@converter("gather_nd")
def gather_nd(g: Graph, call: RelayCall) -> Tensor:
    """Relay's indices run along the first axis, ONNX's along the last."""
    x, indices = call.tensor(0), call.tensor(1)
    if call.attr("batch_dims"):
        raise call.refuse("batch_dims", call.attr("batch_dims"), "It is written without batches.")
    order = [*range(1, indices.rank), 0]
    return g.add("GatherND", x, g.cast(g.transpose(indices, order), "int64"), shape=call.shape)


@converter("topk")
def topk(g: Graph, call: RelayCall) -> Any:
    view = call.seen(largest=not call.attr("is_ascend"))
    return shared("topk")(g, view)


@converter("sort", "argsort")
def sort(g: Graph, call: RelayCall) -> Any:
    return shared(call.name)(g, call.seen(descending=not call.attr("is_ascend")))


@converter("image.resize2d", "image.resize3d")
def resize(g: Graph, call: RelayCall) -> Any:
    """The size is an attribute."""
    return shared(call.name)(g, call.seen(call.tensor(0), call.attr("size")))


@converter("nn.upsampling")
def upsampling(g: Graph, call: RelayCall) -> Any:
    """A resize to what the scales make of the size; TVM's own code says the same."""
    layout, method = str(call.attr("layout")), str(call.attr("method"))
    size = [call.shape[layout.index(axis)] for axis in "HW"]
    view = call.seen(
        call.tensor(0),
        size,
        method=method.removeprefix("bi"),
        coordinate_transformation_mode="align_corners"
        if call.attr("align_corners")
        else "asymmetric",
        rounding_method="",
        cubic_alpha=-0.5,
        cubic_exclude=0,
    )
    return shared("image.resize2d")(g, view)
