"""Multiply-accumulates of a Relay call.

The count is that of `byocviz.flow.relax.macs`: of the direct algorithm, padding included, biases
not; only convolutions, matrix products and contractions have any. A shape that is not wholly
static, or an operator that hides its products, gives None, never a guess.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from byocviz.flow.relay.types import dims

__all__ = ["macs"]


def _arg(call: Any, index: int) -> list[int] | None:
    return dims(call.args[index].checked_type)


def _positions(sizes: list[int] | None, layout: str) -> int | None:
    """Elements along every axis but the channels' (C, and c where they are split)."""
    axes = re.sub(r"[^A-Za-z]", "", layout)
    if sizes is None or len(axes) != len(sizes):
        return None
    return math.prod(s for axis, s in zip(axes, sizes, strict=True) if axis.upper() != "C")


def _conv(call: Any) -> int | None:
    """Convolution: ``N * prod(out spatial) * elements of the kernel``.

    The kernel has ``Cout * (Cin / groups) * prod(window)`` elements in any layout, and each is used
    once at every position of the output. Source: Dumoulin and Visin, arXiv 1603.07285.
    """
    layout = str(call.attrs.out_layout or call.attrs.data_layout)
    places, kernel = _positions(dims(call.checked_type), layout), _arg(call, 1)
    return None if places is None or kernel is None else places * math.prod(kernel)


def _conv_transpose(call: Any) -> int | None:
    """Transposed convolution: ``N * prod(in spatial) * elements of the kernel``.

    Each input position is multiplied with the whole kernel and scattered to the output: products
    that fall outside of it count, inserted zeros do not. Source: arXiv 1603.07285, chapter 4.
    """
    places, kernel = _positions(_arg(call, 0), str(call.attrs.data_layout)), _arg(call, 1)
    return None if places is None or kernel is None else places * math.prod(kernel)


def _dense(call: Any) -> int | None:
    """``nn.dense``: ``prod(output) * K``; the weight is [units, K]."""
    out, weight = dims(call.checked_type), _arg(call, 1)
    if out is None or not weight:
        return None
    return math.prod(out) * weight[-1]


def _matmul(call: Any) -> int | None:
    """``nn.matmul`` and ``nn.batch_matmul``: ``prod(output) * K``; K is the axis of the first
    operand that is no row of the output, the last but for ``transpose_a``."""
    out, left = dims(call.checked_type), _arg(call, 0)
    if out is None or left is None or len(left) < 2:
        return None
    transposed = getattr(call.attrs, "transpose_a", False)
    return math.prod(out) * left[-2 if transposed else -1]


def _deformable(call: Any) -> int | None:
    """``nn.deformable_conv2d``: a convolution whose samples are interpolated first."""
    layout = str(call.attrs.out_layout or call.attrs.data_layout)
    places, kernel = _positions(dims(call.checked_type), layout), _arg(call, 2)
    return None if places is None or kernel is None else places * math.prod(kernel)


def _unknown(call: Any) -> None:
    """What is computed is hidden, or there is more than one way to count it."""


_COUNTED: dict[str, Callable[[Any], int | None]] = {
    **dict.fromkeys(
        (
            "nn.conv1d",
            "nn.conv2d",
            "nn.conv3d",
            "nn.contrib_conv2d_NCHWc",
            "nn.contrib_depthwise_conv2d_NCHWc",
            "qnn.conv2d",
        ),
        _conv,
    ),
    **dict.fromkeys(
        ("nn.conv1d_transpose", "nn.conv2d_transpose", "nn.conv3d_transpose"), _conv_transpose
    ),
    "nn.dense": _dense,
    "qnn.dense": _dense,
    "nn.matmul": _matmul,
    "nn.batch_matmul": _matmul,
    "qnn.batch_matmul": _matmul,
    "nn.deformable_conv2d": _deformable,
    **dict.fromkeys(
        (
            "einsum",
            "nn.bitserial_conv2d",
            "nn.bitserial_dense",
            "nn.contrib_dense_pack",
            "nn.correlation",
            "nn.sparse_conv2d",
            "nn.sparse_dense",
            "nn.internal.sparse_dense_padded",
            "qnn.conv2d_transpose",
        ),
        _unknown,
    ),
}


def macs(call: Any, name: str) -> int | None:
    """Multiply-accumulates of a call of the operator ``name``; None where they cannot be known."""
    count = _COUNTED.get(name)
    if count is not None:
        found = count(call)
        return None if found is None or found > 2**53 else found  # no model has so many
    if "winograd" in name or "_without_weight_transform" in name or name.startswith("call_"):
        return None
    return 0
