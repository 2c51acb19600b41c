"""Gathering, scattering, one_hot."""

from __future__ import annotations

import pytest

pytest.importorskip("tvm")
pytest.importorskip("onnxruntime")

from tvm import relax

from tests.building.lower.lab import Cases, T, V, faults

op = relax.op
CASES = Cases()
X = T(3, 4, 5)

for axis in (0, 1, -1):
    CASES(op.take, X, V([[2, 0], [1, 1]], "int64"), axis)
    CASES(op.take, X, V([2, 0, 1], "int32", True), axis)
    CASES(op.take, X, V([-4, 7, 1], "int64"), axis, mode="clip")
    CASES(op.take, X, V([-4, 7, 1], "int64"), axis, mode="wrap")
CASES(op.take, T(5), V(3, "int64"), 0)
CASES(op.take, T(5), V([3, 1], "int64"))
for axis in (0, 1, -1):
    CASES(op.gather_elements, X, T(3, 4, 5, dtype="int64", low=0, high=2), axis)
CASES(op.gather_nd, X, V([[0, 1], [2, 3]], "int64"))
CASES(op.gather_nd, X, V([[0], [2]], "int64"))
CASES(op.gather_nd, X, V([[1], [2], [0]], "int64"), 1)
for kind in ("update", "add", "mul"):
    CASES(op.scatter_elements, X, V([[[0, 1, 2, 0, 1]]], "int64"), T(1, 1, 5), 1, kind)
    CASES(op.scatter_nd, X, V([[0], [2]], "int64"), T(2, 4, 5), kind)
for axis in (-1, 0, 1):
    number = relax.prim_value
    CASES(op.one_hot, V([[0, 2], [1, 3]], "int64"), number(2.5), number(-1.0), 4, axis)
# More classes than the type of the indices counts.
for dtype in ("int8", "uint8", "int16", "uint16", "int32"):
    low = 0 if dtype.startswith("u") else -1
    CASES(op.one_hot, V([0, 10, 120, low], dtype), number(1.0), number(0.0), 300, -1)


@pytest.mark.parametrize("part", range(2))
def test_it_computes_what_tvm_computes(part: int) -> None:
    assert faults(CASES[part::2]) == []
