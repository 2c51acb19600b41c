"""A facet of a matched piece, and the changes that facets are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tvm import relax

from byocviz.flow.relax.compat import tensor_of
from byocviz.flow.relax.reasons.fragment import Fragment, Leaf, zeros

Change = Callable[[Fragment], Fragment]


@dataclass(frozen=True)
class Facet:
    """``kind`` is ``attr``, ``dtype``, ``symbol``, ``symbolic``, ``shape``, ``rank``,
    ``constant``, ``variable`` or ``value``; ``label`` names it, ``seen`` is what it is now,
    ``words`` are what the check's source would call it. Each option is (what it becomes, how)."""

    kind: str
    label: str
    seen: str
    options: tuple[tuple[str, Change], ...]
    words: tuple[str, ...] = ()
    ops: tuple[str, ...] = ()
    parts: tuple[Any, ...] = ()
    """What it changes together: axes, or symbols."""
    only: Callable[[tuple[Any, ...]], Facet] | None = None
    """The facet that changes some of the parts, with options of the same names."""
    group: str = ""
    """Facets of one group are the same change, of more or of fewer parts."""


def replaced(i: int, **changes: Any) -> Change:
    return lambda fragment: fragment.with_leaf(i, **changes)


def retype(fragment: Fragment, i: int, *, shape: Any = None, dtype: str = "") -> Fragment:
    """A leaf of another shape or dtype; a constant becomes zeros, or a variable if too large."""
    leaf = fragment.leaves[i]
    if leaf.kind == "fixed":
        return fragment
    dims = shape if shape is not None else leaf.type.shape
    ndim = leaf.type.ndim if dims is None else -1
    ty = relax.TensorType(dims, dtype or leaf.type.dtype, ndim=ndim)
    if leaf.kind == "variable":
        return fragment.with_leaf(i, type=ty)
    value = None
    if shape is None:
        try:
            value = relax.const(tensor_of(leaf.value).numpy().astype(dtype), dtype)
        except (TypeError, ValueError):
            value = None
    value = value if value is not None else zeros(ty)
    kind = "constant" if value is not None else "variable"
    return fragment.with_leaf(i, type=ty, kind=kind, value=value)


def tensors_of(fragment: Fragment) -> list[int]:
    """The leaves that are tensors of a known dtype."""
    return [
        i
        for i, leaf in enumerate(fragment.leaves)
        if isinstance(leaf.type, relax.TensorType) and leaf.type.dtype is not None
    ]


def names_of(fragment: Fragment, which: Iterable[int]) -> str:
    return ", ".join(fragment.leaves[i].name for i in which)


def dims_of(leaf: Leaf) -> list[Any] | None:
    """The dimensions of a tensor, or of a shape that stands in the call; None where unknown."""
    if isinstance(leaf.type, relax.TensorType) and isinstance(leaf.type.shape, relax.ShapeExpr):
        return list(leaf.type.shape.values)
    return list(leaf.value.values) if isinstance(leaf.value, relax.ShapeExpr) else None


def as_number(dim: Any) -> int | None:
    value = getattr(dim, "value", dim)
    return int(value) if isinstance(value, int) else None


def is_number(value: Any) -> bool:
    return as_number(value) is not None


def distinct(values: Iterable[Any]) -> list[Any]:
    found: dict[str, Any] = {}
    for value in values:
        found.setdefault(str(getattr(value, "value", value)), value)
    return list(found.values())
