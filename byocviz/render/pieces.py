"""Small parts of the text renderings: every string of a recording goes through here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from byocviz.recording import Recording, Step
from byocviz.recording.printable import printable
from byocviz.render.prose import Prose

_NAME = 60
_LONG_WORD = re.compile(r"\w{48,}")


def last_good(recording: Recording) -> Step | None:
    """The last step that succeeded."""
    good = [step for step in recording.steps if step.error is None]
    return good[-1] if good else None


def short_op(name: str) -> str:
    """TVM's name of an operator without the dialect that all have."""
    return name.removeprefix("relax.")


def op_at(recording: Recording, key: int) -> str:
    """An operator with what it calls, and its variable in the IR text."""
    op = recording.ops[key]
    name = " ".join(filter(None, (short_op(op.name), op.callee)))
    return f"{name} ({op.var})" if op.var else name


def counted(counts: Mapping[str, int], top: int = 4) -> str:
    """``add 3, clip 2, sort, ...``: the first ``top``, in their order."""
    said = [
        printable(short_op(name), limit=_NAME) + (f" {number:,}" if number != 1 else "")
        for name, number in list(counts.items())[:top]
    ]
    return ", ".join(said + ["..."] * (len(counts) > top))


def first_line(text: str) -> str:
    """The sentence of a longer message: its first line, with the names that TVM makes of all
    that it merged cut in their middle."""
    stripped = text.strip()
    line = stripped.splitlines()[0] if stripped else ""
    return _LONG_WORD.sub(lambda found: middle(found[0], 40), line)


def safe(value: str, style: str = "") -> Text:
    """A string of a recording, as text that can only be text."""
    return Text(printable(value, limit=2000), style=style)


def indented(value: str, by: int = 2) -> Prose:
    """Text that can only be text, ``by`` columns in, on each line that it takes; code in it stays
    whole."""
    return Prose(value, by)


def more(number: int, noun: str, many: str = "") -> list[RenderableType]:
    """A line for what was left out, or nothing."""
    return [indented(f"... and {number:,} more {noun if number == 1 else many or noun + 's'}")] * (
        number > 0
    )


def plain_table(columns: Iterable[tuple[str, str]]) -> Table:
    """A table of columns, each a name and ``left`` or ``right``."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for name, justify in columns:
        table.add_column(name, justify=justify, overflow="fold")  # type: ignore[arg-type]
    return table


def middle(name: str, room: int) -> str:
    """A name of at most ``room`` characters: its end tells it from others, so it stays."""
    shown = printable(name)
    if len(shown) <= room:
        return shown
    end = (room - 3) // 2
    return f"{shown[: room - 3 - end]}...{shown[len(shown) - end :]}"


def fitting(counts: Mapping[str, int], room: int) -> str:
    """As many of the first operators as fit, but one at least."""
    for top in range(len(counts), 1, -1):
        if len(said := counted(counts, top)) <= room:
            return said
    return counted(counts, 1)
