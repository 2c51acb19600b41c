"""Facets of shapes: symbols, sizes of axes, ranks. Each names the argument and the axis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import tvm
from tvm import relax

from byocviz.flow.relax.reasons.facet import (
    Change,
    Facet,
    as_number,
    dims_of,
    distinct,
    is_number,
    names_of,
    replaced,
    retype,
    tensors_of,
)
from byocviz.flow.relax.reasons.fragment import Fragment, Leaf

DIM = 16
"""What a symbolic dimension becomes; divisible by what kernels ask for."""
_MOST_SIZES = 6
_WORDS = ("shape", "dim")

Axis = tuple[int, int]
"""A leaf's number and an axis of it."""


def spots(fragment: Fragment, axes: Sequence[Axis]) -> str:
    """``argument 1 (x1), axis 1 and argument 2 (x2), axis 0``."""
    by_leaf: dict[int, list[int]] = {}
    for leaf, axis in axes:
        by_leaf.setdefault(leaf, []).append(axis)
    said = []
    for leaf, found in by_leaf.items():
        listed = ", ".join(map(str, found[:-1])) + " and " if len(found) > 1 else ""
        said.append(
            f"{fragment.leaves[leaf].name}, {'axes' if listed else 'axis'} {listed}{found[-1]}"
        )
    return " and ".join(said)


def symbolic(fragment: Fragment) -> Iterator[Facet]:
    """Symbols, shapes that are unknown, and shapes that a variable holds."""
    found: dict[str, Any] = {}
    axes: dict[str, list[Axis]] = {}
    for i, leaf in enumerate(fragment.leaves):
        for axis, dim in enumerate(_shown_dims(leaf)):
            for symbol in _symbols(dim):
                found.setdefault(str(symbol), symbol)
                axes.setdefault(str(symbol), []).append((i, axis))

    def facet(which: tuple[Any, ...]) -> Facet:
        bound = tuple((found[name], DIM) for name in which)

        def bind(fragment: Fragment) -> Fragment:
            return replace(fragment, bound=bound)

        several = len(which) > 1
        seen = [spots(fragment, axes[name]) for name in which]
        return Facet(
            "symbol",
            f"symbolic dimension{'s' if several else ''} {', '.join(which)}",
            "; ".join(f"{n} of {s}" for n, s in zip(which, seen, strict=True))
            if several
            else seen[0],
            (("a number", bind),),
            ("shape", "IntImm", "dim"),
            parts=which,
            only=facet,
            group="symbol",
        )

    if found:
        yield facet(tuple(found))
    for i, leaf in enumerate(fragment.leaves):
        if isinstance(leaf.type, relax.TensorType) and leaf.type.shape is None:
            ndim = leaf.type.ndim if leaf.type.ndim >= 0 else 4
            known = relax.TensorType([DIM] * ndim, leaf.type.dtype)
            change = replaced(i, type=known)
            label = f"shape of {names_of(fragment, [i])}"
            yield Facet("symbolic", label, "unknown", (("known", change),), ("shape",))


def shapes(fragment: Fragment, ints: list[int]) -> Iterator[Facet]:
    """Sizes and ranks; ``ints`` are the numbers that the check's code mentions."""
    for i, leaf in enumerate(fragment.leaves):
        if leaf.kind == "variable" and isinstance(leaf.type, relax.ShapeType):
            values = leaf.type.values
            ndim = leaf.type.ndim if leaf.type.ndim >= 0 else 2
            sizes = list(values) if values is not None else [DIM] * ndim
            numbers = [d if isinstance(d, tvm.tirx.IntImm) else DIM for d in sizes]
            change = replaced(i, kind="fixed", value=relax.ShapeExpr(numbers))
            label = f"shape of {leaf.name}"
            option = ("a shape written in the call", change)
            yield Facet("symbolic", label, "a variable", (option,), ("ShapeExpr", "size", "shape"))
    yield from _sizes(fragment, ints)
    yield from _ranks(fragment, ints)


def _sizes(fragment: Fragment, ints: list[int]) -> Iterator[Facet]:
    """First all axes of a size together, which keeps the call well typed; then each alone."""
    axes: dict[int, list[Axis]] = {}
    held: set[int] = set()
    for i, leaf in enumerate(fragment.leaves):
        for axis, dim in enumerate(dims_of(leaf) or ()):
            size = as_number(dim)
            if size is not None:
                axes.setdefault(size, []).append((i, axis))
                if isinstance(leaf.type, relax.TensorType):
                    held.add(size)
    steps = [k for k in distinct(ints) if 1 < k <= 4096]
    alone = []
    for size in [s for s in axes if s in held][:_MOST_SIZES]:
        goals = distinct([*((-(-size // k)) * k for k in steps), *steps, 1, size * 2])
        which = tuple(axes[size])
        make = partial(_size, fragment, size, [g for g in goals if g != size])
        yield make(which)
        if len(which) > 1:
            alone += [make((axis,)) for axis in which]
    yield from alone


def _size(fragment: Fragment, size: int, goals: list[int], which: tuple[Any, ...]) -> Facet:
    options = tuple((str(goal), _resize(which, goal)) for goal in goals)
    return Facet(
        "shape", spots(fragment, which), str(size), options, _WORDS,
        parts=which, only=partial(_size, fragment, size, goals), group=f"size {size}",
    )  # fmt: skip


def _resize(which: tuple[Axis, ...], after: int) -> Change:
    def change(fragment: Fragment) -> Fragment:
        for i in dict.fromkeys(i for i, _ in which):
            leaf = fragment.leaves[i]
            new = list(dims_of(leaf) or ())
            for axis in [axis for other, axis in which if other == i]:
                new[axis] = after
            if isinstance(leaf.value, relax.ShapeExpr):
                fragment = fragment.with_leaf(i, value=relax.ShapeExpr(new))
            else:
                fragment = retype(fragment, i, shape=new)
        return fragment

    return change


def _ranks(fragment: Fragment, ints: list[int]) -> Iterator[Facet]:
    by_rank: dict[int, list[int]] = {}
    for i in tensors_of(fragment):
        known = dims_of(fragment.leaves[i])
        if known is not None:
            by_rank.setdefault(len(known), []).append(i)
    groups = [*by_rank.values(), *([i] for ts in by_rank.values() if len(ts) > 1 for i in ts)]
    for which in groups:
        rank = len(dims_of(fragment.leaves[which[0]]) or ())
        goals = distinct([*(k for k in ints if 0 <= k <= 6), rank - 1, rank + 1, 4])
        options = tuple((str(g), _rerank(which, g)) for g in goals if g != rank and g >= 0)
        label = f"rank of {names_of(fragment, which)}"
        yield Facet("rank", label, str(rank), options, ("ndim", "len"))


def _rerank(which: list[int], rank: int) -> Change:
    def change(fragment: Fragment) -> Fragment:
        for i in which:
            known = list(dims_of(fragment.leaves[i]) or ())
            more = rank - len(known)
            new = [1] * more + known if more > 0 else known[-more:]
            fragment = retype(fragment, i, shape=new)
        return fragment

    return change


def _shown_dims(leaf: Leaf) -> Sequence[Any]:
    if isinstance(leaf.type, relax.ShapeType) and leaf.kind == "variable":
        return list(leaf.type.values or ())
    return dims_of(leaf) or ()


def _symbols(dim: Any) -> Iterator[Any]:
    if not is_number(dim):
        yield from relax.analysis.free_symbolic_vars(relax.ShapeExpr([dim]))
