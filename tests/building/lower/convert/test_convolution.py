"""Convolutions: strides, padding, dilation, groups, layouts, types."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

pytest.importorskip("tvm")
pytest.importorskip("onnxruntime")

from tvm import relax

from tests.building.lower.lab import C, Cases, T, faults

nn = relax.op.nn
CASES = Cases()

for stride, pad, dilation, groups in itertools.product(
    (1, 2, (2, 1)), (0, 1, (1, 0, 2, 1)), (1, 2), (1, 2, 4)
):
    CASES(nn.conv2d, T(1, 4, 9, 8), C(4, 4 // groups, 3, 3), strides=stride, padding=pad,
          dilation=dilation, groups=groups)  # fmt: skip
for stride, pad, dilation, groups in itertools.product((1, 2), (0, (2, 1)), (1, 2), (1, 2)):
    CASES(nn.conv1d, T(2, 4, 11), T(6, 4 // groups, 3), strides=stride, padding=pad,
          dilation=dilation, groups=groups)  # fmt: skip
for stride, pad, dilation, groups in itertools.product(
    (1, 2), (0, (1, 0, 1, 0, 1, 2)), (1, 2), (1, 2)
):
    CASES(nn.conv3d, T(1, 2, 6, 5, 7), C(4, 2 // groups, 2, 2, 3), strides=stride, padding=pad,
          dilation=dilation, groups=groups)  # fmt: skip
for stride, pad, dilation, groups, extra in itertools.product(
    (1, 2, (3, 2)), (0, 1, (0, 1, 1, 0)), (1, 2), (1, 2), (0, 1)
):
    if extra and stride == 1:
        continue
    CASES(nn.conv2d_transpose, T(1, 4, 5, 4), C(4, 6 // groups, 3, 3), strides=stride,
          padding=pad, dilation=dilation, groups=groups, output_padding=extra)  # fmt: skip
for stride, pad, groups in itertools.product((1, 2), (0, (1, 0)), (1, 2)):
    CASES(nn.conv1d_transpose, T(1, 4, 6), C(4, 4 // groups, 3), strides=stride, padding=pad,
          groups=groups)  # fmt: skip
    CASES(nn.conv3d_transpose, T(1, 2, 3, 4, 3), C(2, 4 // groups, 2, 3, 2), strides=stride,
          padding=0 if pad == 0 else (1, 0, 0, 0, 1, 0), groups=groups,
          output_padding=stride - 1)  # fmt: skip
CASES(nn.conv2d, T(1, 9, 8, 4), C(3, 3, 4, 5), data_layout="NHWC", kernel_layout="HWIO",
      padding=1)  # fmt: skip
CASES(nn.conv2d, T(1, 9, 8, 4), C(5, 3, 3, 4), data_layout="NHWC", kernel_layout="OHWI",
      strides=2)  # fmt: skip
CASES(nn.conv1d, T(1, 9, 4), T(3, 4, 5), data_layout="NWC", kernel_layout="WIO")
CASES(nn.conv2d, T(1, 4, 6, 6), C(4, 4, 1, 1))
CASES(nn.conv2d, T(1, 4, 6, 6), C(8, 1, 3, 3), groups=4, padding=1)
CASES(nn.conv2d, T(2, 3, 7, 7), C(4, 3, 5, 5), padding=4)
for dtype in ("float16",):
    CASES(nn.conv2d, T(1, 4, 6, 6, dtype=dtype), C(4, 4, 3, 3, dtype=dtype), padding=1)
    CASES(nn.conv2d, T(1, 4, 6, 6, dtype=dtype), C(4, 4, 3, 3, dtype=dtype), out_dtype="float32")
    CASES(nn.conv1d, T(1, 4, 6, dtype=dtype), C(4, 2, 3, dtype=dtype), groups=2)
    CASES(nn.conv2d_transpose, T(1, 2, 4, 4, dtype=dtype), C(2, 2, 3, 3, dtype=dtype), strides=2)


@pytest.mark.parametrize("part", range(4))
def test_it_computes_what_tvm_computes(part: int) -> None:
    assert faults(CASES[part::4]) == []


def test_data_in_one_layout_and_the_result_in_another() -> None:
    """TVM has no code for it: against the same convolution with a transpose after it."""
    from byocviz.building.lower import lower
    from tests.building.lower.lab import build, run_onnx

    x, w = T(1, 9, 8, 4), C(3, 3, 4, 5)
    layouts = {"data_layout": "NHWC", "kernel_layout": "HWIO"}
    cases = Cases()
    cases(nn.conv2d, x, w, **layouts, out_layout="NCHW")
    odd, values, _ = build(cases)
    cases = Cases()
    cases(nn.conv2d, x, w, **layouts)
    plain, same, _ = build(cases)
    (given,) = run_onnx(lower(odd["main"]), values)
    (wanted,) = run_onnx(lower(plain["main"]), same)
    np.testing.assert_array_equal(given, wanted.transpose(0, 3, 1, 2))
