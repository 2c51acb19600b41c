"""Activations, clip and softmax."""

from __future__ import annotations

import math

import numpy as np

from byocviz.building.lower.call import Call
from byocviz.building.lower.graph import Graph, Tensor
from byocviz.building.lower.registry import converter


@converter("relax.nn.relu")
def relu(g: Graph, call: Call) -> Tensor:
    x = call.tensor(0)
    if x.dtype in ("int32", "int64"):
        return g.add("Max", x, g.scalar(0, x.dtype))  # which TensorRT has for these, and not Relu
    if "float" in x.dtype or x.dtype in ("int8", "int16"):
        return g.add("Relu", x)
    raise call.refuse("dtype", x.dtype, "ONNX's Relu takes signed numbers.")


@converter("relax.nn.silu")
def silu(g: Graph, call: Call) -> Tensor:
    call.floats()
    x = call.tensor(0)
    return g.add("Mul", x, g.add("Sigmoid", x))


@converter("relax.nn.leakyrelu")
def leakyrelu(g: Graph, call: Call) -> Tensor:
    call.floats()
    return g.add("LeakyRelu", call.tensor(0), alpha=float(call.attr("alpha")))


@converter("relax.nn.prelu")
def prelu(g: Graph, call: Call) -> Tensor:
    call.floats()
    x, slope = call.tensor(0), call.tensor(1)
    axis = call.axis(int(call.attr("axis")), x.rank)
    if slope.rank > 1:
        raise call.refuse("alpha", list(slope.dims), "TVM takes one slope for each channel.")
    shape = [1] * x.rank
    shape[axis] = math.prod(slope.dims)
    return g.add("PRelu", x, g.reshape(slope, shape), shape=x.shape)


@converter("relax.nn.gelu")
def gelu(g: Graph, call: Call) -> Tensor:
    """x * (0.5 + 0.5 * erf(x / sqrt(2)))."""
    call.floats()
    x = call.tensor(0)
    half = g.scalar(0.5, x.dtype)
    erf = g.add("Erf", g.add("Mul", x, g.scalar(math.sqrt(0.5), x.dtype)))
    return g.add("Mul", x, g.add("Add", g.add("Mul", erf, half), half))


@converter("relax.nn.gelu_tanh")
def gelu_tanh(g: Graph, call: Call) -> Tensor:
    """0.5 * x * (1 + tanh(sqrt(2 / pi) * x * (1 + 0.044715 * x^2)))."""
    call.floats()
    x = call.tensor(0)
    one = g.scalar(1, x.dtype)
    cubic = g.add("Mul", g.add("Mul", x, x), g.scalar(0.044715, x.dtype))
    inner = g.add("Mul", g.add("Mul", x, g.scalar(math.sqrt(2 / math.pi), x.dtype)),
                  g.add("Add", cubic, one))  # fmt: skip
    outer = g.add("Add", g.add("Tanh", inner), one)
    return g.add("Mul", g.add("Mul", x, g.scalar(0.5, x.dtype)), outer)


@converter("relax.nn.selu")
def selu(g: Graph, call: Call) -> Tensor:
    call.floats()
    return g.add("Selu", call.tensor(0), alpha=1.6732632423543772, gamma=1.0507009873554805)


@converter("relax.nn.softplus")
def softplus(g: Graph, call: Call) -> Tensor:
    """log(1 + exp(beta x)) / beta, and x itself where beta x exceeds the threshold."""
    call.floats()
    x = call.tensor(0)
    beta = g.scalar(float(call.attr("beta")), x.dtype)
    scaled = g.add("Mul", x, beta)
    soft = g.add("Div", g.add("Softplus", scaled), beta)
    above = g.add("Greater", scaled, g.scalar(float(call.attr("threshold")), x.dtype), dtype="bool")
    return g.add("Where", above, x, soft, dtype=x.dtype)


@converter("relax.nn.softmax")
def softmax(g: Graph, call: Call) -> Tensor:
    return _softmax(g, call, "Softmax")


@converter("relax.nn.log_softmax")
def log_softmax(g: Graph, call: Call) -> Tensor:
    return _softmax(g, call, "LogSoftmax")


def _softmax(g: Graph, call: Call, operator: str) -> Tensor:
    call.floats()
    x = call.tensor(0)
    return g.add(operator, x, axis=call.axis(int(call.attr("axis")), x.rank))


@converter("relax.clip")
def clip(g: Graph, call: Call) -> Tensor:
    x = call.tensor(0)
    if x.dtype == "bool":
        raise call.refuse("dtype", x.dtype, "ONNX's Clip takes numbers.")
    low, high = call.number(1), call.number(2)
    if "int" in x.dtype:
        limits = np.iinfo(x.dtype)
        for name, bound in (("min", low), ("max", high)):
            if not limits.min <= bound <= limits.max or bound != int(bound):
                raise call.refuse(
                    name, bound, f"It is no value of {x.dtype}.", "Give a bound that is one."
                )
    if math.isnan(low) or math.isnan(high):
        raise call.refuse("min, max", f"{low}, {high}", "NaN is no bound.")
    lower, upper = g.scalar(low, x.dtype), g.scalar(high, x.dtype)
    if low <= high:
        return g.add("Clip", x, lower, upper, shape=x.shape)
    # ONNX gives the upper bound then, TVM the lower one.
    return g.add("Max", g.add("Min", x, upper), lower)
