"""What of a matched piece can be varied, one facet at a time, to see what a check objects to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
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
from byocviz.flow.relax.reasons.fragment import Fragment, Leaf, attributes, zeros
from byocviz.flow.relax.reasons.patterns import shown
from byocviz.flow.relax.reasons.sizes import shapes, symbolic

_DTYPES = ("float32", "float16", "int8", "int32", "bfloat16", "uint8", "int64", "float64")
_DTYPE = re.compile(r"(float|int|uint|bfloat)\d+(_\w+)?|bool")
_DATA = ("NCHW", "NHWC", "NCDHW", "NDHWC", "NCW", "NWC")
_KERNEL = ("OIHW", "OHWI", "HWIO", "IOHW", "OIDHW", "ODHWI", "OIW", "OWI")
# Values that operators know, for checks whose own code mentions none.
_KNOWN: dict[str, tuple[Any, ...]] = {
    "layout": _DATA,
    "data_layout": _DATA,
    "out_layout": _DATA,
    "kernel_layout": _KERNEL,
    "method": ("linear", "nearest_neighbor", "cubic"),
    "coordinate_transformation_mode": (
        "half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel",
    ),
    "rounding_method": ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil", "round"),
    "pad_mode": ("constant", "reflect", "replicate"),
}  # fmt: skip
_INTS = (1, 0, 2, -1)
_FLOATS = (0.0, 1.0, 6.0)


def facets(fragment: Fragment, mentioned: Iterable[Any]) -> Iterator[Facet]:
    """All facets, likeliest first. ``mentioned`` are the constants of the check's code."""
    said = list(mentioned)
    strings = [w for w in said if isinstance(w, str)]
    ints = [w for w in said if isinstance(w, int)]
    floats = [w for w in said if isinstance(w, float)]
    yield from _attributes(fragment, strings, ints, floats)
    yield from _dtypes(fragment, strings)
    yield from symbolic(fragment)
    yield from shapes(fragment, ints)
    yield from _sources(fragment)
    yield from _numbers(fragment, [*floats, *ints])


def _attributes(
    fragment: Fragment, strings: list[str], ints: list[int], floats: list[float]
) -> Iterator[Facet]:
    named = [name for step in fragment.steps for name in attributes(step.attrs)]
    for number, step in enumerate(fragment.steps):
        for name, value in attributes(step.attrs).items():
            op = str(getattr(step.op, "name", ""))
            label = f"attr {name}" if named.count(name) == 1 else f"attr {name} of {step.title}"
            values: Iterable[Any] = ()
            if isinstance(value, bool):
                values = (not value,)
            elif isinstance(value, str):
                known = _KNOWN.get(name, ())
                values = (*(s for s in strings if _alike(name, s)), *known)
                if not known:
                    values = (*values, *strings)
            elif isinstance(value, int):
                values = (*ints, *_INTS, value + 1, value - 1)
            elif isinstance(value, float):
                values = (*floats, *map(float, ints), *_FLOATS)
            elif "dtype" in name:
                values = (*(s for s in strings if _is_dtype(s)), *_DTYPES)
            elif value is None:
                values = (*ints, *_INTS)
            elif hasattr(value, "__len__") and all(is_number(v) for v in value):
                same = [[i] * len(value) for i in (*ints, *_INTS) if i >= 0]
                values = (*same, None) if len(value) else (None,)
            else:
                values = (None,)
            options = tuple(
                (shown(v), _set_attr(number, name, v, value))
                for v in distinct(values)
                if shown(v) != shown(value)
            )
            if options:
                words = (name, "dtype") if "dtype" in name else (name,)
                yield Facet("attr", label, shown(value), options, words, (op,))


def _alike(name: str, word: str) -> bool:
    """Layout words for layout attributes; for others any word that is no layout or dtype."""
    layout = word.isupper() and word.isalpha()
    return layout == ("layout" in name) and not _is_dtype(word)


def _set_attr(number: int, name: str, value: Any, before: Any) -> Change:
    def change(fragment: Fragment) -> Fragment:
        changed = fragment.with_attr(number, name, value)
        if "layout" in name and isinstance(before, str) and isinstance(value, str):
            if name in ("layout", "data_layout"):
                step = changed.steps[number]
                if attributes(step.attrs).get("out_layout") == before:
                    changed = changed.with_attr(number, "out_layout", value)
            changed = _relayout(changed, number, name, before, value)
        if name == "groups" and isinstance(before, int) and isinstance(value, int):
            changed = _regroup(changed, number, before, value)
        return changed

    return change


def _regroup(fragment: Fragment, number: int, before: int, after: int) -> Fragment:
    """Give the weight of a convolution the channels a group that go with so many groups, so that
    the call stays well typed: what a check says then, it says of the groups alone."""
    step = fragment.steps[number]
    fields = attributes(step.attrs)
    layout = str(fields.get("kernel_layout", ""))
    channels = "O" if "transpose" in str(getattr(step.op, "name", "")) else "I"
    if len(step.args) < 2 or step.args[1][0] != "leaf" or channels not in layout or after < 1:
        return fragment
    weight = step.args[1][1]
    dims = dims_of(fragment.leaves[weight])
    axis = layout.index(channels)
    size = as_number(dims[axis]) if dims is not None and len(dims) == len(layout) else None
    if dims is None or size is None or size * before % after:
        return fragment
    dims[axis] = size * before // after
    return retype(fragment, weight, shape=dims)


