"""Resizing images."""

from __future__ import annotations

from typing import Any

import numpy as np

from byocviz.building.lower.call import Call
from byocviz.building.lower.graph import Graph, Tensor
from byocviz.building.lower.layouts import inverse, order
from byocviz.building.lower.registry import converter

_METHODS = {"nearest_neighbor": "nearest", "linear": "linear", "cubic": "cubic"}
_COORDINATES = ("asymmetric", "align_corners", "half_pixel", "pytorch_half_pixel")
_ROUNDING = ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")


@converter("relax.image.resize2d", "relax.image.resize3d")
def resize(g: Graph, call: Call) -> Tensor:
    wanted = "NCHW" if call.tensor(0).rank == 4 else "NCDHW"
    method = str(call.attr("method"))
    mode = str(call.attr("coordinate_transformation_mode"))
    if method not in _METHODS:
        raise call.refuse("method", method, f"ONNX knows {', '.join(_METHODS)}.")
    if method == "cubic" and len(wanted) > 4:
        raise call.refuse("method", method, "Runtimes interpolate cubically along two axes.")
    if mode not in _COORDINATES:
        raise call.refuse(
            "coordinate_transformation_mode", mode, f"Expressed are {', '.join(_COORDINATES)}."
        )
    axes = order(call, "layout", wanted)
    x = g.transpose(call.tensor(0), axes)
    if "float" not in x.dtype and method != "nearest_neighbor":
        raise call.refuse("dtype", x.dtype, "Runtimes interpolate floats.", "Cast it first.")
    goal = call.numbers(1)
    if len(goal) == 1:
        goal *= len(wanted) - 2
    sizes = list(zip(x.dims[2:], goal, strict=True))
    if mode == "align_corners" and any(new == 1 for _, new in sizes):
        raise call.refuse(
            "size", goal, "One pixel has no corners to align.",
            "Use another coordinate_transformation_mode.",
        )  # fmt: skip
    if method == "nearest_neighbor":
        out = _nearest(g, call, x, sizes, mode)
    else:
        cubic: dict[str, Any] = {}
        if method == "cubic":
            cubic = {
                "cubic_coeff_a": float(call.attr("cubic_alpha")),
                "exclude_outside": int(call.attr("cubic_exclude")),
            }
        out = _resize(
            g, x, sizes, mode=_METHODS[method], coordinate_transformation_mode=mode, **cubic
        )
    if call.dtype != x.dtype:
        out = g.cast(out, call.dtype)
    return g.transpose(out, inverse(axes))


def _resize(g: Graph, x: Tensor, sizes: list[tuple[int, int]], **attributes: Any) -> Tensor:
    shape = (*x.dims[:2], *(new for _, new in sizes))
    return g.add("Resize", x, None, None, g.ints(shape), shape=shape, **attributes)


def _nearest(g: Graph, call: Call, x: Tensor, sizes: list[tuple[int, int]], mode: str) -> Tensor:
    """A Resize node where its rounding picks what TVM's picks at every place, else two Gathers.

    Which pixels TVM picks is known, as the sizes are.
    """
    rounding = str(call.attr("rounding_method")) or (
        "round" if mode == "align_corners" else "floor"
    )
    if rounding not in (*_ROUNDING, "round"):
        raise call.refuse("rounding_method", rounding, f"Known: round, {', '.join(_ROUNDING)}.")
    wanted = [_picks(old, new, mode, rounding) for old, new in sizes]
    candidates = (
        [rounding] if rounding in _ROUNDING else ["round_prefer_floor", "round_prefer_ceil"]
    )
    for nearest in candidates if x.dtype in ("float32", "int8", "uint8", "int32") else []:
        given = [_onnx_picks(old, new, mode, nearest) for old, new in sizes]
        if given == wanted:
            return _resize(
                g, x, sizes, mode="nearest", coordinate_transformation_mode=mode,
                nearest_mode=nearest,
            )  # fmt: skip
    for axis, picks in enumerate(wanted, start=2):
        shape = (*x.dims[:axis], len(picks), *x.dims[axis + 1 :])
        x = g.add("Gather", x, g.ints(picks), axis=axis, shape=shape)
    return x


_F = np.float32


def _coordinates(old: int, new: int, mode: str, scale: Any, by: str = "multiply") -> Any:
    """Where the new pixels lie in the old image, in single precision."""
    at = np.arange(new, dtype="float32")
    if mode == "align_corners":
        return at * _F((old - 1) / (new - 1))
    if mode == "asymmetric":
        return at * scale if by == "multiply" else at / scale
    if mode == "pytorch_half_pixel" and new == 1:
        return np.zeros(1, dtype="float32")
    half = at + _F(0.5)
    return (half * scale if by == "multiply" else half / scale) - _F(0.5)


def _picks(old: int, new: int, mode: str, rounding: str) -> list[int]:
    """The pixel that TVM's code takes for each new one: it multiplies by old / new, and keeps a
    hundred-thousandth away from the edges when it rounds down or up."""
    if mode == "asymmetric" and rounding == "floor" and new % old == 0:
        return [i * old // new for i in range(new)]
    at = _coordinates(old, new, mode, _F(old / new))
    return _rounded(at, rounding, _F(1e-5), old)


def _onnx_picks(old: int, new: int, mode: str, rounding: str) -> list[int]:
    """The pixel that the ONNX definition takes: it divides by new / old."""
    at = _coordinates(old, new, mode, _F(_F(new) / _F(old)), by="divide")
    return _rounded(at, rounding, _F(0), old)


def _rounded(at: Any, rounding: str, margin: Any, size: int) -> list[int]:
    half = _F(0.5)
    found = {
        "round": np.rint(at),
        "round_prefer_floor": np.ceil(at - half),
        "round_prefer_ceil": np.floor(at + half),
        "floor": np.floor(at + margin),
        "ceil": np.ceil(at - margin),
    }[rounding]
    return [int(i) for i in np.clip(found, 0, size - 1)]


@converter("relax.image.grid_sample")
def grid_sample(g: Graph, call: Call) -> Tensor:
    """TVM's grid is [batch, 2, height, width], ONNX's [batch, height, width, 2]."""
    x, grid = call.tensor(0), call.tensor(1)
    call.floats(x, grid)
    layout = str(call.attr("layout"))
    if layout != "NCHW" or x.rank != 4:
        raise call.refuse("layout", layout, "ONNX samples images in NCHW.")
    method = str(call.attr("method"))
    names = {"bilinear": "bilinear", "nearest": "nearest", "bicubic": "bicubic"}
    if g.opset >= 20:
        names |= {"bilinear": "linear", "bicubic": "cubic"}
    padding = str(call.attr("padding_mode"))
    if method not in names or padding not in ("zeros", "border", "reflection"):
        raise call.refuse("method, padding_mode", f"{method}, {padding}", "ONNX has no such.")
    return g.add(
        "GridSample", x, g.transpose(grid, [0, 2, 3, 1]), shape=call.shape, mode=names[method],
        padding_mode=padding, align_corners=int(bool(call.attr("align_corners"))),
    )  # fmt: skip
