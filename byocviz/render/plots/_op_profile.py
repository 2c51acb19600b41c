"""The operators of a step by kind, with where they run. Imports matplotlib."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from matplotlib.ticker import MaxNLocator, NullLocator

from byocviz.errors import ArgumentError, StepMissing
from byocviz.recording.printable import printable
from byocviz.recording.schema import RecordingData, Step
from byocviz.recording.tables import label
from byocviz.render import figures
from byocviz.render.palette import Theme
from byocviz.render.pieces import last_good, middle, short_op
from byocviz.render.plots._board import (
    BODY,
    HEAD,
    MARGIN,
    SMALL,
    TITLE,
    Board,
    Ink,
    Key,
    inks,
    key_rows,
    titled,
)
from byocviz.render.plots._pen import LINE, Pen, clean

LEAST = (340.0, 190.0)
"""Points of axes that are given."""
MOST = 40
"""Kinds that can have a bar of their own."""
_ROW = 21.0
_BAR = 13.0
_AXIS = 20.0
_GAP = 26.0


@dataclass
class Kind:
    """Operators of one kind; each pair is on the backend and on TVM."""

    name: str
    counts: tuple[int, int] = (0, 0)
    macs: tuple[int, int] = (0, 0)
    """Of those of its operators of which they are known."""
    unknown: bool = False
    """Whether the multiply-accumulates of some are not."""


@dataclass
class Kinds:
    step: Step
    rows: list[Kind]
    macs: int | None
    """Of all operators; None where some are unknown."""


def profile_of(recording: RecordingData, step: str | Step | None, top: int) -> Kinds:
    """What the plot shows; see `byocviz.render.plots.op_profile` for what is raised."""
    if isinstance(top, bool) or not isinstance(top, int) or not 1 <= top <= MOST:
        raise ArgumentError(
            f"top is {printable(repr(top), limit=80)}.",
            f"Give a whole number from 1 to {MOST}.",
        )
    found = _step(recording, step)
    kinds: dict[str, Kind] = {}
    for key, place in found.places.items():
        op = recording.ops[key]
        if op.kind != "operator":
            continue
        kind = kinds.setdefault(label(op), Kind(label(op)))
        away = place.on != "tvm"
        kind.counts = _add(kind.counts, away, 1)
        kind.macs = _add(kind.macs, away, op.macs or 0)
        kind.unknown = kind.unknown or op.macs is None
    order = sorted(kinds.values(), key=lambda kind: (-sum(kind.counts), kind.name))
    known = not any(kind.unknown for kind in order)
    total = sum(sum(kind.macs) for kind in order) if known else None
    rows, rest = order[:top], order[top:]
    if rest:
        other = Kind(figures.plural(len(rest), "other kind"))
        for kind in rest:
            for away, number, macs in zip((True, False), kind.counts, kind.macs, strict=True):
                other.counts = _add(other.counts, away, number)
                other.macs = _add(other.macs, away, macs)
            other.unknown = other.unknown or kind.unknown
        rows.append(other)
    return Kinds(found, rows, total)


def _add(pair: tuple[int, int], away: bool, value: int) -> tuple[int, int]:
    return (pair[0] + value * away, pair[1] + value * (not away))


def _step(recording: RecordingData, step: str | Step | None) -> Step:
    title = printable(recording.title, limit=200)
    if step is None:
        last = last_good(recording)  # type: ignore[arg-type]  # it reads nothing but the steps
        if last is None:
            raise StepMissing(
                f"Recording {title!r} holds no step that succeeded.", "Record the module again."
            )
        return last
    if isinstance(step, Step):
        found = step
    else:
        named = [one for one in recording.steps if one.name == step]
        if not named:
            names = ", ".join(printable(one.name, limit=60) for one in recording.steps[:20])
            raise StepMissing(
                f"No step {printable(str(step), limit=80)!r} in recording {title!r}; its steps: "
                f"{names or 'none'}.",
                "Ask for one of the steps it has.",
            )
        found = named[0]
    if found.error is not None:
        raise StepMissing(
            f"Step {printable(found.name, limit=80)!r} of {title!r} failed.",
            printable(found.error.mend, limit=500) or "Ask for a step before it.",
        )
    return found


def _heading(
    recording: RecordingData, kinds: Kinds, pen: Pen, width: float
) -> tuple[list[str], list[str]]:
    title = pen.wrap(titled("Operators", recording), width, TITLE, 2, bold=True)
    count = sum(sum(kind.counts) for kind in kinds.rows)
    away = sum(kind.counts[0] for kind in kinds.rows)
    text = (
        f"After {printable(kinds.step.name, limit=80)}: {away:,} of "
        f"{figures.plural(count, 'operator')} on {recording.backend.name or 'the backend'}"
    )
    return title, pen.wrap(text, width, BODY, 2)


def _keys(recording: RecordingData, colours: Theme) -> list[Key]:
    look = inks(colours)
    return [
        Key(look["byoc"], f"on {recording.backend.name or 'the backend'}"),
        Key(look["tvm"], "on TVM"),
    ]


def _fixed(recording: RecordingData, kinds: Kinds, pen: Pen, width: float, colours: Theme) -> float:
    title, how = _heading(recording, kinds, pen, width)
    keys = key_rows(_keys(recording, colours), pen, width) * SMALL * 1.7
    return (TITLE * len(title) + BODY * len(how)) * LINE + keys + HEAD * LINE + 12 + _AXIS


def size_for(
    recording: RecordingData, kinds: Kinds, pen: Pen, width: float, colours: Theme
) -> tuple[float, float]:
    """The width and height of a board of its own."""
    fixed = _fixed(recording, kinds, pen, width - 2 * MARGIN, colours)
    return width, fixed + max(len(kinds.rows), 1) * _ROW + 2 * MARGIN


def draw(board: Board, recording: RecordingData, kinds: Kinds) -> None:
    """The whole board."""
    pen, colours = board.pen, board.colours
    x, width = MARGIN, board.width - 2 * MARGIN
    title, how = _heading(recording, kinds, pen, width)
    high = max(board.height - 2 * MARGIN - _fixed(recording, kinds, pen, width, colours), 10.0)
    top = board.paragraph(x, board.height - MARGIN, title, TITLE, bold=True)
    top = board.paragraph(x, top, how, BODY, colour=colours.muted)
    top = board.keys(_keys(recording, colours), x, top - 2, width) - 6
    rows = kinds.rows
    if not rows:
        board.text(x, top - BODY * 2, "No operators.", BODY, colour=colours.muted)
        return
    each = high / len(rows)
    size = min(BODY, max(each * 0.6, 1.0))
    names = [clean(middle(short_op(kind.name[:1000]), 48)) for kind in rows]
    room = min(pen.widest(names, size), width * 0.3)
    wide = (width - room - 10 - _GAP) / 2
    left, right = x + room + 10, x + room + 10 + wide + _GAP
    top -= HEAD * LINE
    board.text(left, top + 5, pen.fit("operators", wide, SMALL, True), SMALL, bold=True)
    board.text(right, top + 5, pen.fit(_macs_head(kinds), wide, SMALL, True), SMALL, bold=True)
    base = top - high
    for number, name in enumerate(names):
        y = top - (number + 0.5) * each - size * 0.36
        board.text(left - 8, y, pen.fit(name, room, size), size, ha="right")
    panel = _Panel(board, base, high, each, size, wide)
    panel.draw(left, "operators", [(kind.counts, _counted(kind)) for kind in rows])
    panel.draw(right, "macs", [(kind.macs, _worked(kind, kinds.macs)) for kind in rows])


def _macs_head(kinds: Kinds) -> str:
    unit = "multiply-accumulates (MACs)"
    return f"{unit}, share of all" if kinds.macs else unit


def _counted(kind: Kind) -> str:
    away, here = kind.counts
    return f"{away:,} of {away + here:,}" if away and here else f"{away + here:,}"


def _worked(kind: Kind, total: int | None) -> str:
    if kind.unknown:
        return "?" if not sum(kind.macs) else f"{figures.short(sum(kind.macs))} and ?"
    macs = sum(kind.macs)
    if not macs:
        return "0"
    return f"{figures.short(macs)}, {figures.share(macs / total)}" if total else figures.short(macs)


def _tick(value: float) -> str:
    return figures.short(int(value)).replace(".00", "")


@dataclass
class _Panel:
    """Stacked bars with their labels; two stand side by side."""

    board: Board
    base: float
    high: float
    each: float
    size: float
    wide: float

    def draw(self, x: float, name: str, rows: list[tuple[tuple[int, int], str]]) -> None:
        board = self.board
        axes = board.axes(x, self.base, self.wide, self.high, name)
        most = max(sum(pair) for pair, _ in rows)
        limit = float(max(most, 1))
        for pair, said in rows:
            room = max(self.wide - board.pen.width(said, self.size) - 8, self.wide * 0.2)
            limit = max(limit, sum(pair) * self.wide / room)
        axes.set_xlim(0, limit)
        axes.set_ylim(self.high, 0)
        self._axis(axes, whole=name == "operators", known=most > 0)
        bar = min(_BAR, self.each * 0.7)
        for number, (pair, said) in enumerate(rows):
            y = (number + 0.5) * self.each
            start = 0
            for value, kind in zip(pair, ("byoc", "tvm"), strict=True):
                ink: Ink = board.inks[kind]
                if value:
                    board.rectangle(start, y - bar / 2, value, bar, ink, axes=axes, label=kind)
                start += value
            at = x + sum(pair) / limit * self.wide + 5
            board.text(at, self.base + self.high - y - self.size * 0.36, said, self.size, halo=True)

    def _axis(self, axes: Any, *, whole: bool, known: bool) -> None:
        axes.set_yticks([])
        # One label fewer than would fit: the last stands half beyond the axis.
        axes.xaxis.set_major_locator(MaxNLocator(max(int(self.wide / 70), 1), integer=whole))
        axes.xaxis.set_minor_locator(NullLocator())
        if not known:
            axes.set_xticks([])
        self.board.ticks(axes, "x", _tick, SMALL)
