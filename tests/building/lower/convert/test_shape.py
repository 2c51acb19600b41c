"""Shape and order of elements."""

from __future__ import annotations

import pytest

pytest.importorskip("tvm")
pytest.importorskip("onnxruntime")

from tvm import relax

from tests.building.lower.lab import C, Cases, T, faults

op = relax.op
CASES = Cases()
X = T(2, 3, 4)

for shape in ((6, 4), (-1,), (0, -1), (2, 0, 2, -1), (1, 24, 1), (2, 3, 4)):
    CASES(op.reshape, X, shape)
CASES(op.reshape, T(0, 3), (0, 5))
CASES(op.flatten, X)
CASES(op.flatten, T())
CASES(op.nn.batch_flatten, T(2, 3, 4, 5))
for axis in (0, -1, 1, [0, 2], [-1, 0], [1, -2]):
    CASES(op.expand_dims, X, axis)
for shape, axis in (((1, 3, 1), None), ((1, 3, 1), 0), ((1, 3, 1), [0, -1]), ((2, 3), None),
                    ((1, 1), None), ((1, 3, 1), [-1])):  # fmt: skip
    CASES(op.squeeze, T(*shape), axis)
for axes in (None, [0, 2, 1], [2, 0, 1], [-1, 0, 1], [0, 1, 2]):
    CASES(op.permute_dims, X, axes)
CASES(op.layout_transform, T(1, 4, 5, 6), lambda n, c, h, w: (n, h, w, c))
CASES(op.layout_transform, T(1, 5, 6, 4), lambda n, h, w, c: (n, c, h, w))
CASES(op.layout_transform, X, lambda a, b, c: (c, b, a))
for shape in ((2, 3, 4), (5, 2, 3, 4), (1, 2, 3, 4)):
    CASES(op.broadcast_to, X, shape)
CASES(op.broadcast_to, T(3, 1), (2, 3, 4))
CASES(op.broadcast_to, T(), (2, 2))
for axis in (0, 1, -1):
    CASES(op.concat, [X, T(2, 3, 4), C(2, 3, 4)], axis)
    CASES(op.stack, [X, T(2, 3, 4)], axis)
CASES(op.concat, [T(2, 3), T(4, 3)], 0)
CASES(op.concat, [T(2, 3)], 0)
CASES(op.concat, [T(2, dtype="int64"), T(3, dtype="int64")], 0)
for repeats in (2, [2, 1], [1, 2, 3], [2, 1, 1, 2]):
    CASES(op.tile, X, repeats)
for count, axis in ((2, 0), (3, -1), (2, None)):
    CASES(op.repeat, X, count, axis)
CASES(op.meshgrid, [T(3), T(4)], "ij")
CASES(op.meshgrid, [T(3), T(4), T(2)], "ij")
WIDTHS = [0, 0, 1, 2, 0, 1]
for mode in ("constant", "reflect", "replicate"):
    CASES(op.nn.pad, X, WIDTHS, mode)
    CASES(op.nn.pad, T(1, 2, 4, 5), [0, 0, 0, 0, 1, 2, 3, 1], mode)
CASES(op.nn.pad, X, WIDTHS, "constant", 1.5)
CASES(op.nn.pad, T(2, 2, dtype="int64"), [1, 0, 0, 1], "constant", 7)


@pytest.mark.parametrize("part", range(2))
def test_it_computes_what_tvm_computes(part: int) -> None:
    assert faults(CASES[part::2]) == []
