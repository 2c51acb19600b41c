"""Layouts such as NHWC, brought to the order that ONNX knows by exact transposes."""

from __future__ import annotations

from byocviz.building.lower.call import Call
from byocviz.building.lower.graph import Graph, Tensor


def order(call: Call, attribute: str, wanted: str, layout: str | None = None) -> list[int]:
    """The axes of ``layout`` in the order ``wanted``.

    ``wanted`` and the layout name the same axes, as ``NCHW`` and ``NHWC`` do. A layout with a
    split axis (``NCHW4c``) is refused.
    """
    layout = str(call.attr(attribute)) if layout is None else layout
    if sorted(layout) != sorted(wanted):
        raise call.refuse(
            attribute,
            layout,
            f"ONNX knows {wanted} and what a transpose makes of it.",
            "Undo the layout change (relax.transform.ConvertLayout) before the module is recorded.",
        )
    return [layout.index(axis) for axis in wanted]


def inverse(axes: list[int]) -> list[int]:
    """The order that undoes a transpose by ``axes``."""
    return [axes.index(i) for i in range(len(axes))]


def to(g: Graph, call: Call, x: Tensor, attribute: str, wanted: str) -> Tensor:
    """The tensor with its axes in the order ``wanted``; ``attribute`` names its layout."""
    return g.transpose(x, order(call, attribute, wanted))


def back(g: Graph, call: Call, x: Tensor, attribute: str, given: str) -> Tensor:
    """A result whose axes are ``given`` in the layout that the attribute asks for.

    An empty ``out_layout`` means that of the data.
    """
    layout = str(call.attr(attribute) or "")
    if not layout:
        layout = str(call.attr("data_layout") or call.attr("layout") or given)
    return g.transpose(x, inverse(order(call, attribute, given, layout)))
