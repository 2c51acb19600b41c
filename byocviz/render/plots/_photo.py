"""One picture with boxes, labels and scores on it. Imports matplotlib."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.patches import Rectangle
from matplotlib.patheffects import Normal, withStroke

from byocviz.recording.results import Found, Photo
from byocviz.render import figures
from byocviz.render.palette import PALETTE, contrast
from byocviz.render.plots._board import BODY, SMALL, Board, Ink
from byocviz.render.plots._pen import families
from byocviz.render.plots._pictures import Unreadable, decode

BOXES = 60
"""Boxes that are drawn in one picture, the best first."""
LABELS = 20
"""Of those, the ones with a label: more would hide the picture."""
LONG = 4.0
"""Proportions of a picture, at most: a longer one is drawn as if it were that, with margins."""
_INK, _PAPER = "#0b0f16", "#ffffff"
# Bright on a photo whatever the theme: the lines that the palette has for the dark one.
COLOURS = tuple(PALETTE["dark"].paints[name].line for name in ("r2", "r1", "r0", "r3", "r5", "r4"))

Area = tuple[float, float, float, float]
"""Left, bottom, right, top, in points of the board."""


def proportion(photo: Photo) -> float:
    """Width over height, of what is drawn."""
    return min(max(photo.width / photo.height, 1 / LONG), LONG)


class Pictures:
    """Decodes each picture once, however many variants are drawn on it."""

    def __init__(self) -> None:
        self._made: dict[int, Any] = {}

    def of(self, photo: Photo) -> Any:
        """An array, or the text that says why there is none."""
        if id(photo) not in self._made:
            try:
                self._made[id(photo)] = decode(photo.image)
            except Unreadable as error:
                self._made[id(photo)] = str(error)
        return self._made[id(photo)]


def colours_for(photos: Sequence[Photo]) -> dict[str, str]:
    """A colour a label, the same in every picture; they repeat, which the labels bear."""
    names = dict.fromkeys(
        found.label for photo in photos for one in photo.detected for found in one.found
    )
    return {name: COLOURS[number % len(COLOURS)] for number, name in enumerate(names)}


def draw(
    board: Board,
    photo: Photo,
    found: Sequence[Found],
    area: Area,
    pictures: Pictures,
    colours: dict[str, str],
) -> None:
    """A photo, its proportions kept, in the middle of ``area``."""
    left, bottom, right, top = area
    wide = min(right - left, (top - bottom) * proportion(photo))
    high = wide / proportion(photo)
    x, y = (left + right - wide) / 2, (bottom + top - high) / 2
    axes = board.axes(x, y, wide, high, "photo")
    axes.set_xticks([])
    axes.set_yticks([])
    board.rectangle(x, y, wide, high, Ink(board.colours.paints["none"].fill), zorder=0)
    taken: list[Area] = []
    picture = pictures.of(photo)
    if isinstance(picture, str):
        lines = board.pen.wrap(picture, wide - 8, SMALL, 2)
        begin = y + high / 2 + SMALL
        end = board.paragraph(x + 4, begin, lines, SMALL, colour=board.colours.muted)
        taken.append((x, end, x + wide, begin))
    else:
        axes.imshow(
            picture,
            extent=(0, photo.width, photo.height, 0),
            interpolation="antialiased",
            aspect="auto",
        )
    axes.set_xlim(0, photo.width)
    axes.set_ylim(photo.height, 0)
    scale = wide / photo.width, high / photo.height
    boxes = []
    for one in sorted(found, key=lambda one: -_score(one))[:BOXES]:
        inside = _inside(one, photo)
        if inside is not None:
            boxes.append((one, inside))
    for one, (x0, y0, x1, y1) in reversed(boxes):  # the best on top
        patch = Rectangle(
            (x0, y0),
            x1 - x0,
            y1 - y0,
            fill=False,
            edgecolor=colours[one.label],
            linewidth=2.0,
            path_effects=[withStroke(linewidth=3.6, foreground=_INK), Normal()],
            label="found",
        )
        axes.add_patch(patch)
    for one, (x0, y0, x1, y1) in boxes[:LABELS]:
        box = (
            x + x0 * scale[0],
            y + high - y1 * scale[1],
            x + x1 * scale[0],
            y + high - y0 * scale[1],
        )
        _tag(board, one, box, (x, y, x + wide, y + high), taken, colours[one.label])


def _score(one: Found) -> float:
    return one.score if math.isfinite(one.score) else -1.0


def _inside(one: Found, photo: Photo) -> Area | None:
    """The part of a box that lies in the photo; None where there is none."""
    if not all(map(math.isfinite, one.box)):
        return None
    left, top, right, bottom = one.box
    x0, x1 = (min(max(v, 0.0), photo.width) for v in (min(left, right), max(left, right)))
    y0, y1 = (min(max(v, 0.0), photo.height) for v in (min(top, bottom), max(top, bottom)))
    return (x0, y0, x1, y1) if x1 > x0 and y1 > y0 else None


def label(one: Found) -> tuple[str, str]:
    """What was found, and how sure that is."""
    return one.label.strip() or "(no name)", (
        f"{one.score:.3f}" if math.isfinite(one.score) else figures.UNKNOWN
    )


def _tag(board: Board, one: Found, box: Area, photo: Area, taken: list[Area], colour: str) -> None:
    """A label at a box's edge, inside the photo and clear of the others where that is possible."""
    pen = board.pen
    size = BODY if photo[2] - photo[0] > 200 else SMALL if photo[2] - photo[0] > 110 else 6.0
    name, score = label(one)
    room = photo[2] - photo[0] - 8
    name = pen.fit(name, max(min(room, 150) - pen.width(f" {score}", size, True), 1), size, True)
    text = f"{name} {score}"
    wide, high = pen.width(text, size, True) + 6, size * 1.45
    if wide > photo[2] - photo[0] or high > photo[3] - photo[1]:
        return
    spot = _spot(box, photo, taken, wide, high)
    if spot is None:
        return
    x, y = spot
    taken.append((x, y, x + wide, y + high))
    ink = max((_INK, _PAPER), key=lambda ink: contrast(ink, colour))
    board.rectangle(x, y, wide, high, Ink(colour, stroke=_INK, width=0.8), zorder=8)
    board.host.text(
        x + 3,
        y + size * 0.37,
        text,
        fontsize=size,
        color=ink,
        fontfamily=families(),
        fontweight="bold",
        parse_math=False,
        usetex=False,
        zorder=9,
    )


def _spot(
    box: Area, photo: Area, taken: list[Area], wide: float, high: float
) -> tuple[float, float] | None:
    """The lower left corner for a label: above its box, in it at the top, in it at the bottom,
    below it, then lower and lower along its side; None where every place is taken."""
    rows = [box[3], box[3] - high, box[1], box[1] - high]
    rows += [box[3] - high * n for n in range(2, 8)]
    for y in rows:
        for x in (box[0], box[2] - wide):
            x = min(max(x, photo[0]), photo[2] - wide)
            if not photo[1] <= y <= photo[3] - high + 1e-6:
                continue
            here = (x, y, x + wide, y + high)
            if not any(_overlap(here, other) for other in taken):
                return x, y
    return None


def _overlap(a: Area, b: Area) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
