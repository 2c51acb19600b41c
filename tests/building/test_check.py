"""The comparison with TVM alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from byocviz.building.check import Capture, check, compare
from byocviz.flow.relax.inputs import numpy_dtype

floats = hnp.arrays(
    np.float32,
    st.tuples(st.integers(0, 4), st.integers(1, 4)),
    elements=st.floats(-100, 100, width=32),
)


@given(floats)
def test_a_tensor_equals_itself(array: np.ndarray) -> None:
    found = compare("x", "output", [array], [array.copy()], 0.0, 0.0)
    assert (found.max_abs, found.exceeds, found.note) == (0.0, False, "")


@given(floats, st.floats(0, 1), st.floats(0, 0.1), st.data())
def test_the_verdict_is_numpy_s(
    array: np.ndarray, atol: float, rtol: float, data: st.DataObject
) -> None:
    noise = data.draw(hnp.arrays(np.float32, array.shape, elements=st.floats(-1, 1, width=32)))
    other = array + noise
    found = compare("x", "output", [other], [array], atol, rtol)
    x, y = other.astype(np.float64), array.astype(np.float64)
    assert found.exceeds != np.allclose(x, y, atol=atol, rtol=rtol)
    assert found.max_abs == pytest.approx(np.abs(x - y).max() if array.size else 0.0)


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_equals_only_itself(odd: float) -> None:
    a, b = np.float32([1, odd]), np.float32([1, 2])
    assert not compare("x", "output", [a], [a.copy()], 1e9, 1e9).exceeds
    for given_, wanted in ((a, b), (b, a)):
        found = compare("x", "output", [given_], [wanted], 1e9, 1e9)
        assert found.exceeds
        assert "1 of 2 elements" in found.note
        assert found.max_abs == 0.0


def test_integers_beyond_float64_are_told_apart() -> None:
    a, b = np.int64([2**62]), np.int64([2**62 + 1])
    found = compare("x", "output", [a], [b], 1e9, 1.0)
    assert found.exceeds
    assert found.max_abs == 1.0


def test_an_index_that_is_off_by_one_exceeds_every_tolerance() -> None:
    found = compare("x", "output", [np.int32([1000, 2001])], [np.int32([1000, 2000])], 1e9, 1)
    assert found.exceeds


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_numbers_of_16_bits_may_differ_in_their_last_places(dtype: str) -> None:
    kind = numpy_dtype(dtype)
    wanted = np.asarray([8.0, 0.01], kind)
    unit = 8.0 * (2.0**-10 if dtype == "float16" else 2.0**-7)
    near, far = wanted.copy(), wanted.copy()
    near[1] += np.asarray(8 * unit, kind)
    far[1] += np.asarray(40 * unit, kind)
    assert not compare("x", "output", [near], [wanted], 1e-4, 1e-3).exceeds
    assert compare("x", "output", [far], [wanted], 1e-4, 1e-3).exceeds


def test_other_shapes_types_and_numbers_exceed_and_say_so() -> None:
    a, b = np.zeros((2, 3), np.float32), np.zeros((3, 2), np.float32)
    shape = compare("x", "output", [a], [b], 1, 1)
    assert (shape.exceeds, shape.max_abs) == (True, None)
    assert "float32[2, 3] against float32[3, 2]" in shape.note
    assert compare("x", "output", [a], [a.astype(np.float16)], 1, 1).exceeds
    count = compare("x", "subgraph", [a], [a, a], 1, 1)
    assert (count.exceeds, count.note) == (True, "1 results against 2")


def test_rows_that_only_pad_are_said_and_not_compared() -> None:
    rows = np.int64([[0, 1, 5], [0, 2, 7]])
    padded = np.concatenate([rows, np.full((3, 3), -1, np.int64)])
    found = compare("x", "output", [padded], [rows], 0, 0)
    assert not found.exceeds
    assert (found.max_abs, found.note) == (
        0.0,
        "3 rows of -1 beyond the 2 of TVM alone: the module states 5",
    )
    padded[1, 2] = 8
    assert compare("x", "output", [padded], [rows], 0, 0).exceeds
    padded[4, 2] = 0
    other = compare("x", "output", [padded], [rows], 0, 0)
    assert other.exceeds
    assert other.max_abs is None


def test_the_first_subgraph_that_exceeds_is_named() -> None:
    zero, one = np.zeros(3, np.float32), np.ones(3, np.float32)
    found = check(
        {"output": (zero, zero)},
        {
            "fine": [([zero], [zero])],
            "never called": [],
            "off": [([zero], [zero]), ([one], [zero])],
            "off too": [([one], [zero])],
        },
        atol=0.1,
        rtol=0.0,
        inputs="made up",
    )
    assert found.first == "off"
    by_name = {d.name: d for d in found.differences}
    assert list(by_name) == ["output", "fine", "never called", "off", "off too"]
    assert "not called" in by_name["never called"].note
    assert by_name["off"].max_abs == 1.0
    assert by_name["off"].note == "the worst of 2 calls"


def test_a_capture_keeps_what_went_in_before_the_engine_ran() -> None:
    class Doubling:
        inputs = outputs = ()

        def run_into(self, inputs: list, outputs: list) -> None:
            outputs[0][:] = inputs[0] * 2
            inputs[0][:] = -1  # some engines reuse their inputs' memory

    capture = Capture(Doubling())
    x, y = np.float32([1, 2]), np.zeros(2, np.float32)
    capture.run_into([x], [y])
    y[:] = 0
    ((given, made),) = capture.calls
    np.testing.assert_array_equal(given[0], [1, 2])
    np.testing.assert_array_equal(made[0], [2, 4])
