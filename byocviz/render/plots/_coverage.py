"""How much of a module is on the backend after each step. Imports matplotlib."""

from __future__ import annotations

from matplotlib.ticker import FixedLocator, NullLocator

from byocviz.errors import StepMissing
from byocviz.recording.compare import boundary_bytes
from byocviz.recording.printable import printable
from byocviz.recording.schema import RecordingData, Step
from byocviz.render import figures
from byocviz.render.palette import Theme
from byocviz.render.plots._board import (
    BODY,
    HEAD,
    MARGIN,
    SMALL,
    TITLE,
    Board,
    Key,
    inks,
    key_rows,
    titled,
)
from byocviz.render.plots._pen import LINE, Pen, clean

LEAST = (280.0, 210.0)
"""Points of axes that are given."""
MOST = 12
"""Steps that are drawn."""
_BARS = 190.0
"""Height of the bars in a figure of its own."""
_ROWS = ("operators offloaded", "operators in all", "MACs in all", "subgraphs", "boundary bytes")


def needed(recording: RecordingData) -> list[Step]:
    """What the plot shows. Raises `StepMissing` where there are no steps."""
    if not recording.steps:
        raise StepMissing(
            f"Recording {printable(recording.title, limit=200)!r} holds no step.",
            "Record the module: byocviz.record(mod).",
        )
    return list(recording.steps[:MOST])


def _backend(recording: RecordingData) -> str:
    return recording.backend.name or "the backend"


def _heading(recording: RecordingData, pen: Pen, width: float) -> tuple[list[str], list[str]]:
    title = pen.wrap(titled("Coverage", recording), width, TITLE, 2, bold=True)
    more = len(recording.steps) - MOST
    text = f"Share that {_backend(recording)} would run, after each step"
    if more > 0:
        text += f"; {figures.plural(more, 'step')} more {'is' if more == 1 else 'are'} not drawn"
    return title, pen.wrap(text, width, BODY, 2)


def _keys(colours: Theme) -> list[Key]:
    look = inks(colours)
    return [Key(look["byoc"], "of operators"), Key(look["macs"], "of multiply-accumulates (MACs)")]


def _fixed(recording: RecordingData, pen: Pen, width: float, colours: Theme) -> float:
    """The height of all that does not stretch."""
    title, how = _heading(recording, pen, width)
    keys = key_rows(_keys(colours), pen, width) * SMALL * 1.7
    text = TITLE * len(title) + BODY * len(how)
    return text * LINE + keys + 24 + HEAD * 1.8 + len(_ROWS) * SMALL * 1.6


def size_for(
    recording: RecordingData, pen: Pen, width: float, colours: Theme
) -> tuple[float, float]:
    """The width and height of a board of its own."""
    fixed = _fixed(recording, pen, width - 2 * MARGIN, colours)
    return width, fixed + _BARS + 2 * MARGIN


def draw(board: Board, recording: RecordingData) -> None:
    """The whole board."""
    steps, pen, colours = needed(recording), board.pen, board.colours
    x, width = MARGIN, board.width - 2 * MARGIN
    title, how = _heading(recording, pen, width)
    high = max(board.height - 2 * MARGIN - _fixed(recording, pen, width, colours), 10.0)
    top = board.paragraph(x, board.height - MARGIN, title, TITLE, bold=True)
    top = board.paragraph(x, top, how, BODY, colour=colours.muted)
    top = board.keys(_keys(colours), x, top - 2, width) - 22
    names = max(pen.widest(list(_ROWS), SMALL) + 12, pen.width("100%", SMALL) + 8)
    left = x + names
    each = (width - names) / len(steps)
    base = top - high
    axes = board.axes(left, base, width - names, high, "coverage")
    axes.set_xlim(0, len(steps))
    axes.set_ylim(0, 1)
    axes.set_xticks([])
    axes.yaxis.set_major_locator(FixedLocator([0, 0.25, 0.5, 0.75, 1]))
    axes.yaxis.set_minor_locator(NullLocator())
    board.ticks(axes, "y", lambda value: f"{value:.0%}", SMALL)
    board.line([left, left + width - names], [base, base])
    for number, step in enumerate(steps):
        _step(board, axes, number, step, left, base, each, high)
    y = base - HEAD * 1.8
    for row, said in enumerate(_ROWS):
        y -= SMALL * 1.6
        board.text(x, y + 4, said, SMALL, colour=colours.muted)
        for number, step in enumerate(steps):
            text = "" if step.error is not None else _cells(step)[row]
            size = _shrunk(pen, text, each - 4, SMALL)
            board.text(left + (number + 0.5) * each, y + 4, text, size, ha="center")


def _step(
    board: Board,
    axes: object,
    number: int,
    step: Step,
    left: float,
    base: float,
    each: float,
    high: float,
) -> None:
    pen, colours = board.pen, board.colours
    middle = left + (number + 0.5) * each
    name = clean(step.name.strip() or "(no name)", 40)
    size = max(_shrunk(pen, name, each - 4, BODY, bold=True), min(BODY, each / 6))
    name = pen.fit(name, each - 4, size, bold=True)
    board.text(middle, base - HEAD * 1.5, name, size, ha="center", bold=True)
    if step.error is not None:
        ink = colours.paints["reason"].ink
        for line, text in enumerate(("failed", step.error.type)):
            text = pen.fit(text, each - 4, SMALL)
            y = base + 8 + (1 - line) * SMALL * LINE
            board.text(middle, y, text, SMALL, ha="center", colour=ink, italic=True)
        return
    wide = 0.38
    shares = (step.profile.coverage_ops, step.profile.coverage_macs)
    for which, (share, kind) in enumerate(zip(shares, ("byoc", "macs"), strict=True)):
        start = number + 0.5 + (which - 1) * wide
        if share:
            board.rectangle(
                start + 0.02, 0, wide - 0.04, share, board.inks[kind], axes=axes, label=kind
            )
        text = figures.share(share)
        size = _shrunk(pen, text, wide * each - 1, SMALL)
        y = base + min(share or 0.0, 1.0) * high + 4
        board.text(left + (start + wide / 2) * each, y, text, size, ha="center", halo=True)


def _cells(step: Step) -> tuple[str, ...]:
    """The rows below a step, as `_ROWS` names them."""
    profile = step.profile
    return (
        figures.count(profile.offloaded_ops),
        figures.count(profile.total),
        figures.short(profile.macs),
        figures.count(profile.subgraphs),
        figures.data(boundary_bytes(step)),
    )


def _shrunk(pen: Pen, text: str, room: float, size: float, bold: bool = False) -> float:
    """A size at which a figure fits whole: a figure that is cut says something else."""
    wide = pen.width(text, size, bold)
    return size if wide <= room else max(size * room / wide, 1.0)
