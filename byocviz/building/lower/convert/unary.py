"""Element-wise operators of one tensor."""

from __future__ import annotations

from typing import Any

from byocviz.building.lower.call import Call
from byocviz.building.lower.graph import Graph, Tensor
from byocviz.building.lower.registry import converter

_FLOATS = {
    "relax.sigmoid": "Sigmoid",
    "relax.tanh": "Tanh",
    "relax.exp": "Exp",
    "relax.log": "Log",
    "relax.sqrt": "Sqrt",
    "relax.sin": "Sin",
    "relax.cos": "Cos",
    "relax.tan": "Tan",
    "relax.asin": "Asin",
    "relax.acos": "Acos",
    "relax.atan": "Atan",
    "relax.sinh": "Sinh",
    "relax.cosh": "Cosh",
    "relax.asinh": "Asinh",
    "relax.acosh": "Acosh",
    "relax.atanh": "Atanh",
    "relax.erf": "Erf",
}
_SIGNED = {"relax.abs": "Abs", "relax.negative": "Neg", "relax.sign": "Sign"}
_ROUNDING = {"relax.ceil": "Ceil", "relax.floor": "Floor"}


def _floats(operator: str) -> Any:
    def convert(g: Graph, call: Call) -> Tensor:
        call.floats()
        return g.add(operator, call.tensor(0))

    return convert


def _signed(operator: str) -> Any:
    def convert(g: Graph, call: Call) -> Tensor:
        x = call.tensor(0)
        if x.dtype == "bool":
            raise call.refuse("dtype", x.dtype, f"ONNX's {operator} takes numbers.")
        if x.dtype.startswith("uint") and operator == "Neg":
            raise call.refuse("dtype", x.dtype, "ONNX's Neg takes signed numbers.")
        return g.add(operator, x)

    return convert


def _rounding(operator: str) -> Any:
    def convert(g: Graph, call: Call) -> Tensor:
        x = call.tensor(0)
        # Integers are whole already.
        return g.add(operator, x) if "float" in x.dtype else g.add("Identity", x)

    return convert


for _name, _operator in _FLOATS.items():
    converter(_name)(_floats(_operator))
for _name, _operator in _SIGNED.items():
    converter(_name)(_signed(_operator))
for _name, _operator in _ROUNDING.items():
    converter(_name)(_rounding(_operator))


@converter("relax.round")
def round_(g: Graph, call: Call) -> Tensor:
    """TVM rounds a half to the even neighbour, as ONNX does."""
    x = call.tensor(0)
    return g.add("Round", x) if "float" in x.dtype else g.add("Identity", x)


@converter("relax.trunc")
def trunc(g: Graph, call: Call) -> Tensor:
    x = call.tensor(0)
    if "float" not in x.dtype:
        return g.add("Identity", x)
    below = g.add("Less", x, g.scalar(0, x.dtype), dtype="bool")
    return g.add("Where", below, g.add("Ceil", x), g.add("Floor", x), dtype=x.dtype)


@converter("relax.rsqrt")
def rsqrt(g: Graph, call: Call) -> Tensor:
    call.floats()
    return g.add("Reciprocal", g.add("Sqrt", call.tensor(0)))


@converter("relax.square")
def square(g: Graph, call: Call) -> Tensor:
    x = call.tensor(0)
    if x.dtype == "bool":
        raise call.refuse("dtype", x.dtype, "ONNX's Mul takes numbers.", "Cast it first.")
    return g.add("Mul", x, x)


@converter("relax.isnan")
def isnan(g: Graph, call: Call) -> Tensor:
    call.floats()
    return g.add("IsNaN", call.tensor(0), dtype="bool")


@converter("relax.isinf")
def isinf(g: Graph, call: Call) -> Tensor:
    call.floats()
    return infinite(g, call.tensor(0))


def infinite(g: Graph, x: Tensor) -> Tensor:
    """Where floats are infinite."""
    # Before opset 20 IsInf takes no float16; the cast keeps infinities.
    wide = g.cast(x, "float32") if x.dtype in ("float16", "bfloat16") else x
    return g.add("IsInf", wide, dtype="bool")


@converter("relax.isfinite")
def isfinite(g: Graph, call: Call) -> Tensor:
    call.floats()
    x = call.tensor(0)
    odd = g.add("Or", g.add("IsNaN", x, dtype="bool"), infinite(g, x))
    return g.add("Not", odd)


@converter("relax.logical_not")
def logical_not(g: Graph, call: Call) -> Tensor:
    x = call.tensor(0)
    if x.dtype != "bool":
        raise call.refuse("dtype", x.dtype, "ONNX's Not takes booleans.", "Cast it to bool first.")
    return g.add("Not", x)


@converter("relax.bitwise_not")
def bitwise_not(g: Graph, call: Call) -> Tensor:
    x = call.tensor(0)
    if x.dtype == "bool":
        return g.add("Not", x)
    if g.opset < 18:
        raise call.refuse("dtype", x.dtype, "ONNX has BitwiseNot from opset 18 on.", "opset=18")
    return g.add("BitwiseNot", x)


@converter("relax.astype")
def astype(g: Graph, call: Call) -> Tensor:
    x = call.tensor(0)
    if x.dtype == call.dtype:
        return g.add("Identity", x)
    if call.dtype not in _CASTS or x.dtype not in _CASTS:
        raise call.refuse("dtype", f"{x.dtype} to {call.dtype}", "ONNX has no such type.")
    return g.cast(x, call.dtype)


_CASTS = {
    "bool", "float16", "bfloat16", "float32", "float64",
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
}  # fmt: skip


@converter("relax.nn.dropout")
def dropout(g: Graph, call: Call) -> list[Tensor]:
    """TVM compiles it as at inference: the input as it is, and a mask of ones."""
    x = call.tensor(0)
    import numpy as np

    return [g.add("Identity", x), g.constant(np.ones(x.dims), x.dtype)]
