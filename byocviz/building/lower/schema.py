"""What ONNX itself says of a node: the element types that an operator takes at an opset."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

_NAMES = {
    "float32": "float",
    "float64": "double",
    **{name: name for name in ("float16", "bfloat16", "bool")},
    **{f"{u}int{b}": f"{u}int{b}" for u in ("", "u") for b in (8, 16, 32, 64)},
}
"""ONNX's names of the element types in its schemas."""

_WINDOWS = {"Conv", "ConvTranspose", "MaxPool", "AveragePool", "Resize", "GridSample"}
"""Nodes that ONNX Runtime refuses when it runs them on no element, or to give none; it takes an
empty batch."""

Types = tuple[str | None, ...]


@lru_cache(maxsize=4096)
def wrong_types(operator: str, opset: int, inputs: Types, outputs: Types) -> str:
    """Why a node of these element types is none of ONNX's at that opset; "" where it is one.

    None stands for an input that is left out. Types that this package does not name are not
    judged.
    """
    from onnx import defs

    try:
        schema = defs.get_schema(operator, opset, "")
    except defs.SchemaError:
        return f"ONNX has no {operator} at opset {opset}."
    bound: dict[str, str] = {}
    for formals, given in ((schema.inputs, inputs), (schema.outputs, outputs)):
        for place, dtype in enumerate(given):
            formal = _formal(formals, place)
            if formal is None:
                return f"ONNX's {operator} has {len(formals)} inputs or outputs, not {len(given)}."
            if dtype is None or dtype not in _NAMES:
                continue
            if f"tensor({_NAMES[dtype]})" not in formal.types:
                known = [name for name, own in _NAMES.items() if f"tensor({own})" in formal.types]
                return f"At opset {opset} ONNX defines {operator} for {', '.join(known)} only."
            if formal.is_homogeneous and bound.setdefault(formal.type_str, dtype) != dtype:
                return f"ONNX's {operator} takes one type for both, not {bound[formal.type_str]}."
    return ""


def _formal(formals: Sequence[Any], place: int) -> Any:
    """The formal parameter at that place; the last may stand for any number more."""
    if place < len(formals):
        return formals[place]
    last = formals[-1] if formals else None
    return last if last is not None and last.option.name == "Variadic" else None


def nothing_there(operator: str, shapes: Sequence[tuple[int, ...] | None]) -> str:
    """Why a node with data and result of these shapes cannot run; "" where it can."""
    if operator in _WINDOWS:
        for shape in shapes:
            if shape is not None and min(shape[1:], default=1) <= 0:
                return f"Runtimes run no {operator} on {list(shape)}: there is no element."
    return ""
