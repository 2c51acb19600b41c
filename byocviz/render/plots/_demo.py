"""The figure for a slide: latency and detections side by side. Imports matplotlib."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from byocviz.errors import StepMissing
from byocviz.recording.compare import boundary_bytes
from byocviz.recording.printable import printable
from byocviz.recording.results import Detected, Photo
from byocviz.recording.schema import RecordingData
from byocviz.render import figures
from byocviz.render.palette import Theme
from byocviz.render.pieces import last_good
from byocviz.render.plots import _latency, _photo, _words
from byocviz.render.plots._agreement import together
from byocviz.render.plots._board import BODY, HEAD, SMALL, Board
from byocviz.render.plots._pen import LINE, Pen

LEAST = (640.0, 300.0)
"""Points of axes that are given."""
WIDTH = 960
"""Points; the height is 9/16 of it."""
PHOTOS = 4
_MARGIN = 26.0
_TITLE = 22.0
_GAP = 30.0
_PART = 0.58
"""Of the width, for the latency chart."""


def needed(recording: RecordingData) -> None:
    """Raises `StepMissing` where neither part of the figure is there."""
    latency = recording.results.latency
    if (latency is None or not latency.variants) and not _shown(recording):
        raise StepMissing(
            f"Recording {printable(recording.title, limit=200)!r} holds neither latency nor "
            "detections.",
            "Build it and call build.latency(inputs), or build.detect().",
        )


def _shown(recording: RecordingData) -> list[Photo]:
    return [photo for photo in recording.results.photos if photo.detected]


def size_for(
    recording: RecordingData, pen: Pen, width: float, colours: Theme
) -> tuple[float, float]:
    """The width and height of a board of its own."""
    return width, width * 9 / 16


def draw(board: Board, recording: RecordingData) -> None:
    """The whole board."""
    pen, colours = board.pen, board.colours
    x, width = _MARGIN, board.width - 2 * _MARGIN
    title = pen.wrap(recording.title.strip() or "Latency and detections", width, _TITLE, 1, True)
    top = board.paragraph(x, board.height - _MARGIN, title, _TITLE, bold=True)
    said = pen.wrap(_walk(recording), width, HEAD, 1)
    top = board.paragraph(x, top, said, HEAD, colour=colours.muted) - 12
    latency, photos = recording.results.latency, _shown(recording)
    both = latency is not None and latency.variants and photos
    part = width * _PART if both else width
    high = top - _MARGIN
    if latency is not None and latency.variants:
        chart = _latency.largest(recording, pen, part, high, colours)
        chart.draw(board, x, top, high)
    if photos:
        left = x + part + _GAP if both else x
        if both:
            at = left - _GAP / 2
            board.line([at, at], [_MARGIN, top])
        note = "" if both else _words.stand_in(recording.results.build)
        _found(board, photos, _best(recording, photos), note, left, top, x + width - left)


def _walk(recording: RecordingData) -> str:
    """What the flow made of the module, in a line."""
    step = last_good(recording)  # type: ignore[arg-type]  # it reads nothing but the steps
    if step is None or not step.profile.total:
        return ""
    profile = step.profile
    said = (
        f"{profile.offloaded_ops:,} of {figures.plural(profile.total, 'operator')} and "
        f"{figures.share(profile.coverage_macs)} of multiply-accumulates in "
        f"{figures.plural(profile.subgraphs, 'subgraph')} for "
        f"{recording.backend.name or 'the backend'}"
    )
    if not profile.subgraphs:
        return said
    return f"{said}; {figures.data(boundary_bytes(step))} cross the boundary"


def _best(recording: RecordingData, photos: Sequence[Photo]) -> str:
    """The variant whose detections are drawn: the fastest partitioned one, else the first."""
    ran = {one.variant: one for photo in reversed(photos) for one in reversed(photo.detected)}
    latency = recording.results.latency
    timed = [
        (ms, one.name)
        for one in (latency.variants if latency else [])
        if one.kind == "byoc" and not one.cannot and one.name in ran
        if (ms := _words.milliseconds(one.median)) is not None
    ]
    if timed:
        return min(timed)[1]
    return next((name for name, one in ran.items() if one.kind == "byoc"), next(iter(ran)))


def _found(
    board: Board,
    photos: list[Photo],
    best: str,
    note: str,
    x: float,
    top: float,
    width: float,
) -> None:
    pen, colours = board.pen, board.colours
    warn = colours.paints["reason"].ink
    top = board.paragraph(x, top, ["Detections"], HEAD + 2, bold=True)
    top = board.paragraph(
        x, top, pen.wrap(note, width, BODY, 2, True), BODY, bold=True, colour=warn
    )
    good, verdict = together(photos)
    lines = pen.wrap(verdict, width, BODY, 3, bold=not good)
    top = board.paragraph(
        x, top, lines, BODY, bold=not good, colour=colours.muted if good else warn
    )
    more = len(photos) - PHOTOS
    text = f"Boxes drawn: those of {best}" + (
        f"; {figures.plural(more, 'photo')} more not drawn" if more > 0 else ""
    )
    top = board.paragraph(x, top, pen.wrap(text, width, SMALL, 1), SMALL, colour=colours.muted) - 8
    photos = photos[:PHOTOS]
    pictures, shades = _photo.Pictures(), _photo.colours_for(photos)
    caption = SMALL * LINE + 6
    for photo, area in zip(photos, arranged(photos, x, _MARGIN, width, top, caption), strict=True):
        one = next((one for one in photo.detected if one.variant == best), None)
        _photo.draw(board, photo, one.found if one else [], area, pictures, shades)
        text = pen.fit(_named(photo, one), area[2] - area[0], SMALL)
        board.text(area[0], area[1] - SMALL - 2, text, SMALL, colour=colours.muted)


def _named(photo: Photo, one: Detected | None) -> str:
    name = photo.name.strip() or "(no name)"
    if one is None:
        return f"{name}: not run"
    return f"{name}: {one.note}" if one.note and not one.found else name


def arranged(
    photos: Sequence[Photo], x: float, bottom: float, width: float, top: float, caption: float
) -> list[_photo.Area]:
    """Where each photo goes: in rows, each filled by photos of one height, the way that shows
    most of them. ``caption`` is left free below each."""
    best: tuple[float, list[_photo.Area]] = (-1.0, [])
    for cuts in itertools.product((False, True), repeat=len(photos) - 1):
        rows: list[list[float]] = [[]]
        for photo, cut in zip(photos, (False, *cuts), strict=True):
            if cut:
                rows.append([])
            rows[-1].append(_photo.proportion(photo))
        highs = [(width - 10 * (len(row) - 1)) / sum(row) for row in rows]
        room = top - bottom - len(rows) * caption
        scale = max(min(room / sum(highs), 1.0), 0.02)
        shown = min(
            high * high * scale * scale * min(row) for row, high in zip(rows, highs, strict=True)
        )
        if shown > best[0]:
            best = (shown, _placed(rows, [high * scale for high in highs], x, top, caption))
    return best[1]


def _placed(
    rows: list[list[float]], highs: list[float], x: float, top: float, caption: float
) -> list[_photo.Area]:
    areas = []
    for row, high in zip(rows, highs, strict=True):
        at = x
        for proportion in row:
            areas.append((at, top - high, at + high * proportion, top))
            at += high * proportion + 10
        top -= high + caption
    return areas
