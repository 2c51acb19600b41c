"""The walkthrough graph of the TVMConf 2020 demo.

A loop: a recursive function around an If. The branch that goes on adds one to the counter and runs
conv2d - bias - relu; the branch that ends runs conv2d - bias - relu and a reshape.
"""

from __future__ import annotations

from typing import Any

import tvm
from tvm import relay
from tvm.relay.dataflow_pattern import is_op, wildcard

from .case import case, const, x

OPERATORS = ("add", "reshape")
"""The demo's single operators."""

SUBGRAPHS = (
    ("main_0", {"add": 1}),
    ("main_2", {"nn.bias_add": 1, "nn.conv2d": 1, "nn.relu": 1}),
    ("main_5", {"nn.bias_add": 1, "nn.conv2d": 1, "nn.relu": 1, "reshape": 1}),
)
"""The end of each subgraph's name, and its operators."""


def rules(backend: str) -> list[tuple[Any, ...]]:
    """The demo's rules under another name, written apart from byocviz's tutorial."""
    convolution = is_op("nn.conv2d")(wildcard(), wildcard())
    biased = is_op("nn.bias_add")(is_op("nn.conv2d")(wildcard(), wildcard()), wildcard())
    return [
        (f"{backend}.conv2d_bias_relu", is_op("nn.relu")(biased)),
        (f"{backend}.conv2d_relu", is_op("nn.relu")(convolution)),
        *((f"{backend}.{name}", name) for name in OPERATORS),
    ]


@case("recursion", "if", "let", "closure", backend="tutorial", subgraphs=3, operators=9)
def walkthrough() -> tvm.IRModule:
    counter, image = x("i", (), "int32"), x()
    weight, bias = const((4, 4, 3, 3), 1), const((4,), 2)
    loop = relay.var("loop")

    def block(value: Any) -> Any:
        made = relay.nn.conv2d(value, weight, kernel_size=(3, 3), channels=4, padding=(1, 1))
        return relay.nn.relu(relay.nn.bias_add(made, bias))

    body = relay.If(
        relay.less(counter, relay.const(3, "int32")),
        relay.Call(loop, [relay.add(counter, relay.const(1, "int32")), block(image)]),
        relay.reshape(block(image), (1, 256)),
    )
    function = relay.Function([counter, image], body, relay.TensorType((1, 256)))
    data = x("data")
    start = relay.Call(loop, [relay.const(0, "int32"), data])
    return tvm.IRModule.from_expr(relay.Function([data], relay.Let(loop, function, start)))


@case(backend="tutorial", subgraphs=1, operators=3)
def tutorial_without_bias() -> Any:
    made = relay.nn.relu(relay.nn.conv2d(x(), const((4, 4, 3, 3), 1), padding=(1, 1)))
    return relay.reshape(made, (4, 64))


@case("used-outside", backend="tutorial", operators=5)
def tutorial_used_twice() -> Any:
    """The convolution's result is used outside the pattern as well, so it cannot match."""
    made = relay.nn.conv2d(x(), const((4, 4, 3, 3), 1), padding=(1, 1))
    activated = relay.nn.relu(relay.nn.bias_add(made, const((4,), 2)))
    return relay.add(activated, relay.tanh(made))
