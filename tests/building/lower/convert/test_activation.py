"""Activations, clip and softmax."""

from __future__ import annotations

import pytest

pytest.importorskip("tvm")
pytest.importorskip("onnxruntime")

from tvm import relax

from tests.building.lower.lab import C, Cases, T, faults

op, nn = relax.op, relax.op.nn
CASES = Cases()
X = T(2, 3, 4, low=-4, high=4)
HALF = T(2, 3, 4, dtype="float16", low=-4, high=4)

for name in ("relu", "silu", "gelu", "gelu_tanh", "selu"):
    CASES(getattr(nn, name), X)
    CASES(getattr(nn, name), HALF)
CASES(nn.relu, T(6, dtype="int32", low=-5, high=5))
for alpha in (0.01, 0.3):
    CASES(nn.leakyrelu, X, alpha)
for shape, axis in (((3,), 1), ((4,), -1), ((2,), 0), ((1,), 1)):
    CASES(nn.prelu, X, C(*shape), axis)
    CASES(nn.prelu, X, T(*shape), axis)
for beta, threshold in ((1.0, 20.0), (2.0, 3.0), (0.5, 1.0)):
    CASES(nn.softplus, X, beta, threshold)
for axis in (-1, 0, 1, 2, -3):
    CASES(nn.softmax, X, axis)
    CASES(nn.log_softmax, X, axis)
CASES(nn.softmax, HALF, -1)
INF = float("inf")
for low, high in ((0.0, 6.0), (-1.0, 1.0), (-INF, 2.0), (0.5, INF), (1.0, 1.0), (2.0, -1.0)):
    CASES(op.clip, X, low, high)
CASES(op.clip, HALF, 0.0, 6.0)
CASES(op.clip, T(9, dtype="int32", low=-9, high=9), -3, 4)
CASES(op.clip, T(9, dtype="int64", low=-9, high=9), 0, 6)
CASES(op.clip, T(9, dtype="int8", low=-9, high=9), 0, 6)


@pytest.mark.parametrize("part", range(2))
def test_it_computes_what_tvm_computes(part: int) -> None:
    assert faults(CASES[part::2]) == []