def _relayout(fragment: Fragment, number: int, name: str, before: str, after: str) -> Fragment:
    """Turn the shapes that a layout attribute speaks of, so that the call stays the same one."""
    if sorted(before) != sorted(after) or name == "out_layout":
        return fragment
    order = [before.index(axis) for axis in after]
    kernels = {
        step.args[1][1]
        for step in fragment.steps
        if "kernel_layout" in attributes(step.attrs) and step.args[1][0] == "leaf"
    }
    step = fragment.steps[number]
    if name == "kernel_layout":
        turned = [step.args[1][1]] if step.args[1][0] == "leaf" else []
    else:
        turned = [i for i in range(len(fragment.leaves)) if i not in kernels]
    for i in turned:
        dims = dims_of(fragment.leaves[i])
        if dims is not None and len(dims) == len(order):
            fragment = retype(fragment, i, shape=[dims[axis] for axis in order])
    return fragment


def _dtypes(fragment: Fragment, strings: list[str]) -> Iterator[Facet]:
    tensors = tensors_of(fragment)
    said = [s for s in strings if _is_dtype(s)]
    # Of those that the check mentions the widest first: it loses least.
    wanted = distinct((*(d for d in _DTYPES if d in said), *said, *_DTYPES))
    by_dtype: dict[str, list[int]] = {}
    for i in tensors:
        by_dtype.setdefault(str(fragment.leaves[i].type.dtype), []).append(i)
    for dtype, which in by_dtype.items():
        label = "dtype" if len(by_dtype) == 1 else f"dtype {dtype} of {names_of(fragment, which)}"
        yield _dtype_facet(label, dtype, which, wanted)
    if len(tensors) > 1 and len(by_dtype) > 1:
        yield _dtype_facet("dtype", " and ".join(by_dtype), tensors, wanted)
    for i in tensors:
        dtype = str(fragment.leaves[i].type.dtype)
        if len(by_dtype[dtype]) > 1:
            yield _dtype_facet(f"dtype of {names_of(fragment, [i])}", dtype, [i], wanted)


def _dtype_facet(label: str, seen: str, which: list[int], wanted: list[str]) -> Facet:
    def to(dtype: str) -> Change:
        def change(fragment: Fragment) -> Fragment:
            for i in which:
                fragment = retype(fragment, i, dtype=dtype)
            return fragment

        return change

    options = tuple((d, to(d)) for d in wanted if d != seen)
    return Facet("dtype", label, seen, options, ("dtype",))


def _sources(fragment: Fragment) -> Iterator[Facet]:
    for i, leaf in enumerate(fragment.leaves):
        name = names_of(fragment, [i])
        if leaf.kind == "variable" and isinstance(leaf.type, relax.TensorType):
            made = zeros(leaf.type)
            if made is not None:
                change = replaced(i, kind="constant", value=made)
                words = ("Constant", "value")
                yield Facet("constant", name, "a variable", (("a constant", change),), words)
        elif leaf.kind == "constant":
            free = (("a variable", replaced(i, kind="variable")),)
            yield Facet("variable", name, "a constant", free, ("Constant",))
            filled = [(word, _fill(leaf, number)) for word, number in (("zeros", 0), ("ones", 1))]
            options = tuple((w, replaced(i, value=v)) for w, v in filled if v is not None)
            if options:
                label = f"value of {name}"
                yield Facet("value", label, "as it is", options, ("value", "numpy"))


def _numbers(fragment: Fragment, wanted: list[Any]) -> Iterator[Facet]:
    for i, leaf in enumerate(fragment.leaves):
        value = getattr(leaf.value, "value", None)
        if leaf.kind != "fixed" or not isinstance(value, int | float):
            continue
        make = tvm.tirx.FloatImm if isinstance(value, float) else tvm.tirx.IntImm
        kind = type(value)
        numbers = distinct(kind(w) for w in [*wanted, *_FLOATS])
        dtype = str(getattr(leaf.value, "dtype", "float64" if kind is float else "int64"))
        options = tuple((str(n), replaced(i, value=make(dtype, n))) for n in numbers if n != value)
        yield Facet("value", f"value of {leaf.name}", str(value), options, ("value",))


def _fill(leaf: Leaf, number: int) -> Any:
    made = zeros(leaf.type)
    if made is None or number == 0:
        return made
    dims = dims_of(leaf) or []
    dtype = str(leaf.type.dtype)
    return relax.const(np.full([int(d) for d in dims], number, dtype=dtype), dtype)


def _is_dtype(word: str) -> bool:
    return _DTYPE.fullmatch(word) is not None
