"""Non-maximum suppression: the rows that count, in TVM's order, and how many they are. Regions
that are cut out."""

from __future__ import annotations

import itertools

import numpy as np
import onnx
import pytest

pytest.importorskip("tvm")
pytest.importorskip("onnxruntime")

from tvm import relax

from byocviz.building.lower import lower
from byocviz.flow.relax.verify import run_module
from tests.building.lower.lab import Cases, T, V, build, faults, run_onnx

CASES = Cases()
REGIONS = V(
    [[0, 1.0, 0.5, 6.5, 5.0], [1, 2.0, 2.0, 2.3, 2.1], [0, -3.0, -2.0, 4.0, 12.0],
     [1, 0.0, 0.0, 9.0, 7.0]], "float32",
)  # fmt: skip
for size, scale, ratio, aligned in itertools.product(
    ((2, 3), (4, 4)), (1.0, 0.5), (-1, 2), (False, True)
):
    CASES(relax.op.vision.roi_align, T(2, 3, 8, 10), REGIONS, size, scale, ratio, aligned,
          tol=1e-4)  # fmt: skip
CASES(relax.op.vision.roi_align, T(2, 8, 10, 3), REGIONS, 3, 1.0, layout="NHWC", tol=1e-4)


def test_it_cuts_out_what_tvm_cuts_out() -> None:
    assert faults(CASES) == []


nms = relax.op.vision.all_class_non_max_suppression


@pytest.mark.parametrize(
    ("batch", "classes", "boxes", "limit", "iou", "score"),
    [
        (1, 1, 6, 6, 0.5, 0.0),
        (1, 3, 8, 2, 0.4, 0.3),
        (2, 2, 7, 7, 0.1, 0.5),
        (1, 2, 5, 3, 0.9, 1.0),
    ],
)
def test_it_keeps_what_tvm_keeps(
    batch: int, classes: int, boxes: int, limit: int, iou: float, score: float
) -> None:
    rng = np.random.default_rng(batch * 100 + boxes)
    corner = rng.uniform(0, 0.6, (batch, boxes, 2))
    values = np.concatenate([corner, corner + rng.uniform(0.1, 0.4, (batch, boxes, 2))], -1)
    cases = Cases()
    cases(
        nms, V(values, "float32"), T(batch, classes, boxes, low=0.0, high=1.0),
        relax.const(limit, "int64"), relax.const(iou, "float32"), relax.const(score, "float32"),
    )  # fmt: skip
    module, inputs, _ = build(cases)
    lowered = lower(module["main"])
    onnx.checker.check_model(lowered.model, full_check=True)
    rows, count = run_onnx(lowered, inputs)
    wanted, number = run_module(module, "main", inputs)
    np.testing.assert_array_equal(count, number)
    np.testing.assert_array_equal(rows[: count[0]], wanted[: count[0]])
    assert rows.shape == (batch * classes * boxes, 3)
    assert (rows[count[0] :] == -1).all()
