"""What plots say of times and figures, and which figures can be drawn. Imports nothing heavy."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from byocviz.recording.results import BuildInfo

_DATE = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)")
APART = "in runs of their own, with a clock in them"
"""How the parts of a run were timed: their times do not add up to its median."""
MOST = 1e12
"""Milliseconds, 31 years: no time that is longer is drawn, for nobody measured it."""


def milliseconds(seconds: float | None) -> float | None:
    """None where it is unknown or cannot be a duration."""
    if seconds is None or not math.isfinite(seconds) or not 0 <= seconds * 1e3 <= MOST:
        return None
    return seconds * 1e3


def said(ms: float) -> str:
    """``0.0123 ms``, ``1.23 ms``, ``11.6 ms``, ``553 ms``, ``12,345 ms``: three digits, but
    never less than all whole milliseconds."""
    if ms == 0:
        return "0 ms"
    if ms < 9.995e-4 or ms >= 1e7:
        return f"{ms:.3g} ms"
    digits = max(0, 2 - math.floor(math.log10(ms) + 1e-12))
    text = f"{ms:,.{digits}f}"
    # What rounds up to the next power of ten would have a digit more than the others.
    if digits and len(text.replace(".", "").lstrip("0")) > 3:
        text = f"{ms:,.{digits - 1}f}"
    return f"{text} ms"


def tick(ms: float) -> str:
    """A number at an axis."""
    return f"{ms:,.0f}" if 1000 <= ms < 1e7 else f"{ms:g}"


def faster(base: float, ms: float) -> str:
    """How a time compares with that of the baseline: ``47× faster``, ``1.3× slower``, ``same``."""
    if not base or not ms:
        return "?"
    ratio = base / ms
    high = max(ratio, 1 / ratio)
    text = f"{high:.1f}" if high < 9.95 else f"{high:,.0f}" if high < 1e6 else f"{high:.1e}"
    if text == "1.0":
        return "same"
    return f"{text}× {'faster' if ratio > 1 else 'slower'}"


def date(made: str) -> str:
    """``2025-01-01 12:30 UTC`` of an ISO date; another text as it is."""
    found = _DATE.match(made[:40])
    return f"{found[1]} {found[2]} UTC" if found else made


def facts(machine: Mapping[str, str], made: str) -> str:
    """The machine and the date in a line."""
    first = [value for name, value in machine.items() if name in ("processor", "gpu")]
    rest = [
        f"{name} {value}" for name, value in machine.items() if name not in ("processor", "gpu")
    ]
    return " · ".join(filter(None, [*first, *rest[:12], date(made)]))


def stand_in(build: BuildInfo | None) -> str:
    """``ONNX Runtime stands in for TensorRT: no GPU``, or nothing."""
    if build is None or not build.stands_in_for:
        return ""
    text = f"{build.title or build.runtime} stands in for {build.stands_in_for}"
    return f"{text}: {build.why}" if build.why else text
