"""A table that gives columns up where the width is short, rather than break figures in two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from byocviz.render.pieces import indented, plain_table, safe


@dataclass(frozen=True)
class Column:
    """``cells`` are one a row."""

    key: str
    justify: str
    cells: Sequence[str]
    named: bool = True
    """Whether its key stands above it."""

    @property
    def name(self) -> str:
        return self.key if self.named else ""


Less = tuple[str, Sequence[str]] | list[str]
"""Shorter cells for a column, by its key; or the keys of columns that are left out."""


class Fitted:
    """The columns, and what is given up, in order, until they fit. What was left out is named
    below the table."""

    def __init__(self, columns: Sequence[Column], less: Sequence[Less] = ()) -> None:
        self.columns = list(columns)
        self.less = list(less)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        cells = {column.key: column.cells for column in self.columns}
        left_out: list[str] = []
        todo = iter(self.less)
        while True:
            table = self._table(cells)
            fits = _width(table, console, options) <= options.max_width
            step = None if fits else next(todo, None)
            if step is None:
                break
            if isinstance(step, tuple):
                cells[step[0]] = step[1]
            else:
                left_out += step
                cells = {key: column for key, column in cells.items() if key not in left_out}
        yield table
        named = [c.name for c in self.columns if c.key in left_out and c.name]
        if named:
            yield indented(f"too narrow for: {', '.join(named)}")

    def width(self, console: Console, options: ConsoleOptions) -> int:
        """Columns of the terminal that all of it takes."""
        return _width(self._table({c.key: c.cells for c in self.columns}), console, options)

    def _table(self, cells: dict[str, Sequence[str]]) -> Table:
        shown = [column for column in self.columns if column.key in cells]
        table = plain_table((column.name, column.justify) for column in shown)
        for row in zip(*(cells[column.key] for column in shown), strict=True):
            table.add_row(*(_lines(cell) for cell in row))
        return table


def _width(table: Table, console: Console, options: ConsoleOptions) -> int:
    return Measurement.get(console, options.update(width=10_000), table).maximum


def _lines(cell: str) -> Text:
    """A cell of several lines, each as text that can only be text."""
    return Text("\n").join(safe(line) for line in cell.split("\n"))
