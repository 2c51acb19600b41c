"""quantize and dequantize: types, rounding, bounds, scales of the tensor and of each channel."""

from __future__ import annotations

import pytest

pytest.importorskip("tvm")
pytest.importorskip("onnxruntime")

from tvm import relax

from tests.building.lower.lab import C, Cases, T, V, faults

op = relax.op
CASES = Cases()
SCALE = V(0.25, "float32", True)
SCALES = V([0.25, 0.5, 1.0], "float32", True)

for dtype, zero in (("int8", -7), ("int8", 0), ("uint8", 9)):
    point, points = V(zero, dtype, True), V([zero, 1, 2], dtype, True)
    # Halves are rounded to even ones; what lies outside of the type is cut.
    values = V([[0.125, 0.375, -0.125], [-0.625, 99.0, -99.0], [1.1, -1.2, 3.3]], "float32")
    CASES(op.quantize, values, SCALE, point, 0, dtype)
    for axis in (0, 1, -1):
        CASES(op.quantize, T(3, 3, low=-40, high=40), SCALES, points, axis, dtype)
    CASES(op.quantize, T(2, 3, 4, low=-40, high=40), SCALES, point, 1, dtype)
    CASES(op.quantize, T(2, 3, 4, low=-40, high=40), SCALE, points, 1, dtype)
    whole = T(2, 3, 4, dtype=dtype, low=-128, high=127)
    CASES(op.dequantize, whole, SCALE, point, 1)
    CASES(op.dequantize, whole, SCALES, points, 1)
    CASES(op.dequantize, whole, SCALES, point, -2)
CASES(op.quantize, T(2, 3, low=-40, high=40), T(low=0.2, high=0.5), T(dtype="int8"), 0, "int8")
CASES(op.dequantize, T(2, 3, dtype="int8", high=90), T(3, low=0.2), T(3, dtype="int8"), 1)
CASES(op.quantize, T(3, 1, low=-40, high=40), C(1, low=0.2), V([3], "int8", True), 0, "int8")


@pytest.mark.parametrize("part", range(2))
def test_it_computes_what_tvm_computes(part: int) -> None:
    assert faults(CASES[part::2]) == []
