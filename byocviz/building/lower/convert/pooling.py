"""Pooling over one to three dimensions, and adaptive pooling."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from byocviz.building.lower.call import Call
from byocviz.building.lower.convert.convolution import SPATIAL
from byocviz.building.lower.graph import Graph, Tensor
from byocviz.building.lower.layouts import back, order, to
from byocviz.building.lower.registry import converter


@dataclass
class _Axis:
    """The window along one dimension.

    ``after`` is the padding that makes a window without ceil_mode give ``out`` elements; the
    attribute's own is ``pad_after``.
    """

    size: int
    kernel: int
    stride: int
    dilation: int
    before: int
    pad_after: int
    after: int
    out: int

    def taps(self, padding: bool = False) -> list[int]:
        """How many positions of each window lie in the tensor, or in it and its padding."""
        low = -self.before if padding else 0
        high = self.size + self.pad_after if padding else self.size
        return [
            sum(
                low <= o * self.stride - self.before + k * self.dilation < high
                for k in range(self.kernel)
            )
            for o in range(self.out)
        ]


def _axes(call: Call, size: tuple[int, ...], out: tuple[int, ...]) -> list[_Axis]:
    kernel, strides = call.ints("pool_size"), call.ints("strides")
    dilation, padding = call.ints("dilation"), call.ints("padding")
    rank = len(size)
    if 0 in size:
        raise call.refuse("shape", list(size), "Runtimes pool no tensor without an element.")
    found = []
    for i in range(rank):
        before, after = padding[i], padding[i + rank]
        extent = dilation[i] * (kernel[i] - 1) + 1
        # With ceil_mode the last window may reach beyond the padding, or padding be left over;
        # runtimes differ there, so it is padded to what gives this many windows without.
        if (size[i] + before + after - extent) // strides[i] + 1 == out[i]:
            reach = after
        else:
            reach = max((out[i] - 1) * strides[i] + extent - size[i] - before, 0)
        found.append(
            _Axis(size[i], kernel[i], strides[i], dilation[i], before, after, reach, out[i])
        )
    return found


def _out(call: Call, names: str) -> tuple[int, ...]:
    """How many windows Relax says there are along each dimension."""
    layout = str(call.attr("out_layout") or call.attr("layout"))
    axes = order(call, "out_layout", f"NC{names}", layout)
    return tuple(call.shape[axis] for axis in axes[2:])


def _windows(g: Graph, x: Tensor, axes: list[_Axis], fill: float) -> tuple[Tensor, list[int]]:
    """The tensor and the pads that the pooling node is given.

    Runtimes take no padding as wide as the window, and differ on windows that lie wholly in it:
    then the tensor is padded beforehand.
    """
    pads = [a.before for a in axes] + [a.after for a in axes]
    wide = any(a.before >= a.kernel or a.after >= a.kernel or 0 in a.taps() for a in axes)
    if not wide:
        return x, pads
    full = [0, 0, *pads[: len(axes)], 0, 0, *pads[len(axes) :]]
    shape = (*x.dims[:2], *(a.size + a.before + a.after for a in axes))
    padded = g.add("Pad", x, g.ints(full), g.scalar(fill, x.dtype), shape=shape, mode="constant")
    return padded, [0] * len(pads)


def _lowest(dtype: str) -> float:
    if dtype == "bfloat16":  # NumPy does not know it: 8 bits of exponent, 7 of the fraction
        return -(2.0 - 2.0**-7) * 2.0**127
    return float(np.finfo(dtype).min if "float" in dtype else np.iinfo(dtype).min)


@converter("relax.nn.max_pool1d", "relax.nn.max_pool2d", "relax.nn.max_pool3d")
def max_pool(g: Graph, call: Call) -> Tensor:
    names = SPATIAL[call.tensor(0).rank - 2]
    x = to(g, call, call.tensor(0), "layout", f"NC{names}")
    if "float" not in x.dtype and x.dtype not in ("int8", "uint8"):
        raise call.refuse("dtype", x.dtype, "ONNX's MaxPool takes floats, int8 and uint8.")
    axes = _axes(call, x.dims[2:], _out(call, names))
    lowest = _lowest(x.dtype)
    x, pads = _windows(g, x, axes, lowest)
    out = g.add(
        "MaxPool",
        x,
        shape=(*x.dims[:2], *(a.out for a in axes)),
        kernel_shape=[a.kernel for a in axes],
        strides=[a.stride for a in axes],
        dilations=[a.dilation for a in axes],
        pads=pads,
    )
    return back(g, call, out, "out_layout", f"NC{names}")


@converter("relax.nn.avg_pool1d", "relax.nn.avg_pool2d", "relax.nn.avg_pool3d")
def avg_pool(g: Graph, call: Call) -> Tensor:
    names = SPATIAL[call.tensor(0).rank - 2]
    call.floats()
    x = to(g, call, call.tensor(0), "layout", f"NC{names}")
    axes = _axes(call, x.dims[2:], _out(call, names))
    counted = [a.taps(bool(call.attr("count_include_pad"))) for a in axes]
    whole = all(set(c) == {a.kernel} for c, a in zip(counted, axes, strict=True))
    dilated = any(a.dilation > 1 for a in axes)
    if dilated and g.opset < 19:
        out = _by_convolution(g, x, axes, counted)
        return back(g, call, out, "out_layout", f"NC{names}")
    padded, pads = _windows(g, x, axes, 0.0)
    # The node's own count leaves all padding out; it gives NaN for a window without an element.
    own = not whole and padded is x and counted == [a.taps() for a in axes]
    extra: dict[str, Any] = {"dilations": [a.dilation for a in axes]} if dilated else {}
    out = g.add(
        "AveragePool",
        padded,
        shape=(*x.dims[:2], *(a.out for a in axes)),
        kernel_shape=[a.kernel for a in axes],
        strides=[a.stride for a in axes],
        pads=pads,
        count_include_pad=0 if own else 1,
        **extra,
    )
    if not whole and not own:
        total = math.prod(a.kernel for a in axes)
        out = g.add("Mul", out, g.constant(total / _counts(counted), x.dtype), shape=out.shape)
    return back(g, call, out, "out_layout", f"NC{names}")


def _counts(counted: list[list[int]]) -> Any:
    """How many elements each window averages, [1, 1, *out]; 1 where there are none, as in TVM."""
    outer = reduce(np.multiply.outer, [np.array(c, dtype="float64") for c in counted])
    return np.maximum(outer, 1.0)[None, None]


def _by_convolution(g: Graph, x: Tensor, axes: list[_Axis], counted: list[list[int]]) -> Tensor:
    """Averages over dilated windows, which AveragePool has from opset 19 on: sums by a
    convolution of ones for each channel, over the number of elements."""
    channels = x.dims[1]
    kernel = [a.kernel for a in axes]
    out = g.add(
        "Conv",
        x,
        g.constant(np.ones((channels, 1, *kernel)), x.dtype),
        shape=(*x.dims[:2], *(a.out for a in axes)),
        kernel_shape=kernel,
        strides=[a.stride for a in axes],
        dilations=[a.dilation for a in axes],
        pads=[a.before for a in axes] + [a.after for a in axes],
        group=channels,
    )
    return g.add("Mul", out, g.constant(1.0 / _counts(counted), x.dtype), shape=out.shape)


@converter(
    "relax.nn.adaptive_avg_pool1d", "relax.nn.adaptive_avg_pool2d", "relax.nn.adaptive_avg_pool3d"
)
def adaptive_avg_pool(g: Graph, call: Call) -> Tensor:
    names = SPATIAL[call.tensor(0).rank - 2]
    call.floats()
    x = to(g, call, call.tensor(0), "layout", f"NC{names}")
    size = x.dims[2:]
    goal = call.attr("output_size")
    outs = list(size) if goal is None else [int(v) for v in goal]
    if len(outs) == 1:
        outs *= len(size)
    shape = (*x.dims[:2], *outs)
    if outs == list(size):
        out = g.add("Identity", x)
    elif all(o == 1 for o in outs):
        out = g.add("GlobalAveragePool", x, shape=shape)
    elif all(s % o == 0 for s, o in zip(size, outs, strict=True)):
        step = [s // o for s, o in zip(size, outs, strict=True)]
        out = g.add("AveragePool", x, shape=shape, kernel_shape=step, strides=step)
    else:
        out = x
        for axis, (s, o) in enumerate(zip(size, outs, strict=True), start=2):
            out = _mean_along(g, out, axis, s, o)
    return back(g, call, out, "out_layout", f"NC{names}")


def _mean_along(g: Graph, x: Tensor, axis: int, size: int, out: int) -> Tensor:
    """Averages of the windows floor(i size / out) ... ceil((i + 1) size / out) along one axis.

    They differ in length, which no pooling node has; a product with a constant matrix does it.
    """
    if size == out:
        return x
    means = np.zeros((size, out))
    for i in range(out):
        start, stop = i * size // out, -(-(i + 1) * size // out)
        means[start:stop, i] = 1.0 / (stop - start)
    last = x.rank - 1
    order = [*(i for i in range(x.rank) if i != axis), axis]
    moved = g.transpose(x, order)
    shape = (*moved.dims[:-1], out)
    product = g.add("MatMul", moved, g.constant(means, x.dtype), shape=shape)
    undo = [*range(axis), last, *range(axis, last)]
    return g.transpose(product, undo)
