"""Things that are compared take turns, and first runs never count."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byocviz.building.timing import Timed, in_turn

seconds = st.lists(st.floats(0, 1e3), min_size=1, max_size=60)


class Clock:
    """Time passes only in runs."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@given(seconds, st.floats(0, 1))
def test_quantiles_are_numpy_s(values: list[float], share: float) -> None:
    wanted = np.quantile(values, share)
    assert Timed(seconds=values).quantile(share) == pytest.approx(wanted, rel=1e-9, abs=1e-9)


def test_without_runs_nothing_is_known() -> None:
    assert Timed().quantile(0.5) is None


@settings(max_examples=15)
@given(st.integers(1, 5), st.integers(1, 6), st.integers(0, 4))
def test_every_round_runs_each_once_and_only_what_counts_is_kept(
    things: int, repeat: int, warmup: int
) -> None:
    clock = Clock()
    order: list[int] = []

    def run(index: int) -> None:
        order.append(index)
        # The first is slow, then a second for the first thing, two for the second ...
        clock.now += 1000.0 if order.count(index) == 1 else index + 1.0

    runs = [lambda index=index: run(index) for index in range(things)]
    rounds: list[tuple[int, int]] = []
    timed = in_turn(runs, repeat, warmup, clock=clock, tell=lambda *now: rounds.append(now))
    total = 1 + warmup + repeat
    assert rounds == [(number, total) for number in range(total)]
    turns = [order[:things]]
    for number in range(total - 1):
        start = things + 2 * things * number
        turns.append(order[start : start + 2 * things : 2])
        # Each follows a run of its own.
        assert order[start + 1 : start + 2 * things : 2] == turns[-1]
    for number, turn in enumerate(turns):
        assert sorted(turn) == list(range(things))
        assert turn[0] == number % things
    for index, one in enumerate(timed):
        assert one.first == pytest.approx(1000.0)
        assert one.seconds == pytest.approx([index + 1.0] * repeat)


def test_garbage_is_collected_again_afterwards_even_where_a_run_fails() -> None:
    seen: list[bool] = []

    def fails() -> None:
        seen.append(gc.isenabled())
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        in_turn([fails], 1, 0)
    assert seen == [False]
    assert gc.isenabled()
