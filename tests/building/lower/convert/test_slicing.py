"""strided_slice, split and flip."""

from __future__ import annotations

import itertools

import pytest

pytest.importorskip("tvm")
pytest.importorskip("onnxruntime")

from tvm import relax

from tests.building.lower.lab import Cases, T, V, faults

op = relax.op
CASES = Cases()
X = T(4, 5, 6)
BIG = 2**63 - 1

for axes, begin, end, strides in (
    ([0], [1], [3], None),
    ([1], [0], [-1], None),
    ([2], [-3], [BIG], None),
    ([0, 2], [1, 1], [4, 5], [1, 2]),
    ([-1], [0], [6], [3]),
    ([1], [-1], [0], [-1]),
    ([1], [4], [0], [-2]),
    ([2], [-1], [-BIG], [-1]),
    ([2], [-1], [-7], [-2]),
    ([0], [3], [-4], [-1]),
    ([0, 1, 2], [0, 0, 1], [BIG, BIG, BIG], [1, 1, 1]),
    ([1], [-9], [9], [1]),
    ([1], [2], [2], [1]),
    ([1], [9], [12], [1]),
    ([2], [20], [1], [-2]),
    ([0], [-4], [-1], [2]),
):
    CASES(op.strided_slice, X, axes, begin, end, strides)
CASES(op.strided_slice, X, [1], [1], [4], [2], True)
CASES(op.strided_slice, T(6, dtype="int64"), [0], [1], [5], [2])
CASES(op.strided_slice, T(6, dtype="float16"), [0], [-1], [-BIG], [-2])
for sections, axis in itertools.product((2, 3), (0, 1, -1)):
    CASES(op.split, T(6, 6, 6), sections, axis)
for sections, axis in ((5, 1), (2, 1), (3, 1), (1, 1)):
    CASES(op.split, X, sections, axis)
for indices, axis in (([1, 3], 1), ([2], 0), ([1, 2, 5], -1), ([1, 2, 3, 4], 1)):
    CASES(op.split, X, indices, axis)
for axis in (0, 1, -1):
    CASES(op.flip, X, axis)
for lengths, time, batch in (
    ([1, 4, 2], 1, 0),
    ([3, 3, 1, 2, 2], 0, 1),
    ([1, 2, 4, 3, 2, 1], 1, 2),
    ([6, 5, 1, 3], 2, 1),
):
    shape = [0, 0, 0]
    shape[batch], shape[time] = len(lengths), max(lengths)
    CASES(op.reverse_sequence, T(*(n or 2 for n in shape)), V(lengths, "int64"), time, batch)
CASES(op.reverse_sequence, T(3, 4, dtype="int32"), V([1, 4, 2], "int32", True))
for kind in ("int32", "int64"):  # lengths that the axis does not have
    CASES(op.reverse_sequence, T(4, 3, 2), V([9, -1, 0, 3], kind), 1, 0)
CASES(op.reverse_sequence, T(2, 0, 3), V([1, 0], "int32"), 1, 0)


@pytest.mark.parametrize("part", range(2))
def test_it_computes_what_tvm_computes(part: int) -> None:
    assert faults(CASES[part::2]) == []
