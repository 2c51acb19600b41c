"""Matrix products, and the bias after them."""

from __future__ import annotations

from byocviz.building.lower.graph import Graph, Tensor
from byocviz.building.relay.lower.call import RelayCall
from byocviz.building.relay.lower.registry import converter, shared


def _turned(g: Graph, x: Tensor) -> Tensor:
    """The last two axes exchanged."""
    order = list(range(x.rank))
    return g.transpose(x, [*order[:-2], order[-1], order[-2]])


def _product(g: Graph, call: RelayCall, a: Tensor, b: Tensor) -> Tensor:
    made: Tensor = shared("matmul")(g, call.seen(a, b))
    return made


@converter("nn.dense")
def dense(g: Graph, call: RelayCall) -> Tensor:
    """The weights are [units, inputs]."""
    return _product(g, call, call.tensor(0), _turned(g, call.tensor(1)))


@converter("nn.matmul", "nn.batch_matmul")
def matmul(g: Graph, call: RelayCall) -> Tensor:
    a, b = call.tensor(0), call.tensor(1)
    if call.attr("transpose_a"):
        a = _turned(g, a)
    if call.attr("transpose_b"):
        b = _turned(g, b)
    return _product(g, call, a, b)


@converter("nn.bias_add")
def bias_add(g: Graph, call: RelayCall) -> Tensor:
    x, bias = call.tensor(0), call.tensor(1)
    axis = call.axis(int(call.attr("axis")), x.rank)
    shape = [1] * x.rank
    shape[axis] = bias.dims[0]
    return g.add("Add", x, g.reshape(bias, shape))
