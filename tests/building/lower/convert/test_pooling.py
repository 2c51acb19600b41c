"""Pooling: windows, ceil_mode, count_include_pad, padding, dilation, layouts."""

from __future__ import annotations

import itertools

import pytest

pytest.importorskip("tvm")
pytest.importorskip("onnxruntime")

from tvm import relax

from tests.building.lower.lab import Cases, T, faults

nn = relax.op.nn
CASES = Cases()

for stride, pad, dilation, up in itertools.product(
    (1, 2, (3, 2)), (0, 1, (0, 1, 1, 0)), (1, 2), (False, True)
):
    CASES(nn.max_pool2d, T(1, 3, 9, 8), pool_size=(3, 2), strides=stride, padding=pad,
          dilation=dilation, ceil_mode=up)  # fmt: skip
    for include in (False, True):
        CASES(nn.avg_pool2d, T(1, 3, 9, 8), pool_size=(3, 2), strides=stride, padding=pad,
              dilation=dilation, ceil_mode=up, count_include_pad=include)  # fmt: skip
for stride, pad, up in itertools.product((1, 2), (0, (1, 0, 1, 0, 1, 1)), (False, True)):
    CASES(nn.max_pool3d, T(1, 2, 5, 6, 7), pool_size=(2, 3, 2), strides=stride, padding=pad,
          ceil_mode=up)  # fmt: skip
    for include in (False, True):
        CASES(nn.avg_pool3d, T(1, 2, 5, 6, 7), pool_size=(2, 3, 2), strides=stride, padding=pad,
              ceil_mode=up, count_include_pad=include)  # fmt: skip
for stride, pad, up in itertools.product((1, 2), (0, (1, 0)), (False, True)):
    CASES(nn.max_pool1d, T(1, 2, 9), pool_size=2, strides=stride, padding=pad, ceil_mode=up)
    CASES(nn.avg_pool1d, T(1, 2, 9), pool_size=2, strides=stride, padding=pad, ceil_mode=up)
# Padding as wide as the window, and windows that lie wholly in it.
for pool in (nn.max_pool2d, nn.avg_pool2d):
    CASES(pool, T(1, 2, 4, 4), pool_size=2, strides=1, padding=3)
    CASES(pool, T(1, 2, 4, 4, low=-3, high=-1), pool_size=2, strides=3, padding=2, ceil_mode=True)
    CASES(pool, T(1, 2, 4, 4), pool_size=1, strides=1, padding=1)
    CASES(pool, T(1, 9, 8, 3), pool_size=3, strides=2, padding=1, layout="NHWC")
    CASES(pool, T(1, 3, 6, 6, dtype="float16"), pool_size=3, strides=2, padding=1)
CASES(nn.avg_pool2d, T(1, 2, 4, 4), pool_size=2, strides=1, padding=3, count_include_pad=True)
CASES(nn.max_pool2d, T(1, 2, 4, 4, dtype="int8", low=-90, high=90), pool_size=2, strides=2)
for size, out in itertools.product(((8, 8), (7, 5), (6, 9)), (1, (2, 2), (3, 2), (5, 4), None)):
    CASES(nn.adaptive_avg_pool2d, T(1, 3, *size), output_size=out)
CASES(nn.adaptive_avg_pool2d, T(1, 7, 5, 3), output_size=(3, 2), layout="NHWC")
CASES(nn.adaptive_avg_pool1d, T(1, 3, 7), output_size=3)
CASES(nn.adaptive_avg_pool3d, T(1, 2, 4, 5, 6), output_size=(2, 3, 1))
CASES(nn.adaptive_avg_pool2d, T(1, 3, 6, 6, dtype="float16"), output_size=(4, 3))


@pytest.mark.parametrize("part", range(2))
def test_it_computes_what_tvm_computes(part: int) -> None:
    assert faults(CASES[part::2]) == []
