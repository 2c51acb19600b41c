"""Constants and masks."""

from __future__ import annotations

import pytest

pytest.importorskip("tvm")
pytest.importorskip("onnxruntime")

from tvm import relax

from tests.building.lower.lab import Cases, T, faults

op = relax.op
CASES = Cases()
X = T(3, 4)

CASES(op.full, (2, 3), relax.const(1.5, "float32"), "float32")
CASES(op.full_like, X, relax.const(2.5, "float32"))
CASES(op.zeros, (2, 3), "int64")
CASES(op.ones, (2, 3), "float32")
CASES(op.zeros_like, X)
CASES(op.ones_like, X)
CASES(op.arange, 0, 7, 2, "int64")
for k in (0, 1, -1, 5):
    CASES(op.tril, X, k)
    CASES(op.triu, T(2, 3, 3), k)
    CASES(op.tril, T(2, 3, 4, dtype="bool"), k)
    CASES(op.triu, T(3, 4, dtype="bool"), k)


@pytest.mark.parametrize("part", range(2))
def test_it_computes_what_tvm_computes(part: int) -> None:
    assert faults(CASES[part::2]) == []
