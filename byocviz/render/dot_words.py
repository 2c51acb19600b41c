"""The words on a Graphviz figure. All that is returned is escaped and can stand in an HTML-like
label."""

from __future__ import annotations

import html
import re

from byocviz.recording.printable import printable
from byocviz.recording.schema import Subgraph
from byocviz.render import figures
from byocviz.render.palette import Paint
from byocviz.render.pieces import short_op

NAME = 40
"""Characters of a name that are shown; a longer one is cut in its middle."""
_SHAPE = re.compile(r"\[([^\[\]]{0,200})\]")


def words(text: str, limit: int = NAME) -> str:
    """A string of the recording, of at most ``limit`` characters, as it stands in a label."""
    if len(text) > limit:
        # What is cut is dropped before it is looked at: a name can have a million characters.
        end = (limit - 3) * 2 // 5
        text = f"{text[: limit - 3 - end]}...{text[len(text) - end :]}"
    # A backslash is written as its number: outside HTML-like labels it starts an escape.
    return html.escape(printable(text), quote=True).replace("\\", "&#92;")


def colours(paint: Paint, line: str = "") -> str:
    """A node's attributes of colour, with another line where one is given."""
    return f'fillcolor="{paint.fill}", color="{line or paint.line}"'


def rule_name(name: str, backend: str) -> str:
    """A rule's name without its backend, which stands beside it."""
    return name[:1000].removeprefix(f"{backend}.") if backend else name


def shape(type_: str) -> str:
    """``float32[1, 3, 300, 300]`` as ``1×3×300×300``; escaped."""
    found = _SHAPE.search(type_[:400])
    if found is None:
        return words(type_, 24)
    inside = found.group(1)
    return words(re.sub(r",\s*", "×", inside), 28) if inside.strip() else "scalar"


def kinds(ops: dict[str, int], most: int = 4) -> str:
    """The operators of a subgraph, most frequent first; escaped."""
    order = sorted(ops.items(), key=lambda item: -item[1])
    said = [
        words(short_op(name), 24) + (f" ({number:,})" if number > 1 else "")
        for name, number in order[:most]
    ]
    return ", ".join(said + ["..."] * (len(order) > most))


def scalar(text: str) -> str:
    """A constant's value, of a float its first six digits; escaped."""
    try:
        return words(text, 12) if text.lstrip("-").isdecimal() else f"{float(text[:40]):g}"
    except ValueError:
        return words(text, 12)


def sub_figures(sub: Subgraph) -> tuple[str, str]:
    """What a subgraph holds, and what crosses its boundary."""
    work = f"{figures.plural(sum(sub.ops.values()), 'operator')}, {figures.short(sub.macs)} MACs"
    return work, f"{figures.data(sub.bytes_in)} in, {figures.data(sub.bytes_out)} out"
