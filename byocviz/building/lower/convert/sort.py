"""Sorting, and the largest elements."""

from __future__ import annotations

from byocviz.building.lower.call import Call
from byocviz.building.lower.graph import Graph, Tensor
from byocviz.building.lower.registry import converter


def _top(g: Graph, call: Call, x: Tensor, count: int, largest: bool) -> list[Tensor]:
    if x.dtype == "bool":
        raise call.refuse("dtype", x.dtype, "ONNX sorts numbers.", "Cast it first.")
    axis = call.axis(int(call.attr("axis")), x.rank)
    shape = tuple(count if i == axis else d for i, d in enumerate(x.dims))
    return g.add_several(
        "TopK", x, g.ints([count]), dtypes=[x.dtype, "int64"], shapes=[shape, shape],
        axis=axis, largest=int(largest), sorted=1,
    )  # fmt: skip


@converter("relax.topk")
def topk(g: Graph, call: Call) -> Tensor | list[Tensor]:
    x = call.tensor(0)
    axis = call.axis(int(call.attr("axis")), x.rank)
    count = int(call.attr("k"))
    count = x.dims[axis] if count < 1 else count
    if count > x.dims[axis]:
        raise call.refuse("k", count, f"There are {x.dims[axis]} elements along axis {axis}.")
    values, indices = _top(g, call, x, count, bool(call.attr("largest")))
    wanted = str(call.attr("ret_type"))
    if wanted == "values":
        return values
    indices = g.cast(indices, str(call.attr("dtype")))
    return indices if wanted == "indices" else [values, indices]


@converter("relax.sort")
def sort(g: Graph, call: Call) -> Tensor:
    x = call.tensor(0)
    count = x.dims[call.axis(int(call.attr("axis")), x.rank)]
    return _top(g, call, x, count, bool(call.attr("descending")))[0]


@converter("relax.argsort")
def argsort(g: Graph, call: Call) -> Tensor:
    x = call.tensor(0)
    count = x.dims[call.axis(int(call.attr("axis")), x.rank)]
    indices = _top(g, call, x, count, bool(call.attr("descending")))[1]
    return g.cast(indices, call.dtype)
