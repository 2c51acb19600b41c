"""Global and adaptive pooling."""

from __future__ import annotations

from typing import Any

from byocviz.building.lower.convert.convolution import SPATIAL
from byocviz.building.lower.graph import Graph, Tensor
from byocviz.building.lower.layouts import back, to
from byocviz.building.relay.lower.call import RelayCall
from byocviz.building.relay.lower.registry import converter, shared


@converter("nn.global_avg_pool2d")
def global_avg_pool(g: Graph, call: RelayCall) -> Any:
    return shared("nn.adaptive_avg_pool2d")(g, call.seen(output_size=[1]))


@converter("nn.adaptive_avg_pool1d", "nn.adaptive_avg_pool2d", "nn.adaptive_avg_pool3d")
def adaptive_avg_pool(g: Graph, call: RelayCall) -> Any:
    return shared("nn.adaptive_avg_pool2d")(g, call.seen(output_size=_goal(call)))


@converter("nn.global_max_pool2d")
def global_max_pool(g: Graph, call: RelayCall) -> Tensor:
    return _max(g, call, [1, 1])


@converter("nn.adaptive_max_pool1d", "nn.adaptive_max_pool2d", "nn.adaptive_max_pool3d")
def adaptive_max_pool(g: Graph, call: RelayCall) -> Tensor:
    return _max(g, call, _goal(call))


def _goal(call: RelayCall) -> list[int] | None:
    """The size of the result; None for that of the data."""
    found = call.attr("output_size")
    return [int(v) for v in found] if found else None


def _max(g: Graph, call: RelayCall, goal: list[int] | None) -> Tensor:
    names = SPATIAL[call.tensor(0).rank - 2]
    call.floats()
    x = to(g, call, call.tensor(0), "layout", f"NC{names}")
    size = list(x.dims[2:])
    outs = size if goal is None else goal * (len(size) if len(goal) == 1 else 1)
    shape = (*x.dims[:2], *outs)
    if outs == size:
        out = g.add("Identity", x)
    elif all(o == 1 for o in outs):
        out = g.add("GlobalMaxPool", x, shape=shape)
    elif all(s % o == 0 for s, o in zip(size, outs, strict=True)):
        step = [s // o for s, o in zip(size, outs, strict=True)]
        out = g.add("MaxPool", x, shape=shape, kernel_shape=step, strides=step)
    else:
        raise call.refuse(
            "output_size", goal, f"Windows of {size} would differ in size, and ONNX has no such.",
            "Give a size that divides that of the data.",
        )  # fmt: skip
    return back(g, call, out, "out_layout", f"NC{names}")
