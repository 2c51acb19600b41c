"""A build's results against those of TVM alone, as a whole and subgraph by subgraph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from byocviz.recording.results import Check, Difference

HALF_UNITS = 16


def compare(
    name: str,
    kind: str,
    given: Sequence[np.ndarray],
    wanted: Sequence[np.ndarray],
    atol: float,
    rtol: float,
) -> Difference:
    """How far ``given`` lie from ``wanted``, which TVM made; the worst of all of them.

    An element differs by |given - wanted|, and relatively by that over |wanted|; elements where
    |wanted| is at most ``atol`` have no relative difference. NaN equals NaN at the same place and
    an infinity the same infinity; against anything else they exceed every tolerance. Integers and
    booleans must be equal. float16 and bfloat16 may differ by `HALF_UNITS` units in the last place
    of TVM's largest value: sums in them depend on their order by about as much.
    """
    if len(given) != len(wanted):
        return Difference(
            name, kind, exceeds=True, note=f"{len(given)} results against {len(wanted)}"
        )
    worst = Difference(name, kind, 0.0, None)
    notes = []
    for index, (a, b) in enumerate(zip(given, wanted, strict=True)):
        place = f"result {index}: " if len(given) > 1 else ""
        if _padded(a, b):
            rows = f"{len(a) - len(b):,} rows of -1 beyond the {len(b):,} of TVM alone"
            notes.append(f"{place}{rows}: the module states {len(a):,}")
            a = a[: len(b)]
        if a.shape != b.shape or a.dtype != b.dtype:
            notes.append(
                f"{place}{a.dtype}{list(a.shape)} against {b.dtype}{list(b.shape)} of TVM alone"
            )
            worst.exceeds = True
            continue
        if not a.size:
            continue
        largest, relative, outside, odd = _elements(a, b, atol, rtol)
        worst.max_abs = max(worst.max_abs or 0.0, largest)
        if relative is not None:
            worst.max_rel = max(worst.max_rel or 0.0, relative)
        worst.exceeds |= outside > 0
        if odd:
            notes.append(f"{place}{odd} of {a.size:,} elements are NaN or infinite on one side")
    if any(" against " in note for note in notes):
        worst.max_abs = worst.max_rel = None
    worst.note = "; ".join(notes)[:1000]
    return worst


def _half(b: np.ndarray, y: np.ndarray) -> float:
    """What numbers of 16 bits may differ by; 0 for others."""
    if b.dtype.itemsize != 2 or b.dtype.kind in "iub":
        return 0.0
    bits = 8 if "bfloat" in b.dtype.name else 11  # of the significand, the implied one included
    finite = np.abs(y[np.isfinite(y)])
    return float(HALF_UNITS * 2.0 ** (1 - bits) * finite.max()) if finite.size else 0.0


def _padded(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether ``a`` is ``b`` with rows of -1 added: an engine writes all rows that the module's
    type states, TVM's own non-maximum suppression only those that it finds."""
    if a.dtype != b.dtype or a.dtype.kind != "i" or a.ndim != b.ndim or a.ndim == 0:
        return False
    if a.shape[1:] != b.shape[1:] or len(a) <= len(b):
        return False
    return bool((a[len(b) :] == -1).all())


def _elements(
    a: np.ndarray, b: np.ndarray, atol: float, rtol: float
) -> tuple[float, float | None, int, int]:
    """Largest absolute and relative difference, elements beyond the tolerance, odd elements."""
    x, y = a.astype(np.float64), b.astype(np.float64)
    same = (a == b) | (np.isnan(x) & np.isnan(y))
    odd = ~same & ~(np.isfinite(x) & np.isfinite(y))
    usual = ~same & ~odd
    exact = a.dtype.kind in "iub"
    with np.errstate(all="ignore"):
        difference = np.where(usual, np.abs(x - y), 0.0)
        if exact:
            # float64 does not tell all integers beyond 2^53 apart.
            difference = np.where(usual, np.maximum(difference, 1.0), 0.0)
        large = np.abs(y) > atol
        relative = np.where(usual & large, difference / np.abs(y), 0.0)
        allowed = 0.0 if exact else np.maximum(atol + rtol * np.abs(y), _half(b, y))
        outside = odd | (difference > allowed) & usual
    worst = float(relative.max()) if large.any() else None
    return float(difference.max()), worst, int(outside.sum()), int(odd.sum())


class Capture:
    """Keeps copies of what goes into each engine and comes out, call by call."""

    def __init__(self, engine: Any) -> None:
        self.engine = engine
        self.inputs, self.outputs = engine.inputs, engine.outputs
        self.calls: list[tuple[list[np.ndarray], list[np.ndarray]]] = []

    def run_into(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        before = [_copy(tensor) for tensor in inputs]
        self.engine.run_into(inputs, outputs)
        self.calls.append((before, [_copy(tensor) for tensor in outputs]))


def _copy(tensor: Any) -> np.ndarray:
    return np.array(tensor.numpy() if hasattr(tensor, "numpy") else tensor)


def check(
    outputs: Mapping[str, tuple[np.ndarray, np.ndarray]],
    subgraphs: Mapping[str, Sequence[tuple[Sequence[np.ndarray], Sequence[np.ndarray]]]],
    *,
    atol: float,
    rtol: float,
    inputs: str,
) -> Check:
    """The comparison of each output, given and wanted, and of each call of each subgraph."""
    found = Check(atol, rtol, inputs)
    for name, (given, wanted) in outputs.items():
        found.differences.append(compare(name, "output", [given], [wanted], atol, rtol))
    for symbol, calls in subgraphs.items():
        each = [compare(symbol, "subgraph", a, b, atol, rtol) for a, b in calls]
        if not each:
            found.differences.append(
                Difference(symbol, "subgraph", note="it was not called with these inputs")
            )
            continue
        worst = max(each, key=lambda d: (d.exceeds, d.max_abs is None, d.max_abs or 0.0))
        if len(each) > 1:
            calls_text = f"the worst of {len(each)} calls"
            worst.note = f"{calls_text}; {worst.note}" if worst.note else calls_text
        found.differences.append(worst)
        if worst.exceeds and not found.first:
            found.first = symbol
    return found
