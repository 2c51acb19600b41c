"""Convolutions and matrix products: strides, padding, dilation, groups, layouts, types."""

from __future__ import annotations

import itertools

from tests.relay import needs_relay

needs_relay()

import pytest  # noqa: E402
from tvm import relay  # noqa: E402

from tests.building.relay.lab import C, Cases, T, faults  # noqa: E402

nn = relay.nn
CASES = Cases()

for stride, pad, dilation, groups in itertools.product(
    (1, (2, 1)), (0, (1, 2), (1, 0, 2, 1)), (1, 2), (1, 2, 4)
):
    CASES(nn.conv2d, T(1, 4, 9, 8), C(4, 4 // groups, 3, 3), strides=stride, padding=pad,
          dilation=dilation, groups=groups, channels=4, kernel_size=(3, 3))  # fmt: skip
CASES(nn.conv2d, T(1, 4, 9, 8), T(6, 4, 1, 1))
CASES(nn.conv2d, T(1, 4, 9, 8), C(6, 4, 3, 3))
CASES(nn.conv2d, T(1, 8, 9, 4), C(3, 3, 4, 6), data_layout="NHWC", kernel_layout="HWIO",
      channels=6, kernel_size=(3, 3), padding=(1, 1))  # fmt: skip
for stride, pad, dilation, groups in itertools.product((1, 2), (0, (2, 1)), (1, 2), (1, 2)):
    CASES(nn.conv1d, T(2, 4, 11), T(6, 4 // groups, 3), strides=stride, padding=pad,
          dilation=dilation, groups=groups, channels=6, kernel_size=3)  # fmt: skip
for stride, pad in itertools.product((1, 2), (0, (1, 0, 1), (1, 0, 1, 0, 1, 2))):
    CASES(nn.conv3d, T(1, 2, 6, 5, 7), C(4, 2, 2, 2, 3), strides=(stride,) * 3,
          padding=pad, channels=4, kernel_size=(2, 2, 3))  # fmt: skip
for stride, pad, groups, extra in itertools.product(
    ((1, 1), (2, 2), (3, 2)), ((0, 0), (1, 1), (0, 1, 1, 0)), (1, 2), ((0, 0), (1, 1))
):
    if extra != (0, 0) and stride == (1, 1):
        continue
    CASES(nn.conv2d_transpose, T(1, 4, 5, 4), C(4, 6 // groups, 3, 3), strides=stride, padding=pad,
          groups=groups, output_padding=extra, channels=6, kernel_size=(3, 3))  # fmt: skip
for stride, pad in itertools.product((1, 2), ((0,), (1,), (1, 0))):
    CASES(nn.conv1d_transpose, T(1, 4, 9), C(4, 3, 3), strides=(stride,), padding=pad, channels=3,
          kernel_size=(3,))  # fmt: skip
for stride, pad in itertools.product((1, 2), ((0, 0, 0), (1, 0, 1))):
    CASES(nn.conv3d_transpose, T(1, 2, 4, 3, 4), C(2, 3, 2, 2, 2), strides=(stride,) * 3,
          padding=pad, channels=3, kernel_size=(2, 2, 2))  # fmt: skip

CASES(nn.dense, T(2, 8), C(4, 8))
CASES(nn.dense, T(2, 8), T(4, 8), units=4)
CASES(nn.dense, T(2, 8), C(4, 8), out_dtype="float64")
for a, b in itertools.product((False, True), repeat=2):
    first, second = ((8, 2) if a else (2, 8)), ((4, 8) if b else (8, 4))
    CASES(nn.matmul, T(*first), C(*second), transpose_a=a, transpose_b=b)
    CASES(nn.batch_matmul, T(3, *first), T(3, *second), transpose_a=a, transpose_b=b)
    CASES(nn.batch_matmul, T(1, *first), T(3, *second), transpose_a=a, transpose_b=b)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("part", range(2))
def test_tvm_and_onnx_runtime_agree(part: int) -> None:
    assert faults(CASES[part::2]) == []
