"""resize2d and grid_sample: methods, coordinates, rounding, sizes, layouts."""

from __future__ import annotations

import itertools

import pytest

pytest.importorskip("tvm")
pytest.importorskip("onnxruntime")

from tvm import relax

from tests.building.lower.lab import Cases, T, faults

resize = relax.op.image.resize2d
CASES = Cases()
MODES = ("asymmetric", "align_corners", "half_pixel", "pytorch_half_pixel")
ROUNDING = ("round", "floor", "ceil", "round_prefer_floor", "round_prefer_ceil", "")
SIZES = ((8, 8), (3, 2), (5, 10), (12, 15))

for mode, rounding, size in itertools.product(MODES, ROUNDING, SIZES):
    CASES(resize, T(1, 2, 4, 5), size, method="nearest_neighbor",
          coordinate_transformation_mode=mode, rounding_method=rounding)  # fmt: skip
for mode, size, method in itertools.product(MODES, SIZES, ("linear", "cubic")):
    CASES(resize, T(1, 2, 4, 5), size, method=method, coordinate_transformation_mode=mode,
          tol=1e-4)  # fmt: skip
for exclude, alpha in itertools.product((0, 1), (-0.75, -0.5)):
    CASES(resize, T(1, 2, 6, 5), (9, 7), method="cubic", cubic_alpha=alpha, cubic_exclude=exclude,
          tol=1e-4)  # fmt: skip
CASES(resize, T(1, 4, 5, 3), (8, 6), method="linear", layout="NHWC", tol=1e-4)
CASES(resize, T(1, 4, 5, 3), (8, 6), method="nearest_neighbor", layout="NHWC")
CASES(resize, T(1, 2, 4, 5), (1, 1), method="linear", coordinate_transformation_mode="half_pixel",
      tol=1e-4)  # fmt: skip
CASES(resize, T(1, 2, 4, 5), (1, 1), method="linear",
      coordinate_transformation_mode="pytorch_half_pixel", tol=1e-4)  # fmt: skip
CASES(resize, T(1, 2, 4, 5, dtype="float16"), (8, 6), method="linear")
CASES(resize, T(1, 2, 4, 5, dtype="float16"), (8, 6), method="nearest_neighbor")
CASES(resize, T(1, 2, 4, 5, dtype="int64"), (8, 6), method="nearest_neighbor")
deep = relax.op.image.resize3d
for mode, size in itertools.product(MODES, ((4, 8, 10), (2, 3, 2), (3, 5, 4))):
    CASES(deep, T(1, 2, 2, 4, 5), size, method="linear", coordinate_transformation_mode=mode,
          tol=1e-4)  # fmt: skip
    for rounding in ROUNDING:
        CASES(deep, T(1, 2, 2, 4, 5), size, method="nearest_neighbor",
              coordinate_transformation_mode=mode, rounding_method=rounding)  # fmt: skip
CASES(deep, T(1, 2, 4, 5, 3), (4, 6, 5), layout="NDHWC", tol=1e-4)
CASES(deep, T(1, 2, 2, 4, 5, dtype="float16"), (4, 6, 5))
sample = relax.op.image.grid_sample
for method, padding, corners in itertools.product(
    ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection"), (False, True)
):
    CASES(sample, T(1, 2, 5, 6), T(1, 2, 4, 3, low=-1.3, high=1.3), method=method,
          padding_mode=padding, align_corners=corners, tol=1e-4)  # fmt: skip


@pytest.mark.parametrize("part", range(2))
def test_it_computes_what_tvm_computes(part: int) -> None:
    assert faults(CASES[part::2]) == []
