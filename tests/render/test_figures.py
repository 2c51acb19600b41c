"""Figures for people."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byocviz.render import figures


@pytest.mark.parametrize(
    ("form", "value", "said"),
    [
        (figures.count, 12345, "12,345"),
        (figures.short, 705, "705"),
        (figures.short, 999, "999"),
        (figures.short, 999_999, "1.00 M"),
        (figures.short, 1_234_000_000, "1.23 G"),
        (figures.data, 0, "0 B"),
        (figures.data, 999, "999 B"),
        (figures.data, 1023, "1.00 KiB"),
        (figures.data, 1_080_000, "1.03 MiB"),
        (figures.data, 2**63, "8.00 EiB"),
        (figures.share, 0.0, "0%"),
        (figures.share, 1.0, "100%"),
        (figures.share, 0.99999, "99.9%"),
        (figures.share, 1e-9, "0.1%"),
        (figures.share, 0.889, "88.9%"),
        (figures.seconds, 0.0, "0"),
        (figures.seconds, 0.00032, "320 us"),
        (figures.seconds, 0.0041, "4.1 ms"),
        (figures.seconds, 0.25, "250 ms"),
        (figures.seconds, 1.25, "1.25 s"),
        (figures.seconds, 59.99, "1 min 00 s"),
        (figures.seconds, 185.2, "3 min 05 s"),
        (figures.difference, 0.0, "0"),
        (figures.difference, 1.2e-6, "1.2e-06"),
        (figures.difference, math.inf, "inf"),
    ],
)
def test_form(form, value, said: str) -> None:
    assert form(value) == said


@pytest.mark.parametrize(
    "form",
    [
        figures.count,
        figures.short,
        figures.data,
        figures.share,
        figures.seconds,
        figures.difference,
    ],
)
def test_unknown(form) -> None:
    assert form(None) == "?"


@given(st.integers(0, 2**64 - 1))
def test_scaled_figures_keep_three_digits_and_their_value(value: int) -> None:
    units = {"B": 0, "KiB": 1, "MiB": 2, "GiB": 3, "TiB": 4, "PiB": 5, "EiB": 6}
    number, unit = figures.data(value).split()
    assert len(number.replace(".", "")) <= 3
    assert float(number) * 1024 ** units[unit] == pytest.approx(value, rel=0.006)


@given(st.floats(0, 1, exclude_min=True, exclude_max=True))
def test_only_all_is_all_and_only_none_is_none(value: float) -> None:
    assert figures.share(value) not in ("0%", "100%", "0.0%", "100.0%")


@given(st.floats(0, 1e6))
def test_durations_are_short(value: float) -> None:
    assert len(figures.seconds(value)) <= 14


def test_plural() -> None:
    assert figures.plural(1, "rule") == "1 rule"
    assert figures.plural(2000, "rule") == "2,000 rules"
    assert figures.plural(2, "entry", "entries") == "2 entries"
