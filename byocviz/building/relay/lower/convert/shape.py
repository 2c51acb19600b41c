"""Shape, order, padding and cutting, where Relay's attributes differ from Relax's."""

from __future__ import annotations

import re
from typing import Any

from byocviz.building.lower.graph import Graph, Tensor
from byocviz.building.relay.lower.call import RelayCall
from byocviz.building.relay.lower.registry import converter, shared


@converter("expand_dims")
def expand_dims(g: Graph, call: RelayCall) -> Any:
    """``num_newaxis`` axes, one after the other."""
    rank, count = call.tensor(0).rank, int(call.attr("num_newaxis"))
    axis = int(call.attr("axis"))
    first = axis if axis >= 0 else axis + rank + 1
    return shared("expand_dims")(g, call.seen(axis=list(range(first, first + count))))


@converter("tile")
def tile(g: Graph, call: RelayCall) -> Any:
    return shared("tile")(g, call.seen(repeats=call.attr("reps")))


@converter("layout_transform")
def layout_transform(g: Graph, call: RelayCall) -> Tensor:
    """Axes by letter; a small letter after a number is a part of its axis that is split off."""
    x = call.tensor(0)
    source, goal = _layout(call, "src_layout"), _layout(call, "dst_layout")
    split: dict[str, int] = {name: size for name, size in (*source, *goal) if size}
    if not all(re.fullmatch("[a-z]", name) for name in split):
        raise call.refuse("dst_layout", call.attr("dst_layout"), "It is no layout.")
    # To the finest axes of both, into the new order, and together.
    fine: list[str] = []
    sizes: dict[str, int] = {}
    for (name, _), size in zip(source, x.dims, strict=True):
        small = name.lower()
        already = any(n == small for n, _ in source)
        if name.isupper() and small in split and not already:
            if size % split[small]:
                raise call.refuse(
                    "dst_layout", call.attr("dst_layout"), f"{size} is not divisible there."
                )
            fine += [name, small]
            sizes |= {name: size // split[small], small: split[small]}
        else:
            fine.append(name)
            sizes[name] = size
    order: list[str] = []
    for name, _ in goal:
        order.append(name)
        small = name.lower()
        joined = name.isupper() and small in sizes and all(n != small for n, _ in goal)
        order += [small] if joined else []
    if sorted(order) != sorted(fine):
        raise call.refuse(
            "dst_layout",
            call.attr("dst_layout"),
            f"It has other axes than {call.attr('src_layout')}.",
        )
    apart = g.reshape(x, [sizes[name] for name in fine])
    moved = g.transpose(apart, [fine.index(name) for name in order])
    done = g.reshape(moved, call.shape)
    return done if done is not x else g.add("Identity", x)


def _layout(call: RelayCall, name: str) -> list[tuple[str, int]]:
    """The axes of a layout with the size of those that are split off: ``NCHW4c``."""
    text = str(call.attr(name))
    found = [(axis, int(size or 0)) for size, axis in re.findall(r"(\d*)([A-Za-z])", text)]
    if "".join(f"{size or ''}{axis}" for axis, size in found) != text:
        raise call.refuse(name, text, "It is no layout.")
    return found


_PAD_MODES = {"constant": "constant", "reflect": "reflect", "edge": "replicate"}


@converter("nn.pad")
def pad(g: Graph, call: RelayCall) -> Any:
    """The value comes as an argument."""
    mode = str(call.attr("pad_mode"))
    widths = [int(w) for pair in call.attr("pad_width") for w in pair]
    attributes: dict[str, Any] = {"pad_width": widths, "pad_mode": _PAD_MODES.get(mode, mode)}
    if mode == "constant":
        attributes["pad_value"] = call.number(1)
    return shared("nn.pad")(g, call.seen(**attributes))


@converter("strided_slice")
def strided_slice(g: Graph, call: RelayCall) -> Any:
    """``slice_mode="size"`` has sizes for ends (-1: to the end), and no strides."""
    x = call.tensor(0)
    if len(call.args) > 1:
        raise call.refuse("begin", "a tensor", "It is known only when the module runs.")
    begin, end = call.ints("begin"), [_or(v, None) for v in call.attr("end")]
    axes = call.attr("axes")
    axes = list(range(len(begin))) if axes is None else [call.axis(int(a), x.rank) for a in axes]
    steps = [int(step) for step in call.attr("strides") or [1]]
    steps = steps * len(begin) if len(steps) == 1 else steps
    ends = []
    for at, axis in enumerate(axes):
        size = x.dims[axis]
        last = end[at] if at < len(end) else None
        if call.attr("slice_mode") == "size":
            first = begin[at] + size if begin[at] < 0 else begin[at]
            ends.append(size if last is None or last < 0 else first + last)
            steps[at] = 1
        else:
            ends.append(size if last is None else last)
    count = len(axes)
    return shared("strided_slice")(
        g, call.seen(x, axes, begin[:count], ends, steps[:count], axes=axes)
    )


def _or(value: Any, other: Any) -> Any:
    return other if value is None else int(value)


@converter("slice_like")
def slice_like(g: Graph, call: RelayCall) -> Any:
    """Cut to the size of another tensor, along some axes or all."""
    x = call.tensor(0)
    axes = call.attr("axes") or list(range(x.rank))
    axes = [call.axis(int(a), x.rank) for a in axes]
    ends = [call.shape[a] for a in axes]
    ones, zeros = [1] * len(axes), [0] * len(axes)
    return shared("strided_slice")(g, call.seen(x, axes, zeros, ends, ones))


def _blocks(call: RelayCall) -> int:
    layout = str(call.attr("layout"))
    if layout != "NCHW":
        raise call.refuse("layout", layout, "ONNX rearranges NCHW.")
    return int(call.attr("block_size"))


@converter("nn.depth_to_space")
def depth_to_space(g: Graph, call: RelayCall) -> Tensor:
    size, mode = _blocks(call), str(call.attr("mode"))
    return g.add("DepthToSpace", call.tensor(0), blocksize=size, mode=mode, shape=call.shape)


@converter("nn.space_to_depth")
def space_to_depth(g: Graph, call: RelayCall) -> Tensor:
    return g.add("SpaceToDepth", call.tensor(0), blocksize=_blocks(call), shape=call.shape)
