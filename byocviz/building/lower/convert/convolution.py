"""Convolutions, plain and transposed, over one to three dimensions."""

from __future__ import annotations

from byocviz.building.lower.call import Call
from byocviz.building.lower.graph import Graph, Tensor
from byocviz.building.lower.layouts import back, order, to
from byocviz.building.lower.registry import converter

SPATIAL = {1: "W", 2: "HW", 3: "DHW"}
"""Names of the dimensions that a kernel moves along."""


def _operands(g: Graph, call: Call, data: str, kernel: str) -> tuple[Tensor, Tensor]:
    """Data and kernel in ONNX's layouts and of the result's type."""
    x, w = call.tensor(0), call.tensor(1)
    for tensor in (x, w):
        if "float" not in tensor.dtype or "float" not in call.dtype:
            raise call.refuse(
                "dtype",
                f"{x.dtype} by {w.dtype} to {call.dtype}",
                "ONNX's convolution is of floats.",
                "Dequantise the operands first, or leave it on TVM.",
            )
    x = to(g, call, x, "data_layout", data)
    w = to(g, call, w, "kernel_layout", kernel)
    # TVM casts both operands to out_dtype and sums in it.
    return g.cast(x, call.dtype), g.cast(w, call.dtype)


@converter("relax.nn.conv1d", "relax.nn.conv2d", "relax.nn.conv3d")
def conv(g: Graph, call: Call) -> Tensor:
    rank = call.tensor(0).rank - 2
    axes = SPATIAL[rank]
    x, w = _operands(g, call, f"NC{axes}", f"OI{axes}")
    out = g.add(
        "Conv",
        x,
        w,
        shape=_shape(call, f"NC{axes}"),
        kernel_shape=list(w.dims[2:]),
        strides=call.ints("strides"),
        pads=call.ints("padding"),
        dilations=call.ints("dilation"),
        group=int(call.attr("groups")),
    )
    return back(g, call, out, "out_layout", f"NC{axes}")


@converter("relax.nn.conv1d_transpose", "relax.nn.conv2d_transpose", "relax.nn.conv3d_transpose")
def conv_transpose(g: Graph, call: Call) -> Tensor:
    rank = call.tensor(0).rank - 2
    axes = SPATIAL[rank]
    x, w = _operands(g, call, f"NC{axes}", f"IO{axes}")
    strides, extra = call.ints("strides"), call.ints("output_padding")
    for step, more in zip(strides, extra, strict=True):
        if more >= step:
            raise call.refuse(
                "output_padding", extra, f"It must be smaller than the strides {strides}."
            )
    out = g.add(
        "ConvTranspose",
        x,
        w,
        shape=_shape(call, f"NC{axes}"),
        kernel_shape=list(w.dims[2:]),
        strides=strides,
        pads=call.ints("padding"),
        dilations=call.ints("dilation"),
        output_padding=extra,
        group=int(call.attr("groups")),
    )
    return back(g, call, out, "out_layout", f"NC{axes}")


def _shape(call: Call, wanted: str) -> tuple[int, ...]:
    """The shape of the result with its axes in the order ``wanted``."""
    layout = str(call.attr("out_layout") or call.attr("data_layout"))
    return tuple(call.shape[axis] for axis in order(call, "out_layout", wanted, layout))
