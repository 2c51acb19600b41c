"""The latency comparison: a bar a variant. Imports matplotlib."""

from __future__ import annotations

import math
from typing import Any

from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator

from byocviz.recording.schema import RecordingData
from byocviz.render import figures
from byocviz.render.palette import Theme
from byocviz.render.plots import _words
from byocviz.render.plots._board import (
    BODY,
    HEAD,
    MARGIN,
    SMALL,
    TINY,
    TITLE,
    Board,
    Key,
    inks,
    key_rows,
    titled,
)
from byocviz.render.plots._latency_rows import Group, Row, drop_column, groups_of, needed, tell
from byocviz.render.plots._pen import LINE, Pen

__all__ = ["Chart", "draw", "needed", "size_for"]

LEAST = (280.0, 190.0)
"""Points of axes that are given."""
MOST = 48
"""Variants that are drawn; of more it is said how many there are."""
LOG_FROM = 20
"""The axis is logarithmic where the longest median is more than so many times the shortest."""
FAR = {True: 10.0, False: 2.0}
"""A first run so many times longer than the longest bar is not on the axis, logarithmic or not:
it would press the bars into a corner."""
SCALES = (1.5, 1.4, 1.3, 1.2, 1.1, 1.0)
"""By which a chart is drawn larger where there is room."""
_SEGMENTS = 12
"""Subgraphs whose times are told apart in a bar; more are drawn as one."""
_FULL, _PLAIN, _LOW = 47.0, 36.0, 27.0
"""Height of a row: with a line of details, without, and the least."""
_GROUP, _END, _COLUMN = 24.0, 10.0, 14.0
"""Height of a setting's heading; room behind the axis for a marker; between columns."""
_AXIS = 2 * SMALL * LINE + 10


