"""Element-wise operators of two tensors: types and broadcasting."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

pytest.importorskip("tvm")
pytest.importorskip("onnxruntime")

from tvm import relax

from tests.building.lower.lab import C, Cases, T, V, faults

op = relax.op
CASES = Cases()
SHAPES = [((2, 3, 4), (2, 3, 4)), ((2, 3, 4), (4,)), ((2, 1, 4), (3, 1)), ((2, 3), ()),
          ((1,), (2, 3, 1)), ((), ())]  # fmt: skip
FLOATS = ("add", "subtract", "multiply", "divide", "maximum", "minimum", "power")

for name, (a, b) in itertools.product(FLOATS, SHAPES):
    low = 0.2 if name == "power" else -2.0
    CASES(getattr(op, name), T(*a, low=low), T(*b, low=0.2))
for name in FLOATS:
    CASES(getattr(op, name), T(2, 3, low=0.2), C(3, low=0.2))
    CASES(getattr(op, name), C(2, 3, low=0.2), T(3, low=0.2))
    CASES(getattr(op, name), T(2, 3, low=0.2), C(low=0.2))
    CASES(getattr(op, name), T(low=0.2), C(low=0.2))
    half = {"dtype": "float16", "low": 0.2}
    CASES(getattr(op, name), T(2, 3, **half), T(3, **half))
CASES(op.power, T(3, 4), V(2.0, "float32", True))
CASES(op.power, T(3, 4), V(3.0, "float32", True))
INT = {"low": -9, "high": 9}
for name, dtype in itertools.product(
    ("add", "subtract", "multiply", "maximum", "minimum"), ("int32", "int64")
):
    CASES(getattr(op, name), T(2, 5, dtype=dtype, **INT), T(5, dtype=dtype, **INT))
SIGNS = V([-7, -6, -5, 5, 6, 7, 0], "int32"), V([2, -3, 3, -2, 2, 7, 4], "int32")
for name in ("divide", "floor_divide", "mod", "floor_mod"):
    CASES(getattr(op, name), *SIGNS)
    CASES(getattr(op, name), V([-7, 7, 8], "int64"), V([2, -2, 3], "int64"))
for dtype in ("int8", "int16", "int32", "int64", "uint8", "uint32"):
    limits = np.iinfo(dtype)
    ends = [limits.min, limits.min + 1, limits.max, limits.max - 1, limits.max // 2, 0, 1, 7]
    by = [3, 5, 7, 100, limits.max] + [-3, -100, limits.min] * (limits.min < 0)
    pairs = list(itertools.product(ends, by))
    for name in ("divide", "floor_divide", "mod", "floor_mod"):
        CASES(getattr(op, name), *(V(list(side), dtype) for side in zip(*pairs, strict=True)))
for name in ("floor_divide", "floor_mod", "mod"):
    CASES(getattr(op, name), V([-7.5, 7.5, 5.0, -1.25], "float32"),
          V([2.0, -2.0, 3.0, 0.5], "float32"))  # fmt: skip
for name in ("equal", "not_equal", "greater", "greater_equal", "less", "less_equal"):
    CASES(getattr(op, name), V([1, 2, 3], "float32"), V([1, 3, 2], "float32"))
    CASES(getattr(op, name), V([[1], [2], [3]], "int64"), V([1, 3, 2], "int64"))
    CASES(getattr(op, name), V([1, 2, 3], "int32"), V(2, "int32", True))
for name in ("logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or",
             "bitwise_xor"):  # fmt: skip
    CASES(getattr(op, name), T(2, 4, dtype="bool"), T(4, dtype="bool"))
for name in ("left_shift", "right_shift"):
    for dtype in ("uint8", "uint32", "uint64"):
        CASES(getattr(op, name), V([[1, 2, 77]], dtype), V([[0], [3]], dtype))
    for dtype in ("int8", "int32", "int64"):
        CASES(getattr(op, name), V([[1, -2, 77], [-77, 0, -1]], dtype),
              V([0, 3, 6], dtype, True))  # fmt: skip
        CASES(getattr(op, name), V([5, -5], dtype), V(2, dtype, True))
CASES(op.where, T(2, 1, 4, dtype="bool"), T(3, 1), T(2, 3, 4))
CASES(op.where, T(4, dtype="bool"), T(3, 4, dtype="int64"), V(7, "int64", True))
CASES(op.log_add_exp, T(3, 4), T(4))
INF = float("inf")
for dtype in ("float16", "float32", "float64"):
    CASES(op.log_add_exp, V([-INF, INF, INF, -INF, 0.0, 8.0], dtype),
          V([-INF, 0.0, INF, 1.0, INF, 8.0], dtype))  # fmt: skip
CASES(op.outer, T(3), T(5))


@pytest.mark.parametrize("part", range(2))
def test_it_computes_what_tvm_computes(part: int) -> None:
    assert faults(CASES[part::2]) == []
