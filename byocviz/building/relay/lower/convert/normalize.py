"""Normalisations. Unlike in Relax, ``center`` and ``scale`` say what is applied."""

from __future__ import annotations

from typing import Any

import numpy as np

from byocviz.building.lower.convert.reduce import reduced
from byocviz.building.lower.graph import Graph, Tensor
from byocviz.building.relay.lower.call import RelayCall
from byocviz.building.relay.lower.registry import converter, shared


def _affine(g: Graph, call: RelayCall) -> tuple[Tensor, Tensor]:
    """Scale and offset, in place of those that are not applied ones and zeros."""
    gamma, beta = call.tensor(1), call.tensor(2)
    if not call.attr("scale", True):
        gamma = g.constant(np.ones(gamma.dims), gamma.dtype)
    if not call.attr("center", True):
        beta = g.constant(np.zeros(beta.dims), beta.dtype)
    return gamma, beta


def _channel(call: RelayCall) -> tuple[int, list[int]]:
    """The channels' axis, and all others but the first."""
    rank = call.tensor(0).rank
    axis = call.axis(int(call.attr("axis")), rank)
    return axis, [i for i in range(1, rank) if i != axis]


@converter("nn.batch_norm")
def batch_norm(g: Graph, call: RelayCall) -> Any:
    """As at inference."""
    gamma, beta = _affine(g, call)
    view = call.seen(
        call.tensor(0), gamma, beta, call.tensor(3), call.tensor(4), center=True, scale=True
    )
    return shared("nn.batch_norm")(g, view)


@converter("nn.layer_norm")
def layer_norm(g: Graph, call: RelayCall) -> Any:
    gamma, beta = _affine(g, call)
    axes = [int(call.attr("axis"))]
    view = call.seen(call.tensor(0), gamma, beta, center=True, scale=True, axes=axes)
    return shared("nn.layer_norm")(g, view)


@converter("nn.instance_norm", "nn.group_norm")
def instance_norm(g: Graph, call: RelayCall) -> Any:
    gamma, beta = _affine(g, call)
    axis, axes = _channel(call)
    view = call.seen(
        call.tensor(0), gamma, beta, center=True, scale=True, axes=axes, channel_axis=axis
    )
    return shared(call.name)(g, view)


@converter("nn.l2_normalize")
def l2_normalize(g: Graph, call: RelayCall) -> Tensor:
    """x / sqrt(max(sum(x^2), eps))."""
    call.floats()
    x = call.tensor(0)
    given = call.attr("axis")
    axes = sorted({call.axis(int(a), x.rank) for a in (range(x.rank) if given is None else given)})
    total = reduced(g, "ReduceSum", g.add("Mul", x, x), axes, True)
    least = g.add("Max", total, g.scalar(float(call.attr("eps")), x.dtype))
    return g.add("Div", x, g.add("Sqrt", least))


@converter("nn.lrn")
def lrn(g: Graph, call: RelayCall) -> Tensor:
    """x / (bias + alpha / size * the sum of squares of the channels around)^beta."""
    call.floats()
    x = call.tensor(0)
    axis, size = call.axis(int(call.attr("axis")), x.rank), int(call.attr("size"))
    if size % 2 == 0:
        raise call.refuse("size", size, "ONNX and TVM place an even window differently.")
    order = [0, axis, *(i for i in range(1, x.rank) if i != axis)]
    if axis == 0:
        raise call.refuse("axis", axis, "The first axis is the batch.")
    moved = g.transpose(x, order)
    out = g.add(
        "LRN", moved, size=size, alpha=float(call.attr("alpha")), beta=float(call.attr("beta")),
        bias=float(call.attr("bias")), shape=moved.shape,
    )  # fmt: skip
    return g.transpose(out, [order.index(i) for i in range(x.rank)])
