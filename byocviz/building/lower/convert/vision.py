"""Non-maximum suppression, and what is cut out of feature maps."""

from __future__ import annotations

from byocviz.building.lower.call import Call
from byocviz.building.lower.graph import Graph, Tensor
from byocviz.building.lower.layouts import inverse, order
from byocviz.building.lower.registry import converter


@converter("relax.vision.all_class_non_max_suppression")
def all_class_non_max_suppression(g: Graph, call: Call) -> list[Tensor]:
    """The rows (batch, class, box) that are kept, and how many they are.

    Relax gives the rows a fixed number, batch * classes * boxes; TVM's code cuts them to those
    that count. A fixed buffer cannot be cut: the rows after them are -1, which names no box.
    """
    boxes, scores = call.tensor(0), call.tensor(1)
    form = str(call.attr("output_format"))
    if form != "onnx":
        raise call.refuse(
            "output_format", form, "Only ONNX's form is expressed.", "output_format='onnx'"
        )
    if boxes.dtype != "float32" or scores.dtype != "float32":
        raise call.refuse("dtype", f"{boxes.dtype}, {scores.dtype}", "ONNX takes float32.")
    if scores.rank != 3 or boxes.rank != 3:
        raise call.refuse("scores", list(scores.dims), "ONNX takes [batch, classes, boxes].")
    limit = g.ints([int(call.number(2))])
    thresholds = [g.constant([float(call.number(i))], "float32") for i in (3, 4)]
    rows = call.shapes[0][0]
    kept = g.add("NonMaxSuppression", boxes, scores, limit, *thresholds, dtype="int64")
    count = g.add("Slice", g.add("Shape", kept, dtype="int64"), g.ints([0]), g.ints([1]),
                  shape=(1,))  # fmt: skip
    left = g.add("Sub", g.ints([rows]), count)
    pads = g.add("Concat", g.ints([0, 0]), left, g.ints([0]), axis=0, shape=(4,))
    padded = g.add("Pad", kept, pads, g.scalar(-1, "int64"), mode="constant", shape=call.shapes[0])
    return [padded, g.cast(count, call.dtypes[1])]


@converter("relax.vision.roi_align")
def roi_align(g: Graph, call: Call) -> Tensor:
    """TVM's regions are [n, 5], the batch's index first. ``aligned`` drops the least size of one
    pixel, in ONNX it shifts by half a pixel as well: the regions are shifted back before."""
    axes = order(call, "layout", "NCHW")
    x, rois = g.transpose(call.tensor(0), axes), call.tensor(1)
    if x.dtype != rois.dtype:
        raise call.refuse("dtype", f"{x.dtype}, {rois.dtype}", "ONNX takes one type for both.")
    mode = str(call.attr("mode"))
    if mode != "avg":
        raise call.refuse(
            "mode", mode, "In ONNX the largest of the weighted pixels, in TVM of what they make.",
            "Use mode='avg'.",
        )  # fmt: skip
    count = rois.dims[0]
    scale = float(call.attr("spatial_scale"))
    size = call.ints("pooled_size")
    height, width = size if len(size) == 2 else (size[0], size[0])
    first = g.ints([1])
    index = g.add("Slice", rois, g.ints([0]), first, first, shape=(count, 1))
    corners = g.add("Slice", rois, first, g.ints([5]), first, shape=(count, 4))
    aligned = bool(call.attr("aligned"))
    if aligned:
        corners = g.add("Add", corners, g.scalar(0.5 / scale, rois.dtype))
    out = g.add(
        "RoiAlign", x, corners, g.cast(g.reshape(index, (count,)), "int64"),
        shape=(count, x.dims[1], height, width), mode=mode, output_height=height,
        output_width=width, sampling_ratio=max(int(call.attr("sample_ratio")), 0),
        spatial_scale=scale,
        coordinate_transformation_mode="half_pixel" if aligned else "output_half_pixel",
    )  # fmt: skip
    return g.transpose(out, inverse(axes))
