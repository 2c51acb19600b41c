"""The walkthrough graph of the TVMConf 2020 demo, in Relax.

A loop written as recursion around an If. The branch that goes on adds one to the counter and
runs conv2d - bias - relu; the branch that ends runs conv2d - bias - relu and a reshape. With the
tutorial's rules this gives three subgraphs: the add; conv2d-bias-relu; conv2d-bias-relu with the
reshape.
"""

from __future__ import annotations

from typing import Any

import tvm
from tvm.relax.dpl import is_op, wildcard

from .case import array, case, module


def patterns() -> list[tuple[str, Any]]:
    """The tutorial's rules: several operators first, as the first match takes an operator.

    Written here apart from `byocviz.backends` so that its table is checked against another.
    """
    convolution = is_op("relax.nn.conv2d")(wildcard(), wildcard())
    biased = is_op("relax.add")(is_op("relax.nn.conv2d")(wildcard(), wildcard()), wildcard())
    return [
        ("tutorial.conv2d_bias_relu", is_op("relax.nn.relu")(biased)),
        ("tutorial.conv2d_relu", is_op("relax.nn.relu")(convolution)),
        ("tutorial.reshape", is_op("relax.reshape")(wildcard(), wildcard())),
        ("tutorial.add", is_op("relax.add")(wildcard(), wildcard())),
    ]


SUBGRAPHS = (
    {"relax.add": 1},
    {"relax.nn.conv2d": 1, "relax.add": 1, "relax.nn.relu": 1},
    {"relax.nn.conv2d": 1, "relax.add": 1, "relax.nn.relu": 1, "relax.reshape": 1},
)
"""Operators of each subgraph."""


def _weights() -> dict[str, Any]:
    return {"weight": array((4, 4, 3, 3), 1), "bias": array((1, 4, 1, 1), 3)}


@case(
    "walkthrough",
    "recursion",
    "if",
    "if-dataflow",
    "params",
    backend="tutorial",
    params=_weights,
    subgraphs=3,
)
def walkthrough() -> tvm.IRModule:
    return module("""
        @R.function
        def loop(i: R.Tensor((), "int32"), x: X, weight: R.Tensor((4, 4, 3, 3), "float32"),
                 bias: R.Tensor((1, 4, 1, 1), "float32")) -> R.Tensor((1, 256), "float32"):
            c = R.less(i, R.const(3, "int32"))
            if c:
                with R.dataflow():
                    j = R.add(i, R.const(1, "int32"))
                    conv = R.nn.conv2d(x, weight, padding=(1, 1))
                    biased = R.add(conv, bias)
                    y = R.nn.relu(biased)
                    R.output(j, y)
                r = Module.loop(j, y, weight, bias)
                result = r
            else:
                with R.dataflow():
                    conv_e = R.nn.conv2d(x, weight, padding=(1, 1))
                    biased_e = R.add(conv_e, bias)
                    y_e = R.nn.relu(biased_e)
                    flat = R.reshape(y_e, R.shape([1, 256]))
                    R.output(flat)
                result = flat
            return result

        @R.function
        def main(x: X, weight: R.Tensor((4, 4, 3, 3), "float32"),
                 bias: R.Tensor((1, 4, 1, 1), "float32")) -> R.Tensor((1, 256), "float32"):
            out = Module.loop(R.const(0, "int32"), x, weight, bias)
            return out
    """)


@case("walkthrough", backend="tutorial", subgraphs=1)
def tutorial_without_bias() -> tvm.IRModule:
    from .case import flow

    return flow(
        "x: X",
        """
        a = R.nn.conv2d(x, W, padding=(1, 1))
        b = R.nn.relu(a)
        c = R.reshape(b, R.shape([4, 64]))
        R.output(c)
        return c
    """,
    )


@case("walkthrough", backend="tutorial", subgraphs=2)
def tutorial_bias_used_twice() -> tvm.IRModule:
    """The convolution's result is used outside the pattern as well, so it cannot match."""
    from .case import flow

    return flow(
        "x: X",
        """
        a = R.nn.conv2d(x, W, padding=(1, 1))
        b = R.add(a, B)
        c = R.nn.relu(b)
        d = R.tanh(a)
        e = R.add(c, d)
        R.output(e)
        return e
    """,
    )
