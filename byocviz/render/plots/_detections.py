"""What each variant found, a picture each. Imports matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from byocviz.errors import ArgumentError, StepMissing
from byocviz.recording.printable import printable
from byocviz.recording.results import Detected, Photo
from byocviz.recording.schema import RecordingData
from byocviz.render import figures
from byocviz.render.palette import Theme
from byocviz.render.plots import _photo, _words
from byocviz.render.plots._agreement import agrees, sentence, together
from byocviz.render.plots._board import BODY, MARGIN, SMALL, TITLE, Board, titled
from byocviz.render.plots._pen import LINE, Pen

LEAST = (240.0, 220.0)
"""Points of axes that are given."""
PHOTOS, VARIANTS = 6, 5
"""Pictures that are drawn down and across."""
_GAP = 14.0
_ROW = 36.0
"""The least height of a picture."""
_LINES = 3
"""Of the sentence below a picture."""
_CELL = {1: 420.0, 2: 320.0, 3: 250.0, 4: 215.0}


@dataclass
class Chosen:
    """What is drawn, and how much is not."""

    photos: list[Photo]
    names: list[str]
    left: int = 0

    def below(self, photo: Photo, pen: Pen, width: float) -> float:
        """The height of what stands below a row of pictures."""
        lines = [_said(photo, one, pen, self.cell(width))[0] for one in self.of(photo)]
        return SMALL * LINE * max(map(len, lines), default=0) + 10

    def of(self, photo: Photo) -> list[Detected | None]:
        """What each variant found in a photo; None where it did not run on it."""
        by_name = {one.variant: one for one in reversed(photo.detected)}
        return [by_name.get(name) for name in self.names]

    def cell(self, width: float) -> float:
        """The width of a picture, where all are ``width`` wide."""
        count = max(len(self.names), 1)
        return (width - _GAP * (count - 1)) / count


def _photos(recording: RecordingData) -> list[Photo]:
    return recording.results.photos


def needed(recording: RecordingData) -> list[Photo]:
    """The photos. Raises `StepMissing` where there are none."""
    photos = _photos(recording)
    if not any(photo.detected for photo in photos):
        raise StepMissing(
            f"Recording {printable(recording.title, limit=200)!r} holds no detections.",
            "Build it and call build.detect(photos); without photos it takes the bundled ones.",
        )
    return photos


def chosen(
    recording: RecordingData,
    photo: str | Sequence[str] | None,
    variants: str | Sequence[str] | None,
) -> Chosen:
    """What is drawn; see `byocviz.render.plots.detections` for what is raised."""
    photos = needed(recording)
    wanted = _pick("photo", photo, [one.name for one in photos], recording)
    there = list(dict.fromkeys(one.variant for shown in photos for one in shown.detected))
    names = _pick("variant", variants, there, recording)
    photos = [one for one in photos if one.name in wanted]
    left = max(len(photos) - PHOTOS, 0) * len(names)
    left += max(len(names) - VARIANTS, 0) * min(len(photos), PHOTOS)
    return Chosen(photos[:PHOTOS], names[:VARIANTS], left)


def _pick(
    what: str, asked: str | Sequence[str] | None, there: list[str], recording: RecordingData
) -> list[str]:
    if asked is None:
        return there
    names = [asked] if isinstance(asked, str) else asked
    if not isinstance(names, (list, tuple)) or not names or not all(map(_is_text, names)):
        raise ArgumentError(
            f"A {what} is asked for by its name, or several in a list.",
            "Leave it out for all of them.",
        )
    for name in names:
        if name not in there:
            known = ", ".join(repr(printable(one, limit=60)) for one in there[:20])
            raise StepMissing(
                f"No {what} {printable(name, limit=80)!r} in recording "
                f"{printable(recording.title, limit=200)!r}; it has {known}.",
                f"Ask for one of these, or leave {what} out for all.",
            )
    return list(dict.fromkeys(names))


def _is_text(name: object) -> bool:
    return isinstance(name, str)


def _heading(
    recording: RecordingData, held: Chosen, pen: Pen, width: float
) -> list[tuple[list[str], float, str]]:
    """Lines with their size and kind."""
    note = _words.stand_in(recording.results.build)
    left = f"{figures.plural(held.left, 'picture')} more are not drawn" if held.left else ""
    good, verdict = together(held.photos)
    made = [
        (pen.wrap(titled("Detections", recording), width, TITLE, 2, bold=True), TITLE, "title"),
        (pen.wrap(note, width, BODY, 2, bold=True), BODY, "warn"),
        (pen.wrap(verdict, width, BODY, 2, not good), BODY, "plain" if good else "warn"),
        (pen.wrap(left, width, SMALL, 1), SMALL, "plain"),
    ]
    return [entry for entry in made if entry[0]]


def _above(recording: RecordingData, held: Chosen, pen: Pen, width: float) -> float:
    lines = _heading(recording, held, pen, width)
    return sum(len(texts) * size * LINE for texts, size, _ in lines) + 8 + BODY * LINE + 6


def size_for(
    recording: RecordingData, held: Chosen, pen: Pen, width: float, colours: Theme
) -> tuple[float, float]:
    """The width and height of a board of its own."""
    count = max(len(held.names), 1)
    width = width or max(count * _CELL.get(count, 190.0) + (count - 1) * _GAP + 2 * MARGIN, 480.0)
    inside = width - 2 * MARGIN
    cell = held.cell(inside)
    rows = sum(min(cell / _photo.proportion(photo), cell) for photo in held.photos)
    rows += sum(held.below(photo, pen, inside) + _GAP for photo in held.photos)
    return width, _above(recording, held, pen, inside) + rows + 2 * MARGIN


def draw(board: Board, recording: RecordingData, held: Chosen) -> None:
    """The whole board."""
    pen, colours = board.pen, board.colours
    x, width = MARGIN, board.width - 2 * MARGIN
    held = _fitting(board, recording, held, width)
    top = board.height - MARGIN
    for lines, size, kind in _heading(recording, held, pen, width):
        ink = {"title": "", "warn": colours.paints["reason"].ink}.get(kind, colours.muted)
        top = board.paragraph(x, top, lines, size, bold=kind != "plain", colour=ink)
    top -= 8 + BODY * LINE + 6
    cell = held.cell(width)
    for number, name in enumerate(held.names):
        text = pen.fit(name.strip() or "(no name)", cell, BODY, bold=True)
        board.text(x + number * (cell + _GAP), top + 6, text, BODY, bold=True)
    natural = [min(cell / _photo.proportion(photo), cell) for photo in held.photos]
    below = [held.below(photo, pen, width) + _GAP for photo in held.photos]
    room = top - MARGIN - sum(below)
    scale = max(min(room / sum(natural), 1.0), 0.02)
    pictures, shades = _photo.Pictures(), _photo.colours_for(held.photos)
    for photo, high, under in zip(held.photos, natural, below, strict=True):
        high *= scale
        for number, one in enumerate(held.of(photo)):
            left = x + number * (cell + _GAP)
            area = (left, top - high, left + cell, top)
            _photo.draw(board, photo, one.found if one else [], area, pictures, shades)
            lines, differs = _said(photo, one, pen, cell)
            ink = colours.paints["reason"].ink if differs else colours.muted
            board.paragraph(left, top - high - 3, lines, SMALL, colour=ink, bold=differs)
        top -= high + under


def _fitting(board: Board, recording: RecordingData, held: Chosen, width: float) -> Chosen:
    """As many rows as given axes have room for; one at least."""
    while len(held.photos) > 1:
        room = board.height - 2 * MARGIN - _above(recording, held, board.pen, width)
        rows = sum(held.below(photo, board.pen, width) + _GAP + _ROW for photo in held.photos)
        if rows <= room:
            break
        held = Chosen(held.photos[:-1], held.names, held.left + len(held.names))
    return held


def _said(photo: Photo, one: Detected | None, pen: Pen, room: float) -> tuple[list[str], bool]:
    """The lines below a picture, and whether they tell of a difference."""
    text = sentence(photo, one) if one is not None else "not run on this photo"
    differs = one is not None and agrees(photo, one) is False
    return pen.wrap(text, room, SMALL, _LINES, bold=differs), differs
