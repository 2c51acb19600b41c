"""Attention, written out."""

from __future__ import annotations

import math

from byocviz.building.lower.call import Call
from byocviz.building.lower.graph import Graph, Tensor
from byocviz.building.lower.registry import converter


@converter("relax.nn.attention", "relax.nn.attention_bias")
def attention(g: Graph, call: Call) -> Tensor:
    """softmax(scale * query key^T + bias) value, over [batch, sequence, heads, size]."""
    call.floats()
    if call.attr("causal_mask") is not None or call.attr("window_size") is not None:
        raise call.refuse(
            "causal_mask, window_size",
            f"{call.attr('causal_mask')}, {call.attr('window_size')}",
            "Attention is written out without masks.",
            "Give the mask as a bias.",
        )
    query, key, value = call.tensor(0), call.tensor(1), call.tensor(2)
    batch, length, heads, size = query.dims
    other = key.dims[1]
    scale = call.attr("scale")
    factor = 1 / math.sqrt(size) if scale is None else float(scale)
    q = g.transpose(query, [0, 2, 1, 3])
    k = g.transpose(key, [0, 2, 3, 1])
    v = g.transpose(value, [0, 2, 1, 3])
    scores = g.add("MatMul", q, k, shape=(batch, heads, length, other))
    scores = g.add("Mul", scores, g.scalar(factor, query.dtype))
    if len(call.args) > 3:
        scores = g.add("Add", scores, call.tensor(3))
    weights = g.add("Softmax", scores, axis=3)
    out = g.add("MatMul", weights, v, shape=(batch, heads, length, value.dims[3]))
    return g.transpose(out, [0, 2, 1, 3])
