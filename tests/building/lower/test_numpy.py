"""What TVM does not compile for the CPU, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tvm")
pytest.importorskip("onnxruntime")

import onnx
from tvm import relax

from byocviz.building.lower import lower
from tests.building.lower.lab import C, Cases, T, V, build, difference, run_onnx

op = relax.op
CASES = Cases()
EXPECTED: list[Any] = []


def expect(function: Any, *args: Any, **kwargs: Any) -> Callable[[Any], None]:
    def add(wanted: Any) -> None:
        CASES(function, *args, **kwargs)
        EXPECTED.append(wanted)

    return add


def _shuffle(x: np.ndarray) -> np.ndarray:
    n, c, h, w = x.shape
    parts = x.reshape(n, c // 4, 2, 2, h, w).transpose(0, 1, 4, 2, 5, 3)
    return parts.reshape(n, c // 4, h * 2, w * 2)


def _rms(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    return x / np.sqrt((x * x).mean(axis=axes, keepdims=True) + 1e-5)


expect(op.ewise_fma, T(3, 4), T(3, 4), T(3, 4))(lambda a, b, c: a * b + c)
expect(op.nn.pixel_shuffle, T(1, 8, 3, 4), 2)(_shuffle)
expect(op.equal, T(2, 4, dtype="bool"), T(4, dtype="bool"))(np.equal)
expect(op.nn.rms_norm, T(2, 3, 4, 5), V(np.ones(3), "float32"), axes=[1])(
    lambda x, w: _rms(x, (1,))
)
expect(op.image.resize2d, T(1, 1, 2, 2), (2, 2), method="linear", out_dtype="float16")(
    lambda x: x.astype("float16")
)
expect(op.bitwise_not, T(4, dtype="bool"))(np.logical_not)


def test_it_computes_what_numpy_computes() -> None:
    for case, wanted in zip(CASES, EXPECTED, strict=True):
        module, values, _ = build([case])
        lowered = lower(module["main"])
        onnx.checker.check_model(lowered.model, full_check=True)
        (given,) = run_onnx(lowered, values)
        assert difference(given, wanted(*values), 1e-5) == "", case.name


@pytest.mark.parametrize("opset", [18, 19, 20, 21])
def test_later_opsets(opset: int) -> None:
    """Operators whose form changed, and those that came later."""
    cases = Cases()
    ints = {"dtype": "int32", "low": -9, "high": 9}
    cases(op.bitwise_and, T(4, **ints), T(4, **ints))
    cases(op.bitwise_or, T(4, **ints), C(4, **ints))
    cases(op.bitwise_xor, T(4, **ints), T(4, **ints))
    cases(op.bitwise_not, T(4, **ints))
    expected = [np.bitwise_and, None, np.bitwise_xor, np.bitwise_not]
    for case, wanted in zip(cases, expected, strict=True):
        module, values, _ = build([case])
        (given,) = run_onnx(lower(module["main"], opset=opset), values)
        if wanted is not None:
            np.testing.assert_array_equal(given, wanted(*values))
