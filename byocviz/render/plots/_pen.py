"""Text for plots: made safe, measured and cut before it is drawn, so that it fits where it goes.

All sizes are in points (1/72 inch). Imports matplotlib.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from matplotlib import font_manager
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.font_manager import FontProperties
from matplotlib.ft2font import FT2Font

from byocviz.recording.printable import printable

FONT = "DejaVu Sans"
"""Comes with matplotlib, so that a figure looks the same everywhere."""
_FURTHER = (
    "Noto Sans CJK JP",
    "Noto Sans CJK SC",
    "Noto Sans",
    "Arial Unicode MS",
    "WenQuanYi Zen Hei",
)
"""For the letters that it lacks, where one of these is installed."""
LIMIT = 300
"""Characters of one string that are looked at at all."""
MISSING = "\N{REPLACEMENT CHARACTER}"
LINE = 1.3
"""Height of a line of text, in its size."""
_SLACK = 1.02
"""A width depends a little on the resolution, by hinting: this much room is left for that."""


@lru_cache(maxsize=1)
def _fonts() -> tuple[tuple[str, ...], frozenset[int]]:
    """The families that are used, and the characters that they have."""
    there = {entry.name for entry in font_manager.fontManager.ttflist}
    families = (FONT, *(name for name in _FURTHER if name in there))
    known: set[int] = set()
    for family in families:
        path = font_manager.findfont(FontProperties(family=[family]))
        known.update(FT2Font(path).get_charmap())
    return families, frozenset(known)


def families() -> list[str]:
    """The font families, in the order in which a letter is looked up."""
    return list(_fonts()[0])


def clean(text: str, limit: int = LIMIT) -> str:
    """One line of text that draws as itself: what could not be seen is escaped, what no font has
    is replaced, what is too long is cut."""
    known = _fonts()[1]
    shown = printable(text, limit=limit)
    return "".join(char if ord(char) in known else MISSING for char in shown)


class Pen:
    """Measures text at a resolution."""

    def __init__(self, dpi: float) -> None:
        self._scale = 72 / dpi * _SLACK
        self._renderer: Any = RendererAgg(1, 1, dpi)
        self._widths: dict[tuple[str, float, bool], float] = {}

    def width(self, text: str, size: float, bold: bool = False) -> float:
        """How wide a line of text is."""
        key = (text, size, bold)
        if key not in self._widths:
            font = FontProperties(family=families(), size=size, weight="bold" if bold else "normal")
            wide = self._renderer.get_text_width_height_descent(text, font, ismath=False)[0]
            self._widths[key] = wide * self._scale
        return self._widths[key]

    def widest(self, texts: list[str], size: float, bold: bool = False) -> float:
        """The width of the widest; 0 for none."""
        return max((self.width(text, size, bold) for text in texts), default=0.0)

    def fit(self, text: str, room: float, size: float, bold: bool = False) -> str:
        """A line of `clean` text, its end cut where it is wider than ``room``."""
        text = clean(text)
        if self.width(text, size, bold) <= room:
            return text
        return text[: self._longest(text, room, size, bold, "...")].rstrip() + "..."

    def wrap(
        self, text: str, room: float, size: float, lines: int = 2, bold: bool = False
    ) -> list[str]:
        """`clean` text in at most so many lines; what is left is cut off. No line for no text."""
        made: list[str] = []
        rest = clean(text).strip()
        while rest and len(made) < lines - 1:
            if self.width(rest, size, bold) <= room:
                break
            at = max(self._longest(rest, room, size, bold), 1)
            space = rest.rfind(" ", 0, at + 1)
            # A word that alone is wider than the room is cut wherever that is.
            at = space if space > 0 else at
            made.append(rest[:at].rstrip())
            rest = rest[at:].lstrip()
        return [*made, self.fit(rest, room, size, bold)] if rest else made

    def _longest(self, text: str, room: float, size: float, bold: bool, tail: str = "") -> int:
        """How many characters fit, with ``tail`` behind them."""
        low, high = 0, len(text)
        while low < high:
            middle = (low + high + 1) // 2
            if self.width(text[:middle].rstrip() + tail, size, bold) <= room:
                low = middle
            else:
                high = middle - 1
        return low
