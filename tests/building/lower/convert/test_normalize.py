"""Normalisations."""

from __future__ import annotations

import pytest

pytest.importorskip("tvm")
pytest.importorskip("onnxruntime")

from tvm import relax

from tests.building.lower.lab import C, Cases, T, faults

nn = relax.op.nn
CASES = Cases()
X = T(2, 3, 4, 5)

for axes in ([-1], [3], [2, 3], [-2, -1], [1], [1, 3], [1, 2, 3]):
    shape = [X.shape[a] for a in axes]
    CASES(nn.layer_norm, X, T(*shape), T(*shape), axes=axes, tol=1e-4)
    CASES(nn.layer_norm, X, C(*shape), C(*shape), axes=axes, epsilon=1e-3, tol=1e-4)
    if axes != [1] and axes != [1, 3]:  # TVM does not compile it over inner axes
        CASES(nn.rms_norm, X, C(*shape), axes=axes, tol=1e-4)
HALF = {"dtype": "float16"}
CASES(nn.layer_norm, T(2, 8, **HALF), C(8, **HALF), C(8, **HALF), axes=[-1])
CASES(nn.rms_norm, T(2, 8, **HALF), C(8, **HALF), axes=[-1])
CASES(nn.group_norm, T(2, 6, 4, 5), C(6), C(6), 3, 1, [2, 3], tol=1e-4)
CASES(nn.group_norm, T(2, 6, 4, 5), T(6), T(6), 2, 1, [2, 3], epsilon=1e-3, tol=1e-4)
CASES(nn.group_norm, T(2, 6, 4), C(6), C(6), 6, 1, [2], tol=1e-4)
CASES(nn.instance_norm, X, C(3), C(3), 1, [2, 3], tol=1e-4)
CASES(nn.instance_norm, T(2, 4, 5, 3), C(3), C(3), 3, [1, 2], tol=1e-4)
STATISTICS = (C(3), C(3), C(3), C(3, low=0.5))
CASES(nn.batch_norm, X, *STATISTICS, 1, training=False, tol=1e-4)
CASES(nn.batch_norm, T(2, 4, 5, 3), *STATISTICS, 3, training=False, epsilon=1e-3, tol=1e-4)
CASES(nn.batch_norm, T(2, 3), *STATISTICS, -1, training=False, tol=1e-4)


@pytest.mark.parametrize("part", range(2))
def test_it_computes_what_tvm_computes(part: int) -> None:
    assert faults(CASES[part::2]) == []
