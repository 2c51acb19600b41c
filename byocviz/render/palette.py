"""The colours of every drawing, in one place: Graphviz's figures and the viewer have the same
(its style sheet repeats them as custom properties, and a test compares the two).

A `Paint` is a pale ``fill``, the ``line`` round it and the ``ink`` of the text on it. The hues
are those of Okabe and Ito (Color Universal Design, 2008; also in B. Wong, "Points of view: Color
blindness", Nature Methods 8, 2011, p. 441), which colour-blind people tell apart, in lighter and
darker shades; TVM is grey. Inks keep 4.5:1 against their fill and lines of what is told apart
3:1 against the page (WCAG 2.2, 1.4.3 and 1.4.11). No drawing tells anything by colour alone.
"""

from __future__ import annotations

from typing import NamedTuple

THEMES = ("light", "dark")
BACKENDS = 4
"""Paints of backends, in the order in which a recording names them; after these they repeat."""
REGIONS = 6
"""Paints of regions and subgraphs, where those are told apart; they repeat by their number."""


class Paint(NamedTuple):
    """Colours as ``#rrggbb``."""

    fill: str
    line: str
    ink: str


class Theme(NamedTuple):
    page: str
    """What everything is drawn on."""
    ink: str
    muted: str
    """Text of second rank."""
    edge: str
    paints: dict[str, Paint]
    """``tvm``; ``b0`` ... by backend; ``mixed`` (some on TVM, some not); ``io`` (parameters and
    results); ``flow`` (control flow); ``none`` (runs nowhere); ``r0`` ... by region;
    ``composite``; ``reason`` (why it stays on TVM); ``prune`` (given back to TVM)."""


def _theme(page: str, ink: str, muted: str, edge: str, paints: dict[str, tuple[str, ...]]) -> Theme:
    # A region's text has the page's own ink.
    full = {name: Paint(*(*colours, ink)[:3]) for name, colours in paints.items()}
    return Theme(page, ink, muted, edge, full)


PALETTE = {
    "light": _theme(
        "#ffffff",
        "#17202e",
        "#4c596b",
        "#8793a5",
        {
            "tvm": ("#ffffff", "#7c899b", "#17202e"),
            "b0": ("#c9ece0", "#008a65", "#06382b"),
            "b1": ("#cfe4f6", "#0072b2", "#06304c"),
            "b2": ("#f3d9e6", "#b0578a", "#45132f"),
            "b3": ("#fbe3b8", "#b87a00", "#402a00"),
            "mixed": ("#eaf3f0", "#5d8f80", "#17332b"),
            "io": ("#e4e8ee", "#a3adba", "#2b3646"),
            "flow": ("#fdf3d7", "#a98100", "#3d2f00"),
            "none": ("#f1f3f6", "#b3bcc8", "#46505f"),
            "r0": ("#c9ece0", "#008a65"),
            "r1": ("#cfe4f6", "#0072b2"),
            "r2": ("#fbe3b8", "#b87a00"),
            "r3": ("#f3d9e6", "#b0578a"),
            "r4": ("#d5f0fb", "#2a8fbd"),
            "r5": ("#fbd9c7", "#c25410"),
            "composite": ("#ffffff", "#6b3fa0", "#6b3fa0"),
            "reason": ("#fff3dc", "#d88a00", "#8a4b00"),
            "prune": ("#fdf0e8", "#b84600", "#b84600"),
        },
    ),
    "dark": _theme(
        "#111822",
        "#edf1f7",
        "#b3bfce",
        "#66748a",
        {
            "tvm": ("#222b38", "#7d8b9f", "#edf1f7"),
            "b0": ("#0f4637", "#2bc394", "#dcfff2"),
            "b1": ("#123b5a", "#56b4e9", "#e0f2ff"),
            "b2": ("#4c2540", "#e094bf", "#ffe6f3"),
            "b3": ("#4b380c", "#f0b429", "#fff1cf"),
            "mixed": ("#1e332e", "#62a491", "#e2f4ee"),
            "io": ("#2a3341", "#5c6a7e", "#dfe6ef"),
            "flow": ("#3a3010", "#d6ad2c", "#fff3cb"),
            "none": ("#1d2531", "#4c596c", "#c2ccd9"),
            "r0": ("#0f4637", "#2bc394"),
            "r1": ("#123b5a", "#56b4e9"),
            "r2": ("#4b380c", "#f0b429"),
            "r3": ("#4c2540", "#e094bf"),
            "r4": ("#0f4150", "#5fd0ee"),
            "r5": ("#51280f", "#ff9d5c"),
            "composite": ("#111822", "#c3a1f0", "#c3a1f0"),
            "reason": ("#33270d", "#d99a21", "#ffc663"),
            "prune": ("#43260f", "#ff9d5c", "#ff9d5c"),
        },
    ),
}


def theme(name: str = "light") -> Theme:
    """The colours of a theme. Raises ValueError for another name than those of `THEMES`."""
    if name not in PALETTE:
        raise ValueError(f"theme is {name!r}; it can be {' or '.join(map(repr, THEMES))}")
    return PALETTE[name]


def contrast(a: str, b: str) -> float:
    """Contrast ratio of two colours, 1 to 21 (WCAG 2.2's definition)."""
    high, low = sorted((_luminance(a), _luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    linear = [
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
        for value in (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
