"""Cutting and turning tensors: strided_slice, split, flip, reverse_sequence."""

from __future__ import annotations

from byocviz.building.lower.call import Call
from byocviz.building.lower.graph import Graph, Tensor
from byocviz.building.lower.registry import converter


def _slice(
    g: Graph,
    x: Tensor,
    axes: list[int],
    cuts: list[tuple[int, int, int]],
    shape: tuple[int, ...],
) -> Tensor:
    """``cuts`` holds first index, step and number of elements along each axis."""
    starts, ends, steps = [], [], []
    for axis, (first, step, count) in zip(axes, cuts, strict=True):
        size = x.dims[axis]
        end = first + count * step
        # Before the first element: an end that no size makes an index of.
        ends.append(end if end >= 0 else -size - 1)
        starts.append(first)
        steps.append(step)
    args = [g.ints(starts), g.ints(ends), g.ints(axes), g.ints(steps)]
    return g.add("Slice", x, *args, shape=shape)


@converter("relax.strided_slice")
def strided_slice(g: Graph, call: Call) -> Tensor:
    x = call.tensor(0)
    axes = [call.axis(a, x.rank, "axes") for a in call.numbers(1)]
    begin, end = call.numbers(2), call.numbers(3)
    strides = call.numbers(4) if len(call.args) > 4 else [1] * len(axes)
    if len(set(axes)) != len(axes):
        raise call.refuse("axes", axes, "An axis stands twice.")
    cuts = []
    for axis, first, last, step in zip(axes, begin, end, strides, strict=True):
        size = x.dims[axis]
        if step == 0:
            raise call.refuse("strides", strides, "A step of 0 never ends.")
        low, high = (-1, size - 1) if step < 0 else (0, size)
        start, stop = (min(max(i + size if i < 0 else i, low), high) for i in (first, last))
        count = max(-(-(stop - start) // step), 0)
        if count != call.shape[axis]:
            raise call.refuse(
                "begin, end",
                f"{first}, {last}",
                f"Along axis {axis} Relax says {call.shape[axis]} elements and the indices, kept "
                f"within the tensor, give {count}.",
                "Give indices within the tensor, or assume_inbound=False.",
            )
        cuts.append((max(start, 0), step, count))
    if not axes:
        return g.add("Identity", x)
    return _slice(g, x, axes, cuts, call.shape)


@converter("relax.flip")
def flip(g: Graph, call: Call) -> Tensor:
    x = call.tensor(0)
    axis = call.axis(int(call.attr("axis")), x.rank)
    if x.dims[axis] == 0:
        return g.add("Identity", x)
    return _slice(g, x, [axis], [(x.dims[axis] - 1, -1, x.dims[axis])], call.shape)


@converter("relax.split")
def split(g: Graph, call: Call) -> Tensor | list[Tensor]:
    """The sizes are those of the result: TVM's last section may be shorter than the others."""
    x = call.tensor(0)
    axis = call.axis(int(call.attr("axis")), x.rank)
    if not hasattr(call.type, "fields"):
        return g.add("Identity", x)  # one section: Relax gives the tensor itself
    shapes = call.shapes
    sizes = [shape[axis] for shape in shapes]
    if sum(sizes) != x.dims[axis] or min(sizes) < 0:
        raise call.refuse(
            "indices_or_sections",
            call.attr("indices_or_sections"),
            f"The parts {sizes} do not make up the {x.dims[axis]} elements along axis {axis}.",
            "Give increasing indices within the tensor.",
        )
    return g.add_several(
        "Split", x, g.ints(sizes), dtypes=[x.dtype] * len(sizes), shapes=shapes, axis=axis
    )


@converter("relax.reverse_sequence")
def reverse_sequence(g: Graph, call: Call) -> Tensor:
    """ONNX has the batch and the sequence along the first two axes.

    A length beyond the axis counts as the whole of it in TVM, one below 1 as none; runtimes fail.
    """
    x, lengths = call.tensor(0), call.tensor(1)
    batch = call.axis(int(call.attr("batch_axis")), x.rank, "batch_axis")
    time = call.axis(int(call.attr("seq_axis")), x.rank, "seq_axis")
    if batch == time:
        raise call.refuse("seq_axis", time, "It is the batch's axis.")
    axes = [batch, time, *(i for i in range(x.rank) if i not in (batch, time))]
    turned = g.transpose(x, axes)
    if 0 in turned.dims:
        return g.add("Identity", x)
    bounds = g.scalar(0, "int64"), g.scalar(x.dims[time], "int64")
    within = g.add("Clip", g.cast(lengths, "int64"), *bounds, shape=lengths.shape)
    out = g.add(
        "ReverseSequence", turned, within, shape=turned.dims, batch_axis=0, time_axis=1
    )  # fmt: skip
    return g.transpose(out, [axes.index(i) for i in range(x.rank)])
