"""The latency comparison, by a clock that only the runs move."""

from __future__ import annotations

import pytest

from byocviz.building.latency import Candidate, Stopwatch, measure
from byocviz.recording.results import Variant
from tests.building.test_timing import Clock


def test_statistics_are_of_the_runs_that_count() -> None:
    clock = Clock()
    times = iter([50.0, 99.0, 9.0, 99.0, 1.0, 99.0, 2.0, 99.0, 3.0, 99.0, 4.0, 99.0, 5.0])

    def run() -> None:
        clock.now += next(times)

    refused = Variant("X alone", "runtime", cannot="NonMaxSuppression")
    found = measure(
        [Candidate(Variant("TVM alone", "tvm"), run), Candidate(refused)], 5, 1, clock=clock
    )
    tvm, x = found.variants
    assert tvm.seconds == pytest.approx([1, 2, 3, 4, 5])
    assert (tvm.first, tvm.median) == (50.0, 3.0)
    assert (tvm.p10, tvm.p90) == (pytest.approx(1.4), pytest.approx(4.6))
    assert (x.seconds, x.first, x.median, x.cannot) == ([], None, None, "NonMaxSuppression")
    assert (found.repeat, found.warmup) == (5, 1)
    assert found.made
    assert int(found.machine["cores"]) > 0


def test_a_first_run_from_before_counts_as_the_first() -> None:
    found = measure([Candidate(Variant("a", "byoc"), lambda: None, first=lambda: 7.0)], 1, 0)
    assert found.variants[0].first == 7.0


def test_parts_are_what_each_engine_took_and_the_rest_is_tvm() -> None:
    clock = Clock()
    watch = Stopwatch(lambda: None, clock)

    def passes(seconds: float) -> None:
        clock.now += seconds

    first = watch.watched("first", lambda: passes(2))
    second = watch.watched("second", lambda: passes(3))

    def run() -> None:
        first()
        passes(10)
        second()
        first()

    variant = Variant("TVM + X", "byoc")
    found = measure([Candidate(variant, run, watch.over)], 3, 0, clock=clock)
    assert found.variants[0].median == 17
    assert {p.name: p.median for p in variant.parts} == {"first": 4, "second": 3, "TVM": 10}
    assert not watch.running


def test_the_watch_stops_where_a_run_fails() -> None:
    watch = Stopwatch(lambda: None)

    def fails() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        watch.over(fails)
    assert not watch.running
