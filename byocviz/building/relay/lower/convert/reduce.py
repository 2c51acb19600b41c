"""Reductions; ``exclude`` reduces all axes but those that are named."""

from __future__ import annotations

import math
from typing import Any

from byocviz.building.lower.convert.reduce import reduced
from byocviz.building.lower.graph import Graph, Tensor
from byocviz.building.relay.lower.call import RelayCall
from byocviz.building.relay.lower.registry import converter, shared


def _axes(call: RelayCall) -> list[int] | None:
    """The axes, counted from the front; None for all."""
    rank = call.tensor(0).rank
    given = call.attr("axis")
    if given is None:
        return None
    axes = {call.axis(int(a), rank) for a in (given if isinstance(given, list) else [given])}
    if call.attr("exclude"):
        axes = set(range(rank)) - axes
    return sorted(axes)


def _plain(name: str) -> Any:
    def convert(g: Graph, call: RelayCall) -> Any:
        return shared(name)(g, call.seen(axis=_axes(call)))

    return convert


for _name in ("sum", "prod", "max", "min", "mean"):
    converter(_name)(_plain(_name))


@converter("variance")
def variance(g: Graph, call: RelayCall) -> Tensor:
    """The mean of the squared distances from the second argument."""
    call.floats()
    x, mean = call.tensor(0), call.tensor(1)
    found = _axes(call)
    axes = list(range(x.rank)) if found is None else found
    away = g.add("Sub", x, mean)
    total = reduced(g, "ReduceSum", g.add("Mul", away, away), axes, bool(call.attr("keepdims")))
    count = math.prod(x.dims[a] for a in axes) - bool(call.attr("unbiased"))
    if count < 1:
        raise call.refuse("axis", axes, "Nothing is left to divide by.")
    return g.add("Div", total, g.scalar(count, x.dtype))


def _arg(operator: str) -> Any:
    def convert(g: Graph, call: RelayCall) -> Tensor:
        axes = _axes(call)
        x = call.tensor(0)
        if axes is not None and len(axes) == x.rank:
            axes = None
        if axes is not None and len(axes) != 1:
            raise call.refuse("axis", axes, "ONNX finds the position along one axis, or in all.")
        if x.dtype == "bool":
            raise call.refuse("dtype", x.dtype, f"ONNX's {operator} takes numbers.")
        keep, last = int(bool(call.attr("keepdims"))), int(bool(call.attr("select_last_index")))
        at = 1 if axes is None else axes[0]
        if axes is None:
            # Two dimensions: TensorRT finds no position in a vector.
            x, keep = g.reshape(x, (1, math.prod(x.dims))), 0
        shape = tuple(1 if i == at else d for i, d in enumerate(x.dims) if keep or i != at)
        found = g.add(
            operator, x, axis=at, keepdims=keep, select_last_index=last, dtype="int64", shape=shape
        )
        return g.cast(g.reshape(found, call.shape), call.dtype)

    return convert


converter("argmax")(_arg("ArgMax"))
converter("argmin")(_arg("ArgMin"))


@converter("cumsum")
def cumsum(g: Graph, call: RelayCall) -> Any:
    return shared("cumsum")(g, call.seen(exclusive=bool(call.attr("exclusive"))))
