"""Quantising and back, by a scale and a zero point of the whole tensor or of each channel."""

from __future__ import annotations

from typing import Any

import numpy as np

from byocviz.building.lower.call import Call
from byocviz.building.lower.graph import Graph, Tensor
from byocviz.building.lower.registry import converter


@converter("relax.quantize")
def quantize(g: Graph, call: Call) -> Tensor:
    """Rounded to even and kept within the type, by both."""
    x = call.tensor(0)
    if x.dtype != "float32" or call.dtype not in ("int8", "uint8"):
        raise call.refuse("dtype", f"{x.dtype} to {call.dtype}",
                          "Expressed is float32 to int8 or uint8.")  # fmt: skip
    scale, zero, axis = _scales(g, call, x, call.dtype)
    return g.add("QuantizeLinear", x, scale, zero, dtype=call.dtype, shape=x.shape, **axis)


@converter("relax.dequantize")
def dequantize(g: Graph, call: Call) -> Tensor:
    x = call.tensor(0)
    if x.dtype not in ("int8", "uint8") or call.dtype != "float32":
        raise call.refuse("dtype", f"{x.dtype} to {call.dtype}",
                          "Expressed is int8 or uint8 to float32.")  # fmt: skip
    scale, zero, axis = _scales(g, call, x, x.dtype)
    return g.add("DequantizeLinear", x, scale, zero, dtype="float32", shape=x.shape, **axis)


def _scales(g: Graph, call: Call, x: Tensor, dtype: str) -> tuple[Tensor, Tensor, dict[str, Any]]:
    """Scale and zero point of one shape, [] or [channels], the latter of the type of the numbers;
    and the axis of the channels, where there are several."""
    scale, zero = call.tensor(1, "float32"), call.tensor(2, dtype)
    if scale.dtype != "float32":
        raise call.refuse("scale", scale.dtype, "ONNX takes it in float32.")
    if zero.dtype != dtype:
        if zero.data is None:
            raise call.refuse("zero_point", zero.dtype, f"ONNX takes it in {dtype}.",
                              "Bind it as a constant.")  # fmt: skip
        values = zero.value()
        if not np.array_equal(values.astype(dtype).astype(values.dtype), values):
            raise call.refuse("zero_point", values.tolist(), f"ONNX takes it in {dtype}.")
        zero = g.constant(values, dtype)
    sizes = [int(np.prod(t.dims, dtype="int64")) for t in (scale, zero)]
    if max(sizes) == 1:
        return g.reshape(scale, ()), g.reshape(zero, ()), {}
    axis = call.axis(int(call.attr("axis")), x.rank)
    wanted = (x.dims[axis],)
    made = [
        g.reshape(t, wanted) if t.dims == wanted
        else g.add("Expand", g.reshape(t, (1,)), g.ints(wanted), shape=wanted)
        for t in (scale, zero)
    ]  # fmt: skip
    return made[0], made[1], {"axis": axis}
