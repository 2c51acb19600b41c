"""Reductions: axes, keepdims, types; positions; running sums."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

pytest.importorskip("tvm")
pytest.importorskip("onnxruntime")

from tvm import relax

from tests.building.lower.lab import Cases, T, V, faults

op = relax.op
CASES = Cases()
AXES = (None, 0, -1, [1], [0, 2], [-1, 1], [0, 1, 2])

for name, axis, keep in itertools.product(
    ("sum", "prod", "max", "min", "mean"), AXES, (False, True)
):
    CASES(getattr(op, name), T(2, 3, 4, low=0.3, high=1.5), axis, keep)
for name, axis, keep in itertools.product(("variance", "std"), (None, 1, [0, -1]), (False, True)):
    CASES(getattr(op, name), T(2, 3, 4), axis, keep, tol=1e-4)
for name in ("sum", "max", "min", "mean", "prod"):
    CASES(getattr(op, name), T(2, 3, 4, dtype="float16"), [1])
    for dtype in ("int32", "int64"):
        if (name, dtype) != ("mean", "int32"):  # refused: TVM gives int64, whatever its type says
            CASES(getattr(op, name), T(2, 3, dtype=dtype, low=-5, high=5), -1)
for name in ("max", "min"):
    CASES(getattr(op, name), T(2, 3, dtype="int8", low=-5, high=5), -1)
for name, axis, keep in itertools.product(("argmax", "argmin"), (None, 0, -1), (False, True)):
    CASES(getattr(op, name), T(3, 5), axis, keep)
    CASES(getattr(op, name), V([[1, 3, 3], [2, 0, 0]], "float32"), axis, keep)
for axis, exclusive in itertools.product((None, 0, -1), (False, True)):
    CASES(op.cumsum, T(3, 4), axis, exclusive=exclusive)
    CASES(op.cumprod, T(3, 4, low=0.3), axis, exclusive=exclusive)
    CASES(op.cumprod, T(2, 3, 4, low=0.3), axis, exclusive=exclusive)
CASES(op.cumprod, T(3, 4, dtype="int64"), 1)
# Integers beyond what floating point holds; sums and products that wrap around.
for dtype in ("int32", "int64", "uint32", "uint64"):
    limits = np.iinfo(dtype)
    whole = np.random.default_rng(7).integers(limits.min, limits.max, (3, 37, 5), dtype, True)
    for name, axis, keep in itertools.product(
        ("sum", "prod", "mean"), (None, 0, 1, [0, 2]), (False, True)
    ):
        if name != "mean" or "64" in dtype:
            CASES(getattr(op, name), V(whole, dtype), axis, keep)
    CASES(op.sum, V(whole[:1, :1, :1], dtype), None, True)
    if dtype.startswith("i"):
        CASES(op.cumsum, V(whole, dtype), 1)
        CASES(op.cumprod, V(whole, dtype), 1)
        for name in ("max", "min", "argmax", "argmin"):
            CASES(getattr(op, name), V(whole, dtype), 1)
    CASES(op.matmul, V(whole[0], dtype), V(whole[1].T, dtype))
for values in ([2**62 + 1, 5], [2**53, 1, 1, 1]):
    CASES(op.sum, V(values, "int64"), 0)
    CASES(op.mean, V(values, "int64"), 0)
CASES(op.prod, V([2**31 + 1, 2**31 - 1], "int64"), 0)
CASES(op.sum, V([2**31 - 1, 5], "int32"), 0)
CASES(op.cumprod, T(5, dtype="float16", low=0.5), 0)
CASES(op.cumsum, T(3, 4, dtype="int32"), 1)
CASES(op.cumsum, T(3, 4, dtype="int32"), 1, dtype="int64")


@pytest.mark.parametrize("part", range(2))
def test_it_computes_what_tvm_computes(part: int) -> None:
    assert faults(CASES[part::2]) == []
