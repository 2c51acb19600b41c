"""Shape, order, cutting, padding, picking, sorting, filling, resizing."""

from __future__ import annotations

import itertools

from tests.relay import needs_relay

needs_relay()

import onnx  # noqa: E402
import pytest  # noqa: E402
from tvm import relay  # noqa: E402

from byocviz.building.relay.lower import lower  # noqa: E402
from tests.building.relay.lab import C, Cases, T, V, build, faults, run_onnx  # noqa: E402

nn = relay.nn
CASES = Cases()

for shape in ((6, 4), (-1, 2), (0, -1), (2, 3, 4), (24,)):
    CASES(relay.reshape, T(2, 3, 4), newshape=shape)
CASES(nn.batch_flatten, T(2, 3, 4))
CASES(relay.reshape_like, T(2, 3, 4), T(6, 4))
for axis, count in itertools.product((0, 1, -1, -2), (1, 2)):
    CASES(relay.expand_dims, T(2, 3), axis=axis, num_newaxis=count)
for axis in (None, [0], [2], [0, -2]):
    CASES(relay.squeeze, T(1, 3, 1, 4), axis=axis)
for axes in (None, (1, 0, 2), (-1, 0, 1)):
    CASES(relay.transpose, T(2, 3, 4), axes=axes)
for source, goal in (("NCHW", "NHWC"), ("NHWC", "NCHW"), ("NCHW", "NCHW4c"), ("NCHW", "NHWC2c")):
    CASES(relay.layout_transform, T(1, 8, 8, 8), src_layout=source, dst_layout=goal)
CASES(relay.layout_transform, T(1, 2, 3, 5, 4), src_layout="NCHW4c", dst_layout="NCHW")
CASES(relay.layout_transform, T(8, 4, 3, 3), src_layout="OIHW", dst_layout="HWIO")
CASES(relay.layout_transform, T(1, 2, 3, 3, 4), src_layout="NCDHW", dst_layout="NDHWC")
for axis in (0, 1, -1):
    CASES(relay.concatenate, [T(2, 3), T(2, 3)], axis=axis)
    CASES(relay.stack, [T(2, 3), T(2, 3)], axis=axis)
for parts, axis in ((2, 0), (4, 1), ((1, 3), 1), ((2,), -1)):
    CASES(relay.split, T(2, 4, 6), indices_or_sections=parts, axis=axis)
CASES(relay.tile, T(2, 3), reps=(2, 1, 2))
CASES(relay.repeat, T(2, 3), repeats=2, axis=1)
CASES(relay.reverse, T(2, 3), axis=1)
CASES(relay.broadcast_to, T(3, 1), shape=(2, 3, 4))
CASES(relay.broadcast_to_like, T(3, 1), T(2, 3, 4))
for mode in ("constant", "edge", "reflect"):
    CASES(nn.pad, T(1, 2, 4, 5), pad_width=((0, 0), (0, 0), (1, 2), (0, 3)), pad_mode=mode)
CASES(nn.pad, T(2, 3), pad_width=((1, 0), (0, 2)), pad_value=1.5)
CASES(nn.pad, T(2, 3, dtype="int32"), pad_width=((1, 0), (0, 2)), pad_value=7)

for begin, end, more in (
    ((0, 1), (2, 3), {}),
    ((0, -2), (2, 5), {}),
    ((1, 0, 3), (2, 3, 0), {"strides": (1, 1, -1)}),
    ((0, 0, 0), (2, 9, 9), {"strides": (1, 2, 3)}),
    ((1,), (3,), {"axes": [1], "strides": [1]}),
    ((0, 2), (2, -1), {"slice_mode": "size"}),
    ((0, 1), (1, 2), {"slice_mode": "size"}),
    ((1, 0), (2, 2), {"slice_mode": "size", "axes": [1, 2], "strides": [1, 1]}),
):
    CASES(relay.strided_slice, T(2, 3, 5), begin=begin, end=end, **more)
