"""The latency comparison: TVM alone, TVM with the runtime, the runtime alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from byocviz.building.machine import machine, now
from byocviz.building.timing import Clock, Timed, in_turn
from byocviz.building.variants import Run
from byocviz.recording.results import Latency, Part, Variant


@dataclass
class Candidate:
    """A bar of the chart that is to be: ``variant`` without times, and what runs it."""

    variant: Variant
    run: Run | None = None
    """None where `Variant.cannot` says why."""
    timed_parts: Callable[[Run], Mapping[str, float]] | None = None
    """Runs once with a clock in each subgraph; the seconds by the subgraph's symbol."""
    first: Callable[[], float | None] | None = None
    """The very first run of all, which may lie before this; None: it is the first one here."""


def measure(
    candidates: Sequence[Candidate],
    repeat: int,
    warmup: int,
    *,
    clock: Clock = time.perf_counter,
    tell: Callable[[int, int], None] | None = None,
) -> Latency:
    """Time all candidates that can run, in turn, and afterwards the parts of those that have any.

    Nothing is in a statistic that came before ``warmup`` runs of all were done.
    """
    running = [c for c in candidates if c.run is not None]
    timed = in_turn([c.run for c in running if c.run], repeat, warmup, clock=clock, tell=tell)
    for candidate, one in zip(running, timed, strict=True):
        _fill(candidate, one)
        if candidate.timed_parts is not None:
            candidate.variant.parts = _parts(candidate, max(1, min(repeat, 10)), clock)
    return Latency(
        [c.variant for c in candidates], repeat, warmup, now(), machine(),
    )  # fmt: skip


def _fill(candidate: Candidate, timed: Timed) -> None:
    variant = candidate.variant
    variant.seconds = timed.seconds
    variant.first = timed.first if candidate.first is None else candidate.first()
    variant.median = timed.quantile(0.5)
    variant.p10 = timed.quantile(0.1)
    variant.p90 = timed.quantile(0.9)


def _parts(candidate: Candidate, repeat: int, clock: Clock) -> list[Part]:
    """Medians of each subgraph's time in runs of their own, and of what is left for TVM."""
    assert candidate.run is not None
    assert candidate.timed_parts is not None
    samples: dict[str, Timed] = {}
    for _ in range(repeat):
        start = clock()
        inside = candidate.timed_parts(candidate.run)
        whole = clock() - start
        for name, seconds in {**inside, "TVM": max(whole - sum(inside.values()), 0.0)}.items():
            samples.setdefault(name, Timed()).seconds.append(seconds)
    return [Part(name, one.quantile(0.5) or 0.0) for name, one in samples.items()]


@dataclass
class Stopwatch:
    """Adds up the time spent in each engine while it is ``running``; free otherwise but for one
    look at a flag. ``wait`` comes back when the device is done."""

    wait: Callable[[], None]
    clock: Clock = time.perf_counter
    running: bool = False
    seconds: dict[str, float] = field(default_factory=dict)

    def watched(self, symbol: str, call: Callable[..., None]) -> Callable[..., None]:
        def watched(*arguments: Any) -> None:
            if not self.running:
                call(*arguments)
                return
            self.wait()
            start = self.clock()
            call(*arguments)
            self.wait()
            spent = self.clock() - start
            self.seconds[symbol] = self.seconds.get(symbol, 0.0) + spent

        return watched

    def over(self, run: Run) -> dict[str, float]:
        """The seconds in each engine during one run."""
        self.seconds, self.running = {}, True
        try:
            run()
        finally:
            self.running = False
        return self.seconds
