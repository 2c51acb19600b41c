"""Names made safe to print: what a file holds may come from anyone."""

from __future__ import annotations

import unicodedata

# Cc: control, Cf: format (directional overrides, zero width), Cs: lone surrogates,
# Co/Cn: private and unassigned, Zl/Zp: line and paragraph separators.
_UNSAFE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def printable(text: str, *, lines: bool = False, limit: int = 0) -> str:
    """``text`` with every character that could move a cursor, change a colour, reverse the
    reading direction or hide written out as an escape (``\\x1b``).

    With ``lines``, line feeds and tabs stay. ``limit`` (characters; 0 for none) cuts the end off
    and shows that with "...".
    """
    if limit and len(text) > limit:
        text = text[: max(limit - 3, 0)] + "..."
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        char
        if (lines and char in "\n\t") or unicodedata.category(char) not in _UNSAFE
        else char.encode("unicode_escape").decode("ascii")
        for char in text
    )
