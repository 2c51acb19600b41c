"""The same calls in every opset that the converters write."""

from __future__ import annotations

import pytest

pytest.importorskip("tvm")
pytest.importorskip("onnxruntime")

from tvm import relax

from byocviz.building.lower.walker import OPSETS
from tests.building.lower.lab import C, Cases, T, V, faults

op, nn = relax.op, relax.op.nn


@pytest.mark.parametrize("opset", [o for o in OPSETS if o != 17])
def test_operators_whose_form_changed(opset: int) -> None:
    cases = Cases()
    for name in ("sum", "mean", "max", "min", "prod"):
        cases(getattr(op, name), T(2, 3, 4), [0, -1], True)
    cases(op.variance, T(2, 3, 4), 1, tol=1e-4)
    cases(op.split, T(4, 5), 3, 1)
    cases(op.split, T(4, 5), [1, 3], 1)
    cases(nn.pad, T(2, 3), [0, 1, 1, 0], "constant", 2.0)
    cases(op.image.resize2d, T(1, 2, 4, 5), (8, 3), method="linear", tol=1e-4)
    cases(op.image.resize2d, T(1, 2, 4, 5), (8, 3), method="nearest_neighbor")
    cases(op.image.resize2d, T(1, 2, 4, 5), (8, 3), method="cubic", tol=1e-4)
    cases(nn.group_norm, T(2, 6, 4), C(6), C(6), 3, 1, [2], tol=1e-4)
    cases(nn.layer_norm, T(2, 6), C(6), C(6), axes=[-1], tol=1e-4)
    cases(op.scatter_elements, T(3, 4), V([[0, 1, 2, 0]], "int64"), T(1, 4), 0, "update")
    for kind in ("min", "max"):
        cases(op.scatter_elements, T(3, 4), V([[0, 1, 2, 0]], "int64"), T(1, 4), 0, kind)
        cases(op.scatter_nd, T(3, 4), V([[0], [2]], "int64"), T(2, 4), kind)
    for include in (False, True):
        cases(nn.avg_pool2d, T(1, 2, 7, 8), pool_size=3, strides=2, padding=1, dilation=2,
              count_include_pad=include)  # fmt: skip
    cases(nn.avg_pool2d, T(1, 2, 7, 8), pool_size=3, strides=3, padding=1, ceil_mode=True)
    cases(nn.max_pool2d, T(1, 2, 7, 8), pool_size=3, strides=2, padding=1, dilation=2)
    if opset >= 19:
        cases(nn.pad, T(3, 4), [1, 2, 1, 0], "circular")
    for value in ("isinf", "isnan"):
        cases(getattr(op, value), V([0.0, float("inf"), float("nan")], "float16"))
    assert faults(cases, opset) == []
