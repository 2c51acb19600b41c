"""Operators that mean the same in Relax, some under another name there."""

from __future__ import annotations

from typing import Any

from byocviz.building.lower.graph import Graph
from byocviz.building.relay.lower.call import RelayCall
from byocviz.building.relay.lower.registry import converter, shared

SAME = (
    "sigmoid", "tanh", "exp", "log", "sqrt", "rsqrt", "sin", "cos", "tan", "asin", "acos", "atan",
    "sinh", "cosh", "asinh", "acosh", "atanh", "erf", "abs", "negative", "sign", "ceil", "floor",
    "trunc", "round", "isnan", "isinf", "isfinite", "logical_not", "bitwise_not",
    "add", "subtract", "multiply", "divide", "maximum", "minimum", "power", "floor_divide", "mod",
    "floor_mod", "equal", "not_equal", "greater", "greater_equal", "less", "less_equal",
    "logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor",
    "left_shift", "right_shift", "where",
    "nn.relu", "nn.prelu", "nn.softmax", "nn.log_softmax", "nn.dropout",
    "nn.conv1d", "nn.conv2d", "nn.conv3d",
    "nn.conv1d_transpose", "nn.conv2d_transpose", "nn.conv3d_transpose",
    "nn.max_pool1d", "nn.max_pool2d", "nn.max_pool3d",
    "nn.avg_pool1d", "nn.avg_pool2d", "nn.avg_pool3d",
    "reshape", "nn.batch_flatten", "squeeze", "stack", "split", "repeat",
    "zeros", "zeros_like", "ones", "ones_like", "broadcast_to", "one_hot",
)  # fmt: skip
"""Name and attributes are those of Relax."""

RENAMED = {
    "nn.leaky_relu": "nn.leakyrelu",
    "cast": "astype",
    "cast_like": "astype",
    "concatenate": "concat",
    "transpose": "permute_dims",
    "reverse": "flip",
    "reshape_like": "reshape",
    "broadcast_to_like": "broadcast_to",
}
"""Relax's name by Relay's; the attributes are the same."""


def _as(name: str) -> Any:
    def convert(g: Graph, call: RelayCall) -> Any:
        return shared(name)(g, call)

    convert.__name__ = name.replace(".", "_")
    return convert


for _name in SAME:
    converter(_name)(_as(_name))
for _name, _relax in RENAMED.items():
    converter(_name)(_as(_relax))


@converter("copy", "annotation.stop_fusion")
def copy(g: Graph, call: RelayCall) -> Any:
    return g.add("Identity", call.tensor(0))
