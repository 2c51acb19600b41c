"""Pooling: windows, padding, rounding, layouts."""

from __future__ import annotations

import itertools

from tests.relay import needs_relay

needs_relay()

import pytest  # noqa: E402
from tvm import relay  # noqa: E402

from tests.building.relay.lab import Cases, T, faults  # noqa: E402

nn = relay.nn
CASES = Cases()

for make, stride, pad, ceil in itertools.product(
    (nn.max_pool2d, nn.avg_pool2d), (1, (2, 3)), (0, (1, 1), (0, 1, 1, 0)), (False, True)
):
    CASES(make, T(1, 3, 9, 8), pool_size=(3, 2), strides=stride, padding=pad, ceil_mode=ceil)
for pad, ceil in itertools.product((0, (1, 1), (0, 1, 1, 0)), (False, True)):
    CASES(nn.avg_pool2d, T(1, 3, 9, 8), pool_size=(3, 2), strides=(2, 2), padding=pad,
          ceil_mode=ceil, count_include_pad=True)  # fmt: skip
for make in (nn.max_pool2d, nn.avg_pool2d):
    CASES(make, T(1, 9, 8, 3), pool_size=(2, 2), strides=(2, 2), layout="NHWC")
    CASES(make, T(1, 3, 9, 8), pool_size=(2, 2), dilation=(2, 2))
for make in (nn.max_pool1d, nn.avg_pool1d):
    CASES(make, T(1, 3, 9), pool_size=(3,), strides=(2,), padding=(1,))
for make in (nn.max_pool3d, nn.avg_pool3d):
    CASES(make, T(1, 2, 5, 6, 7), pool_size=(2, 2, 3), strides=(2, 1, 2), padding=(1, 0, 1))
for make in (nn.global_max_pool2d, nn.global_avg_pool2d):
    CASES(make, T(2, 3, 5, 4))
    CASES(make, T(2, 5, 4, 3), layout="NHWC")
for size in ((1, 1), (4, 2), (8, 6), None):
    CASES(nn.adaptive_avg_pool2d, T(1, 3, 8, 6), output_size=size)
    CASES(nn.adaptive_max_pool2d, T(1, 3, 8, 6), output_size=size)
CASES(nn.adaptive_avg_pool2d, T(1, 3, 8, 7), output_size=(3, 5))
CASES(nn.adaptive_avg_pool2d, T(1, 8, 6, 3), output_size=(1, 1), layout="NHWC")
CASES(nn.adaptive_avg_pool1d, T(1, 3, 8), output_size=4)
CASES(nn.adaptive_max_pool1d, T(1, 3, 8), output_size=4)
CASES(nn.adaptive_avg_pool3d, T(1, 3, 4, 4, 6), output_size=(2, 2, 3))
CASES(nn.adaptive_max_pool3d, T(1, 3, 4, 4, 6), output_size=(2, 2, 3))
CASES(nn.global_avg_pool1d, T(1, 3, 8))
CASES(nn.global_avg_pool3d, T(1, 3, 4, 3, 2))


@pytest.mark.thinned(2)
@pytest.mark.parametrize("part", range(2))
def test_tvm_and_onnx_runtime_agree(part: int) -> None:
    assert faults(CASES[part::2]) == []