CASES(relay.slice_like, T(4, 5, 6), T(2, 3, 4))
CASES(relay.slice_like, T(4, 5, 6), T(2, 3, 4), axes=(1, -1))

for mode, axis in itertools.product(("clip", "wrap"), (None, 0, 1, -1)):
    CASES(relay.take, T(3, 4), V([[0, 9], [2, 1]], "int32"), axis=axis, mode=mode)
CASES(relay.take, T(3, 4), V([0, 2], "int32"), axis=0, mode="fast")
CASES(relay.gather, T(3, 4), 1, V([[0, 3], [2, 1], [1, 1]], "int32"))
CASES(relay.gather_nd, T(3, 4), V([[0, 2, 1], [1, 3, 0]], "int64"))
CASES(relay.gather_nd, T(3, 4, 2), V([[0, 2], [1, 3]], "int32"))
CASES(relay.one_hot, V([0, 2, 1, 5], "int32"), C(values=3.0), C(values=-1.0), depth=4, axis=-1,
      dtype="float32")  # fmt: skip
for ascend, kind in itertools.product((False, True), ("both", "values", "indices")):
    CASES(relay.topk, T(3, 7), k=3, is_ascend=ascend, ret_type=kind, dtype="int64")
for ascend in (True, False):
    CASES(relay.sort, T(3, 7), axis=1, is_ascend=ascend)
    CASES(relay.argsort, T(3, 7), axis=0, is_ascend=ascend, dtype="int32")
CASES(relay.full, C(values=2.5), shape=(2, 3), dtype="float32")
CASES(relay.full, T(), shape=(2, 3), dtype="float32")
CASES(relay.full_like, T(2, 3), C(values=2.5))
for make in (relay.zeros, relay.ones):
    CASES(make, shape=(2, 3), dtype="int32")
for make in (relay.zeros_like, relay.ones_like):
    CASES(make, T(2, 3))
CASES(relay.arange, C(values=1.0), C(values=4.0), C(values=0.5))
CASES(nn.depth_to_space, T(1, 8, 2, 3), block_size=2, mode="DCR")
CASES(nn.depth_to_space, T(1, 8, 2, 3), block_size=2, mode="CRD")
CASES(nn.space_to_depth, T(1, 2, 4, 6), block_size=2)

NO_REFERENCE = Cases()
"""TVM 0.19 with LLVM 22 makes code of these that LLVM refuses: they are only written."""

for method, mode in itertools.product(
    ("nearest_neighbor", "linear", "cubic"), ("half_pixel", "asymmetric", "align_corners")
):
    for size in ((8, 10), (3, 7)):
        add = CASES if method == "nearest_neighbor" else NO_REFERENCE
        add(relay.image.resize2d, T(1, 2, 4, 5), size=size, method=method,
              coordinate_transformation_mode=mode, tol=1e-4)  # fmt: skip
NO_REFERENCE(relay.image.resize2d, T(1, 4, 5, 2), size=(8, 10), layout="NHWC", method="linear")
for method, align in itertools.product(("nearest_neighbor", "bilinear"), (False, True)):
    add = CASES if method == "nearest_neighbor" else NO_REFERENCE
    add(nn.upsampling, T(1, 2, 4, 5), scale_h=2, scale_w=3, method=method, align_corners=align)
CASES(nn.upsampling, T(1, 4, 5, 2), scale_h=2, scale_w=2, layout="NHWC")


@pytest.mark.thinned(2)
@pytest.mark.parametrize("part", range(2))
def test_tvm_and_onnx_runtime_agree(part: int) -> None:
    assert faults(CASES[part::2]) == []


def test_what_tvm_cannot_compile_is_a_model_all_the_same() -> None:
    module, values, _ = build(NO_REFERENCE)
    lowered = lower(module["main"])
    onnx.checker.check_model(lowered.model, full_check=True)
    outputs = run_onnx(lowered, list(values.values()))
    assert [o.shape for o in outputs] == [p.shape for p in lowered.outputs]
