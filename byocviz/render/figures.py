"""Figures for people. Each takes None for "unknown" and prints it as "?"."""

from __future__ import annotations

import math

UNKNOWN = "?"


def count(value: int | None) -> str:
    """A whole number with its thousands apart: ``12,345``."""
    return UNKNOWN if value is None else f"{value:,}"


def short(value: int | None) -> str:
    """A large number to three digits with a decimal prefix: ``705``, ``1.23 G``."""
    return UNKNOWN if value is None else _scaled(value, 1000, ("", "k", "M", "G", "T", "P", "E"))


def data(value: int | None) -> str:
    """Bytes to three digits, by powers of 1024: ``512 B``, ``4.20 MiB``."""
    if value is None:
        return UNKNOWN
    return _scaled(value, 1024, ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"))


def _scaled(value: int, base: int, units: tuple[str, ...]) -> str:
    scaled, power = float(value), 0
    # 999.5, not the base: what would round to four digits takes the next unit.
    while abs(scaled) >= 999.5 and power < len(units) - 1:
        scaled /= base
        power += 1
    if power == 0:
        return f"{value} {units[0]}".rstrip()
    digits = 2 if abs(scaled) < 9.995 else 1 if abs(scaled) < 99.95 else 0
    return f"{scaled:.{digits}f} {units[power]}"


def share(value: float | None) -> str:
    """A share of 0 to 1 in per cent. Only all is ``100%`` and only none is ``0%``."""
    if value is None or math.isnan(value):
        return UNKNOWN
    if value in (0.0, 1.0):
        return f"{value:.0%}"
    return f"{min(max(value * 100, 0.1), 99.9):.1f}%" if 0 < value < 1 else f"{value:.1%}"


def seconds(value: float | None) -> str:
    """A duration: ``0``, ``320 us``, ``4.1 ms``, ``1.25 s``, ``3 min 05 s``."""
    if value is None or math.isnan(value):
        return UNKNOWN
    if value <= 0:
        return "0"
    if value < 0.9995e-3:
        return f"{value * 1e6:.0f} us"
    if value < 0.9995:
        return f"{value * 1e3:.{1 if value < 9.95e-3 else 0}f} ms"
    if value < 59.95:
        return f"{value:.{2 if value < 9.995 else 1}f} s"
    whole = round(value)
    return f"{whole // 60} min {whole % 60:02d} s"


def difference(value: float | None) -> str:
    """A numerical difference: ``0``, ``1.2e-06``."""
    if value is None:
        return UNKNOWN
    return "0" if value == 0 else f"{value:.1e}"


def plural(number: int, noun: str, many: str = "") -> str:
    """``1 operator``, ``2 operators``."""
    return f"{number:,} {noun if number == 1 else many or noun + 's'}"