class Chart:
    """The chart, measured for a width in points; `height` is what it would like to have.

    ``scale`` multiplies every size in it.
    """

    def __init__(
        self,
        recording: RecordingData,
        pen: Pen,
        width: float,
        colours: Theme,
        *,
        slide: bool = False,
        scale: float = 1.0,
    ) -> None:
        self.latency = needed(recording)
        self.pen, self.width, self.scale = pen, width, scale
        self.colours = colours
        self.inks = inks(colours)
        self.body, self.small, self.tiny = BODY * scale, SMALL * scale, TINY * min(scale, 1.15)
        self.head = HEAD + 2 if slide else TITLE
        build = recording.results.build
        title = "Latency" if slide else titled("Latency", recording)
        machine = self.latency.machine or (build.machine if build else {})
        facts = _words.facts(machine, self.latency.made)
        self.title = pen.wrap(title, width, self.head, 2, bold=True)
        self.stand_in = pen.wrap(_words.stand_in(build), width, BODY, 2, bold=True)
        self.how = pen.wrap(self._how(), width, SMALL, 2)
        self.note = pen.wrap(self.latency.note, width, SMALL, 2)
        self.footer = pen.wrap(facts, width, self.tiny, 2)
        self.groups = groups_of(self.latency, MOST)
        self.rows = [row for group in self.groups for row in group.rows]
        self.heads = tell(self.rows)
        self._columns()
        self.timed = [row for row in self.rows if row.ms is not None]
        medians = [row.ms for row in self.timed if row.ms is not None]
        self.log = bool(medians) and min(medians) > 0 and max(medians) > LOG_FROM * min(medians)
        self.low, self.limit = self._ends()
        self.row = (_FULL if any(row.details for row in self.rows) else _PLAIN) * scale
        self.keys = self._keys()

    def _how(self) -> str:
        held = self.latency
        if not held.repeat:
            return ""
        runs = f"Median of {figures.plural(held.repeat, 'run')} each, in turn"
        warm = f", after {figures.plural(held.warmup, 'run')} to warm up" if held.warmup else ""
        parts = any(one.parts for one in held.variants if not one.cannot)
        apart = f". Parts: {_words.APART}, so shares, not sums" if parts else ""
        return f"{runs}{warm}; shorter is better{apart}"

    def _columns(self) -> None:
        while True:
            cells = list(zip(*(row.cells for row in self.rows), strict=True))
            self.columns = [
                max(
                    self.pen.width(head, self.small), self.pen.widest(list(column), self.body, True)
                )
                + _COLUMN * self.scale
                for head, column in zip(self.heads, cells, strict=True)
            ]
            self.bars = self.width - sum(self.columns) - _END * self.scale
            if len(self.heads) == 1 or self.bars >= self.width * 0.25:
                return
            drop_column(self.heads, self.rows)

    def _ends(self) -> tuple[float, float]:
        """Both ends of the axis, in ms."""
        furthest = max((row.end for row in self.timed), default=0.0)
        if not furthest:
            return 0.0, 1.0
        far = furthest * FAR[self.log]
        firsts = [row.first for row in self.timed if row.first is not None and row.first <= far]
        limit = max([furthest, *firsts])
        if not self.log:
            return 0.0, limit * 1.03
        marks = [*firsts, *(mark for row in self.timed for mark in (row.ms, row.low) if mark)]
        least = min(mark for mark in marks if mark > 0)
        low = 10.0 ** math.floor(math.log10(least / 1.2))
        return low, low * (limit / low) ** 1.03

    def _keys(self) -> list[Key]:
        keys = []
        if any(self._split(row) for row in self.timed):
            keys = [Key(self.inks["byoc"], "in subgraphs"), Key(self.inks["tvm"], "on TVM")]
        if any(row.low is not None for row in self.timed):
            keys.append(Key("whisker", "p10 to p90"))
        firsts = [row.first for row in self.timed if row.first is not None]
        if any(first <= self.limit for first in firsts):
            keys.append(Key("o", "first run"))
        if any(first > self.limit for first in firsts):
            keys.append(Key(">", "first run, beyond the axis"))
        return keys

    def _split(self, row: Row) -> bool:
        """Whether a bar is drawn in parts: on a logarithmic axis lengths do not add up."""
        return not self.log and sum(row.parts[0]) + row.parts[1] > 0

    # -- where it goes

    @property
    def above(self) -> float:
        size = self.head * len(self.title) + BODY * len(self.stand_in)
        size += SMALL * (len(self.how) + len(self.note))
        return size * LINE + 10 + self.small * LINE

    @property
    def below(self) -> float:
        keys = key_rows(self.keys, self.pen, self.width, self.small) * self.small * 1.7
        axis = _AXIS * self.scale if self.timed else 6
        return axis + keys + len(self.footer) * self.tiny * LINE + 8 + self._more

    @property
    def _more(self) -> float:
        return SMALL * LINE if len(self.latency.variants) > len(self.rows) else 0.0

    @property
    def height(self) -> float:
        heads = sum(bool(group.setting) for group in self.groups) * _GROUP * self.scale
        return self.above + self.below + len(self.rows) * self.row + heads

    def _shrink(self, height: float) -> None:
        """Leaves out what matters least until a row fits."""
        for lines in (self.note, self.footer, self.how, self.keys):
            if self.above + self.below + _LOW + SMALL * LINE <= height:
                return
            lines.clear()
        self.title, self.stand_in = self.title[:1], self.stand_in[:1]

    def draw(self, board: Board, x: float, top: float, height: float) -> None:
        """Into the board from ``x`` and ``top``, in at most that height."""
        self._shrink(height)
        base, muted = top - height, board.colours.muted
        warn = board.colours.paints["reason"].ink
        top = board.paragraph(x, top, self.title, self.head, bold=True)
        top = board.paragraph(x, top, self.stand_in, BODY, bold=True, colour=warn)
        top = board.paragraph(x, top, self.how, SMALL, colour=muted)
        top = board.paragraph(x, top, self.note, SMALL, colour=muted) - 6
        top -= self.small * LINE
        at = x + self.bars + _END * self.scale
        for head, wide in zip(self.heads, self.columns, strict=True):
            at += wide
            board.text(at, top + 2, head, self.small, colour=muted, ha="right")
        groups, each = self._fitting(max(top - base - self.below, 10.0))
        heads = sum(bool(group.setting) for group in groups) * _GROUP * self.scale
        count = sum(len(group.rows) for group in groups)
        _Bars(self, board, x, top, count * each + heads, each).draw(groups)
        top -= count * each + heads
        if self.timed:
            kind = "ms, logarithmic axis" if self.log else "ms"
            board.text(x, top - 2 * self.small * LINE - 2, kind, self.small, colour=muted)
        top -= _AXIS * self.scale if self.timed else 6
        left = len(self.latency.variants) - count
        if left:
            text = f"... and {figures.plural(left, 'variant')} more, not drawn"
            top = board.paragraph(x, top, [text], SMALL, colour=muted)
        top = board.keys(self.keys, x, top, self.width, self.small)
        board.paragraph(x, top - 4, self.footer, self.tiny, colour=muted)

    def _fitting(self, room: float) -> tuple[list[Group], float]:
        """What is drawn, and how high each row is."""
        heads = sum(bool(group.setting) for group in self.groups) * _GROUP * self.scale
        each = min((room - heads) / len(self.rows), self.row)
        if each >= _LOW:
            return self.groups, each
        kept: list[Group] = []
        room -= 0.0 if self._more else SMALL * LINE
        for group in self.groups:
            head = _GROUP * self.scale if group.setting else 0.0
            count = min(max(int((room - head) // _LOW), 0 if kept else 1), len(group.rows))
            if count:
                kept.append(Group(group.setting, group.rows[:count]))
            room -= head + count * _LOW
            if count < len(group.rows):
                break
        return kept, _LOW


class _Bars:
    """The rows, in a rectangle of the board."""

    def __init__(
        self, chart: Chart, board: Board, x: float, top: float, high: float, each: float
    ) -> None:
        self.chart, self.board, self.x, self.each = chart, board, x, each
        self.base, self.high = top - high, high
        self.full = each >= chart.row
        scale = chart.scale if self.full else 1.0
        self.bar = (14.0 if self.full else 9.0) * scale
        self.size = chart.body if self.full else SMALL
        self.axes = board.axes(x, self.base, chart.bars, high, "latency")
        self.axes.set_ylim(0, high)
        self._axis()

    def draw(self, groups: list[Group]) -> None:
        board, chart, y = self.board, self.chart, self.high
        for group in groups:
            if group.setting:
                text = chart.pen.fit(group.setting, chart.bars - 4, chart.body, True)
                at = self.base + y - 16 * chart.scale
                board.text(self.x, at, text, chart.body, bold=True, halo=True)
                y -= _GROUP * chart.scale
                at = self.base + y + 3
                board.line([self.x, self.x + chart.width], [at, at])
            for row in group.rows:
                self._row(row, y)
                y -= self.each

    def _row(self, row: Row, top: float) -> None:
        board, chart, size = self.board, self.chart, self.size
        bold = row.variant.kind == "byoc"
        name = chart.pen.fit(row.name, chart.width, size, bold)
        board.text(self.x, self.base + top - size - 3, name, size, bold=bold, halo=True)
        y = top - size * LINE - 3 - self.bar / 2
        lines = 1
        if row.ms is not None:
            self._marks(row, y)
        elif row.variant.cannot:
            lines = self._cannot(f"cannot: {row.variant.cannot}", y)
        else:
            self._cannot("not timed", y)
        at = self.x + chart.bars + _END * chart.scale
        for cell, column in zip(row.cells, chart.columns, strict=True):
            at += column
            board.text(at, self.base + y - size * 0.36, cell, size, ha="right", bold=bold)
        if row.details and self.full and lines == 1:
            text = chart.pen.fit(row.details, chart.width, chart.small)
            at = self.base + y - self.bar / 2 - chart.small - 1
            board.text(self.x, at, text, chart.small, colour=board.colours.muted, halo=True)

    def _cannot(self, why: str, y: float) -> int:
        """What stands in place of a bar; returns its lines."""
        ink, size = self.board.colours.paints["reason"].ink, self.size
        lines = self.chart.pen.wrap(why, self.chart.bars * 0.96, size, 2 if self.full else 1)
        top = self.base + y + size * 0.64
        self.board.paragraph(self.x, top, lines, size, colour=ink, italic=True, halo=True)
        return len(lines)

    def _marks(self, row: Row, y: float) -> None:
        board, chart = self.board, self.chart
        self._fill(row, y)
        if row.low is not None and row.high is not None:
            board.whisker(self.axes, row.low, row.high, y)
        if row.first is not None and chart.low <= row.first <= chart.limit:
            board.dot(self.axes, row.first, y)
        elif row.first is not None and row.first > chart.limit:
            # Its time stands in the line below.
            board.dot(self.axes, chart.limit, y, ">")

    def _fill(self, row: Row, y: float) -> None:
        board, low = self.board, y - self.bar / 2
        look = board.inks.get(row.variant.kind, board.inks["runtime"])
        whole = row.ms or 0.0
        # From 0 on a logarithmic axis too, so that its width is the median there as well.
        patch = board.rectangle(
            0, low, whole, self.bar, look, axes=self.axes, label=f"variant {row.number}"
        )
        if not self.chart._split(row):
            return
        patch.set_visible(False)
        inside, between = row.parts
        # Shares of the median: the parts were timed in runs of their own.
        total = sum(inside) + between
        shown = inside if len(inside) <= _SEGMENTS else [sum(inside)]
        edge = look._replace(width=0.6) if len(shown) > 1 else look
        at = 0.0
        for ms, ink in [*((one, edge) for one in shown), (between, board.inks["tvm"])]:
            wide = ms / total * whole
            board.rectangle(at, low, wide, self.bar, ink, axes=self.axes, label="part")
            at += wide

    def _axis(self) -> None:
        axes, chart = self.axes, self.chart
        axes.set_yticks([])
        if not chart.timed:
            axes.set_xlim(0, 1)
            axes.set_xticks([])
            return
        powers, step = range(0), 1
        if chart.log:
            axes.set_xscale("log")
            powers = range(
                round(math.log10(chart.low)), math.floor(math.log10(chart.limit) + 1e-9) + 1
            )
            step = -(-len(powers) // 6)
            locator: Any = FixedLocator([10.0**power for power in powers[::step]])
        else:
            locator = MaxNLocator(5, steps=[1, 2, 2.5, 5, 10])
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xlim(chart.low, chart.limit)
        self.board.ticks(axes, "x", _words.tick, chart.small)
        if chart.log and step == 1:
            # Lines that crowd together show at a glance that the axis is logarithmic.
            between = (digit * 10.0**power for power in powers for digit in range(2, 10))
            for at in between:
                if at <= chart.limit:
                    self.board.grid_line(axes.axvline, at, 0.13)


def size_for(
    recording: RecordingData, pen: Pen, width: float, colours: Theme
) -> tuple[float, float]:
    """The width and height of a board of its own."""
    chart = Chart(recording, pen, width - 2 * MARGIN, colours)
    return width, chart.height + 2 * MARGIN


def draw(board: Board, recording: RecordingData) -> None:
    """The whole board."""
    chart = Chart(recording, board.pen, board.width - 2 * MARGIN, board.colours)
    chart.draw(board, MARGIN, board.height - MARGIN, board.height - 2 * MARGIN)


def largest(
    recording: RecordingData, pen: Pen, width: float, height: float, colours: Theme
) -> Chart:
    """The chart of a slide, drawn as large as fits."""
    charts = (Chart(recording, pen, width, colours, slide=True, scale=scale) for scale in SCALES)
    made = next(charts)
    for chart in charts:
        if made.height <= height and made.bars >= width * 0.38:
            break
        made = chart
    return made
