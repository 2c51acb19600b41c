"""Normalisations."""

from __future__ import annotations

import math

from byocviz.building.lower.call import Call
from byocviz.building.lower.convert.reduce import reduced, spread
from byocviz.building.lower.graph import Graph, Tensor
from byocviz.building.lower.layouts import inverse
from byocviz.building.lower.registry import converter


def _affine(call: Call) -> None:
    """TVM compiles scale and offset whatever these attributes say, its documentation differs."""
    for name in ("center", "scale"):
        if call.attr(name, True) is False:
            raise call.refuse(
                name,
                False,
                "TVM's own code applies the offset and the scale all the same.",
                f"Give zeros for beta or ones for gamma, and {name}=True.",
            )


def _sorted_axes(call: Call, rank: int) -> list[int]:
    axes = [call.axis(a, rank, "axes") for a in call.ints("axes")]
    if axes != sorted(set(axes)):
        raise call.refuse(
            "axes", call.attr("axes"), "They are not in increasing order.", "Sort them."
        )
    return axes


def _last(g: Graph, x: Tensor, axes: list[int]) -> tuple[Tensor, list[int]]:
    """The tensor with these axes at the end, and the order that undoes it."""
    order = [i for i in range(x.rank) if i not in axes] + axes
    return g.transpose(x, order), inverse(order)


@converter("relax.nn.layer_norm")
def layer_norm(g: Graph, call: Call) -> Tensor:
    call.floats()
    _affine(call)
    x, gamma, beta = call.tensor(0), call.tensor(1), call.tensor(2)
    axes = _sorted_axes(call, x.rank)
    moved, undo = _last(g, x, axes)
    out = g.add(
        "LayerNormalization",
        moved,
        gamma,
        beta,
        shape=moved.shape,
        axis=x.rank - len(axes),
        epsilon=float(call.attr("epsilon")),
    )
    return g.transpose(out, undo)


@converter("relax.nn.rms_norm")
def rms_norm(g: Graph, call: Call) -> Tensor:
    """x / sqrt(mean(x^2) + epsilon) * weight, in float32 as TVM does."""
    call.floats()
    x, weight = call.tensor(0), call.tensor(1)
    axes = _sorted_axes(call, x.rank)
    moved, undo = _last(g, x, axes)
    wide = g.cast(moved, "float32") if x.dtype == "float16" else moved
    last = list(range(x.rank - len(axes), x.rank))
    mean = reduced(g, "ReduceMean", g.add("Mul", wide, wide), last, True)
    root = g.add("Sqrt", g.add("Add", mean, g.scalar(float(call.attr("epsilon")), wide.dtype)))
    scaled = g.add("Mul", g.add("Div", wide, root), g.cast(weight, wide.dtype))
    return g.transpose(g.cast(scaled, x.dtype), undo)


def _channels(call: Call, x: Tensor) -> tuple[list[int], int]:
    """The reduced axes and the channel axis; all other axes but the first must be reduced."""
    axes = _sorted_axes(call, x.rank)
    channel = call.axis(int(call.attr("channel_axis")), x.rank, "channel_axis")
    if sorted([0, channel, *axes]) != list(range(x.rank)) or channel == 0:
        raise call.refuse(
            "axes",
            axes,
            "It is expressed over all axes but the first and the channel's.",
            "Leave it on TVM.",
        )
    return axes, channel


def _per_channel(g: Graph, x: Tensor, values: Tensor) -> Tensor:
    return g.reshape(
        values, (1, -1 if values.shape is None else values.dims[0], *[1] * (x.rank - 2))
    )


@converter("relax.nn.instance_norm")
def instance_norm(g: Graph, call: Call) -> Tensor:
    call.floats()
    _affine(call)
    x, gamma, beta = call.tensor(0), call.tensor(1), call.tensor(2)
    axes, channel = _channels(call, x)
    order = [0, channel, *axes]
    moved = g.transpose(x, order)
    out = g.add(
        "InstanceNormalization", moved, gamma, beta, shape=moved.shape,
        epsilon=float(call.attr("epsilon")),
    )  # fmt: skip
    return g.transpose(out, inverse(order))


@converter("relax.nn.group_norm")
def group_norm(g: Graph, call: Call) -> Tensor:
    """Each group of channels is one instance; then scale and offset by channel."""
    call.floats()
    _affine(call)
    x, gamma, beta = call.tensor(0), call.tensor(1), call.tensor(2)
    axes, channel = _channels(call, x)
    order = [0, channel, *axes]
    moved = g.transpose(x, order)
    groups = int(call.attr("num_groups"))
    batch, channels = moved.dims[:2]
    if channels % groups:
        raise call.refuse("num_groups", groups, f"{channels} channels are not divisible by it.")
    flat = g.reshape(moved, (batch, groups, math.prod(moved.dims[1:]) // groups))
    epsilon = g.scalar(float(call.attr("epsilon")), x.dtype)
    away = g.add("Sub", flat, reduced(g, "ReduceMean", flat, [2], True))
    root = g.add("Sqrt", g.add("Add", spread(g, flat, [2], True), epsilon))
    whole = g.reshape(g.add("Div", away, root), moved.dims)
    scaled = g.add("Mul", whole, _per_channel(g, moved, gamma))
    return g.transpose(g.add("Add", scaled, _per_channel(g, moved, beta)), inverse(order))


@converter("relax.nn.batch_norm")
def batch_norm(g: Graph, call: Call) -> list[Tensor]:
    """As at inference: mean and variance are given, and handed on."""
    call.floats()
    _affine(call)
    if call.attr("training"):
        raise call.refuse(
            "training",
            True,
            "An engine computes no batch statistics.",
            "Use relax.transform.DecomposeOpsForInference, or training=False.",
        )
    x, gamma, beta, mean, variance = (call.tensor(i) for i in range(5))
    axis = call.axis(int(call.attr("axis")), x.rank)
    order = [0, axis, *(i for i in range(1, x.rank) if i != axis)]
    if axis == 0:
        raise call.refuse("axis", axis, "The first axis is the batch.")
    moved = g.transpose(x, order)
    out = g.add(
        "BatchNormalization", moved, gamma, beta, mean, variance, shape=moved.shape,
        epsilon=float(call.attr("epsilon")),
    )  # fmt: skip
    return [g.transpose(out, inverse(order)), g.add("Identity", mean), g.add("Identity", variance)]
