"""Element-wise operators of one tensor, and casts."""

from __future__ import annotations

import itertools

import pytest

pytest.importorskip("tvm")
pytest.importorskip("onnxruntime")

from tvm import relax

from tests.building.lower.lab import Cases, T, V, faults

op = relax.op
CASES = Cases()
X = T(2, 3, 5)
UNIT = T(2, 3, 5, low=-0.9, high=0.9)
POSITIVE = T(2, 3, 5, low=0.1, high=4)
HALVES = [-2.5, -1.5, -0.5, -0.0, 0.5, 1.5, 2.5, -1.2, 1.7, 3.0]

for name in ("sigmoid", "tanh", "exp", "sin", "cos", "tan", "atan", "sinh", "cosh", "asinh", "erf",
             "abs", "negative", "sign", "ceil", "floor", "round", "trunc", "square"):  # fmt: skip
    CASES(getattr(op, name), X)
    if name not in ("atan", "sinh", "cosh", "asinh"):  # TVM does not compile them
        CASES(getattr(op, name), T(2, 3, dtype="float16"))
for name in ("log", "sqrt", "rsqrt"):
    CASES(getattr(op, name), POSITIVE)
    CASES(getattr(op, name), T(2, 3, dtype="float16", low=0.1))
for name in ("asin", "acos", "atanh"):
    CASES(getattr(op, name), UNIT)
CASES(op.acosh, T(2, 3, low=1.1, high=4))
for name in ("ceil", "floor", "round", "trunc"):
    CASES(getattr(op, name), V(HALVES, "float32"))
for dtype in ("int32", "int64"):
    for name in ("abs", "negative", "sign"):
        CASES(getattr(op, name), T(7, dtype=dtype, low=-9, high=9))
ODD = V([0.0, 1.5, float("nan"), float("inf"), -float("inf")], "float32")
for name in ("isnan", "isinf", "isfinite"):
    CASES(getattr(op, name), ODD)
CASES(op.isinf, V([0.0, float("inf"), 1.0], "float16"))
CASES(op.logical_not, T(4, dtype="bool"))
NUMBERS = ("float16", "float32", "int8", "int32", "int64", "uint8", "bool")
for source, goal in itertools.product(NUMBERS, NUMBERS):
    values = [0, 1, 2, 3, 100] if source != "bool" else [0, 1, 1, 0, 1]
    CASES(op.astype, V(values, source), goal)
CASES(op.astype, V([-1.7, -0.3, 0.3, 1.7, 99.9], "float32"), "int32")
CASES(op.astype, V([-1.7, -0.3, 0.0, 0.3, 1.7], "float32"), "bool")
CASES(op.nn.dropout, X)


@pytest.mark.parametrize("part", range(2))
def test_it_computes_what_tvm_computes(part: int) -> None:
    assert faults(CASES[part::2]) == []
