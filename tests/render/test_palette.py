"""The colours: told apart, readable, and the same in the viewer's style sheet."""

from __future__ import annotations

import itertools
import math
import re
from pathlib import Path

import pytest

import byocviz
from byocviz.render.palette import THEMES, contrast, theme

STYLE = Path(byocviz.__file__).parent / "viewer" / "src" / "viewer.css"
TOLD_APART = ("tvm", "b0", "b1", "b2", "b3")

# Machado, Oliveira and Fernandes, "A Physiologically-based Model for Simulation of Color Vision
# Deficiency", IEEE TVCG 15 (6), 2009, table 1, severity 1.0; they act on linear RGB.
DEFICIENT = {
    "protan": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deutan": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritan": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}


def linear(colour: str) -> tuple[float, ...]:
    values = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    return tuple(v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values)


def lab(rgb: tuple[float, ...]) -> tuple[float, float, float]:
    """CIE L*a*b* (D65) of linear sRGB."""
    rows = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
    white = (0.9505, 1.0, 1.089)
    clear = [min(max(v, 0.0), 1.0) for v in rgb]
    f = []
    for row, w in zip(rows, white, strict=True):
        t = sum(a * b for a, b in zip(row, clear, strict=True)) / w
        f.append(t ** (1 / 3) if t > (6 / 29) ** 3 else t / (3 * (6 / 29) ** 2) + 4 / 29)
    return 116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])


def seen(colour: str, matrix: tuple[tuple[float, ...], ...]) -> tuple[float, float, float]:
    rgb = linear(colour)
    return lab(tuple(sum(a * b for a, b in zip(row, rgb, strict=True)) for row in matrix))


@pytest.mark.parametrize("name", THEMES)
def test_text_and_lines_can_be_read(name: str) -> None:
    colours = theme(name)
    for one in (colours.ink, colours.muted):
        assert contrast(one, colours.page) >= 4.5
    for kind, paint in colours.paints.items():
        assert contrast(paint.ink, paint.fill) >= 4.5, kind
        # Words on a pruned or unmatched operator stand on TVM's fill.
        assert contrast(paint.ink, colours.paints["tvm"].fill) >= 4.5 or kind in ("none", "io")
        if kind not in ("io", "none", "reason"):  # told by their words
            assert contrast(paint.line, colours.page) >= 3, kind


@pytest.mark.parametrize("name", THEMES)
@pytest.mark.parametrize("eyes", DEFICIENT)
def test_where_it_runs_is_told_apart_by_colour_blind_people(name: str, eyes: str) -> None:
    paints = theme(name).paints
    for a, b in itertools.combinations(TOLD_APART, 2):
        fill, line = (
            math.dist(*(seen(getattr(paints[one], part), DEFICIENT[eyes]) for one in (a, b)))
            for part in ("fill", "line")
        )
        # Units of CIE 1976: 2.3 is what can just be seen.
        assert max(fill, line) >= 10, (a, b, fill, line)


@pytest.mark.parametrize("name", THEMES)
def test_the_viewer_has_the_same_colours(name: str) -> None:
    style = STYLE.read_text(encoding="utf-8")
    light, dark = re.split(r'\[data-theme="dark"\]\s*\{', style, maxsplit=1)
    block = (light if name == "light" else dark).partition("}")[0]
    found = dict(re.findall(r"--([\w-]+):\s*(#[0-9a-f]{6})\b", block))
    colours = theme(name)
    for kind, paint in colours.paints.items():
        if kind in ("composite", "reason", "prune"):
            continue
        for part, value in zip(paint._fields, paint, strict=True):
            assert found.get(f"p-{kind}-{part}", colours.ink) == value, (kind, part)
    paints = colours.paints
    assert found["ink"] == colours.ink
    assert found["ink-2"] == colours.muted
    assert found["edge"] == colours.edge
    assert found["c-move"] == paints["composite"].line
    assert found["c-back"] == paints["prune"].line
    assert (found["warn-soft"], found["warn-line"], found["warn"]) == paints["reason"]


def test_another_theme_is_refused() -> None:
    with pytest.raises(ValueError, match="'light' or 'dark'"):
        theme("neon")


def test_a_contrast_is_that_of_wcag() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.478, abs=0.001)
    assert contrast("#123456", "#123456") == 1
