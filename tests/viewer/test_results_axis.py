"""The labels below the latency's bars never touch, at any width."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from byocviz.recording import Recording
from byocviz.recording.results import Latency, Variant

from .conftest import Open
from .test_results import given, opened

LABELS = """() => [...document.querySelectorAll(".axis .lane")].map(lane =>
    [...lane.querySelectorAll("span")]
        .filter(label => getComputedStyle(label).visibility === "visible")
        .map(label => label.getBoundingClientRect()).map(box => [box.left, box.right]))"""


def timed(*medians: float) -> Latency:
    return Latency(
        [
            Variant(f"variant {i}", "byoc", median=m, p10=m * 0.9, p90=m * 1.1, seconds=[m])
            for i, m in enumerate(medians)
        ]
    )


@pytest.mark.parametrize(
    "medians", [(9.7e-3, 2.6e-4), (0.55, 0.012), (2.5, 3e-6), (5.2e-3, 1.2e-3), (1.234e-4,)]
)
def test_no_label_touches_another(
    view: Open, walkthrough: Recording, medians: tuple[float, ...]
) -> None:
    page = opened(view, given(walkthrough, latency=timed(*medians)))
    for width in (1600, 1100, 900, 700, 400, 320):
        page.page.set_viewport_size({"width": width, "height": 800})
        page.page.wait_for_timeout(60)
        found: Any = page.page.evaluate(LABELS)
        assert found
        for labels in found:
            assert len(labels) >= 2
            ends = sorted(labels)
            assert all(a[1] < b[0] for a, b in itertools.pairwise(ends)), (width, ends)
            assert ends[0][0] >= 0
            assert ends[-1][1] <= width
    assert page.errors == []
