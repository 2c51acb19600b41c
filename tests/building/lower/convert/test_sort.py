"""Sorting, and the largest elements."""

from __future__ import annotations

import itertools

import pytest

pytest.importorskip("tvm")
pytest.importorskip("onnxruntime")

from tvm import relax

from tests.building.lower.lab import Cases, T, V, faults

op = relax.op
CASES = Cases()
X = T(3, 5)
TIES = V([[1, 2, 2, 0, 1], [3, 3, 3, 3, 3]], "float32")

for axis, largest, kind in itertools.product((-1, 0), (True, False), ("both", "values", "indices")):
    CASES(op.topk, X, 2, axis, kind, largest)
CASES(op.topk, X, -1)
CASES(op.topk, TIES, 3, -1, "both", True, "int64")
for axis, descending in itertools.product((-1, 0), (True, False)):
    CASES(op.sort, X, axis, descending)
    CASES(op.argsort, X, axis, descending)
    CASES(op.argsort, TIES, axis, descending, "int64")
CASES(op.sort, T(6, dtype="int32", low=-9, high=9))


@pytest.mark.parametrize("part", range(2))
def test_it_computes_what_tvm_computes(part: int) -> None:
    assert faults(CASES[part::2]) == []
