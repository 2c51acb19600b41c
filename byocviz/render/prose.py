"""Sentences that are broken into lines, but not in the middle of the code that they quote."""

from __future__ import annotations

import re

from rich.cells import cell_len, chop_cells
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.text import Text

from byocviz.recording.printable import printable

GLUE, _MARK = "\ue000", "\ue001"
"""Stand for a blank that no line ends at, and before code; `printable` lets none through."""
_LONGEST = 400
"""Characters of code that are kept whole."""
_START = re.compile(r"[A-Za-z_@][\w.]*(?=[(\[])|\.[A-Za-z_][\w.]*(?=[(\[])")
_PAIRS = {"(": ")", "[": "]", "{": "}"}
_MORE = re.compile(r"[\w.]*[(\[]")
_ASSIGNED = re.compile(r" = (?=[A-Za-z_])")


def whole_code(text: str) -> str:
    """The text with `GLUE` for the blanks within calls and subscripts, and round a ``=`` that
    joins two, and a mark before each: what is copied from a terminal then runs."""
    parts: list[str] = []
    at = 0
    for found in _START.finditer(text):
        if found.start() < at:
            continue
        end = _end(text, found.end())
        if end is None:
            continue
        joint = _ASSIGNED.match(text, end)
        after = _START.match(text, joint.end()) if joint else None
        if after is not None:
            end = _end(text, after.end()) or end
        parts += [text[at : found.start()], _MARK, text[found.start() : end].replace(" ", GLUE)]
        at = end
    return "".join(parts) + text[at:]


def _end(text: str, start: int) -> int | None:
    """Where the calls and subscripts end that begin at ``start``; None where one is not closed."""
    open_: list[str] = []
    closed: int | None = None
    quote, skip = "", start
    for at in range(start, min(len(text), start + _LONGEST)):
        char = text[at]
        if at < skip:
            continue  # a name between two calls
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in _PAIRS:
            open_.append(_PAIRS[char])
        elif open_ and char == open_[-1]:
            open_.pop()
            if not open_:
                closed = at + 1
                more = _MORE.match(text, closed)
                if more is None:
                    return closed
                skip = more.end() - 1
        elif char in ")]}":
            return closed
    return closed


def lines(text: str, width: int) -> list[str]:
    """The text in lines of at most ``width`` columns, broken at blanks. Code that is longer than a
    line stays whole, any other word is cut."""
    done: list[str] = []
    line = ""
    for word in whole_code(text).split(" "):
        plain = word.replace(_MARK, "")
        if line and cell_len(line) + 1 + cell_len(plain) > width:
            done.append(line)
            line = ""
        line = f"{line} {plain}" if line else plain
        if _MARK not in word and cell_len(line) > width:
            *cut, line = chop_cells(line, width)
            done += cut
    return [one.replace(GLUE, " ").rstrip() for one in (*done, line)]


class Prose:
    """A string of a recording, some columns in on each line that it takes."""

    def __init__(self, value: str, by: int = 0) -> None:
        self.text = printable(value, limit=2000)
        self.by = by

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in lines(self.text, max(options.max_width - self.by, 10)):
            yield Text(" " * self.by + line, no_wrap=True, overflow="ignore")

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        inner = Measurement.get(console, options, Text(self.text))
        return Measurement(inner.minimum + self.by, inner.maximum + self.by)
