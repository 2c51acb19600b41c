"""Times things that are to be compared: in turn, so that what drifts hits all of them alike."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

Clock = Callable[[], float]


@dataclass
class Timed:
    """One thing's runs, in seconds. ``first`` is its first run, which is in no statistic."""

    first: float | None = None
    seconds: list[float] = field(default_factory=list)

    def quantile(self, share: float) -> float | None:
        """The value below which that share of the runs lies; None without runs.

        Between two runs it is interpolated linearly (method 7 of Hyndman and Fan, 1996).
        """
        ordered = sorted(self.seconds)
        if not ordered:
            return None
        place = share * (len(ordered) - 1)
        low = math.floor(place)
        high = min(low + 1, len(ordered) - 1)
        return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def in_turn(
    runs: Sequence[Callable[[], object]],
    repeat: int,
    warmup: int,
    *,
    clock: Clock = time.perf_counter,
    tell: Callable[[int, int], None] | None = None,
) -> list[Timed]:
    """Time each of ``runs`` ``1 + warmup + repeat`` times; each must wait until its work is done.

    Every round times each once, in another order of neighbours. What was just run holds the
    processor's caches and its threads may still wait busily, so after the first round each is run
    once more, untimed, before it is timed. The very first run and those of the warm-up do not
    count; the first is kept apart. No garbage is collected meanwhile. ``tell`` gets the rounds
    done, and all of them.
    """
    timed = [Timed() for _ in runs]
    rounds = 1 + warmup + repeat
    collecting = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        for number in range(rounds):
            if tell is not None:
                tell(number, rounds)
            for offset in range(len(runs)):
                index = (number + offset) % len(runs)
                if number:
                    runs[index]()
                start = clock()
                runs[index]()
                seconds = clock() - start
                if number == 0:
                    timed[index].first = seconds
                elif number > warmup:
                    timed[index].seconds.append(seconds)
    finally:
        if collecting:
            gc.enable()
    return timed
