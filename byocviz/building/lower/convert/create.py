"""Tensors that are known before anything runs, and masks."""

from __future__ import annotations

import numpy as np

from byocviz.building.lower.call import Call
from byocviz.building.lower.graph import Graph, Tensor
from byocviz.building.lower.registry import converter


@converter("relax.full", "relax.full_like")
def full(g: Graph, call: Call) -> Tensor:
    value = call.args[1]
    if isinstance(value, Tensor) and not value.constant:
        return g.add("Expand", g.cast(value, call.dtype), g.ints(call.shape), shape=call.shape)
    return g.constant(np.full(call.shape, call.number(1)), call.dtype)


@converter("relax.zeros", "relax.zeros_like")
def zeros(g: Graph, call: Call) -> Tensor:
    return g.constant(np.zeros(call.shape), call.dtype)


@converter("relax.ones", "relax.ones_like")
def ones(g: Graph, call: Call) -> Tensor:
    return g.constant(np.ones(call.shape), call.dtype)


@converter("relax.arange")
def arange(g: Graph, call: Call) -> Tensor:
    start, stop, step = (call.number(i) for i in range(3))
    return g.constant(np.arange(start, stop, step, dtype=call.dtype))


@converter("relax.tril")
def tril(g: Graph, call: Call) -> Tensor:
    return _triangle(g, call, upper=False)


@converter("relax.triu")
def triu(g: Graph, call: Call) -> Tensor:
    return _triangle(g, call, upper=True)


def _triangle(g: Graph, call: Call, *, upper: bool) -> Tensor:
    x = call.tensor(0)
    k = int(call.number(1))
    ones = np.ones(x.dims[-2:], dtype="bool")
    mask = g.constant(np.triu(ones, k) if upper else np.tril(ones, k))
    if x.dtype == "bool":  # runtimes choose between numbers only
        return g.add("And", mask, x, shape=x.shape)
    return g.add("Where", mask, x, g.scalar(0, x.dtype), dtype=x.dtype)
