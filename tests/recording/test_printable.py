"""No character of a foreign name reaches the terminal as a command."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byocviz.recording.printable import printable
from tests.recording.strategies import HOSTILE


@given(st.text())
def test_nothing_unsafe_is_left(text: str) -> None:
    shown = printable(text)
    assert not any(unicodedata.category(char)[0] == "C" for char in shown)
    assert printable(shown) == shown


@given(st.text(), st.integers(4, 50))
def test_the_limit_holds_before_escaping(text: str, limit: int) -> None:
    assert printable(text, limit=limit).startswith(printable(text[: limit - 3]))


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile(text: str) -> None:
    shown = printable(text)
    for char in "\x1b\x07\x9b\u202e\u200b\r\n":
        assert char not in shown


def test_what_is_kept() -> None:
    assert printable("名前 ёж → ─") == "名前 ёж → ─"
    assert printable("a\n\tb", lines=True) == "a\n\tb"
    assert printable("a\nb") == "a\\nb"
    assert printable("\x1b[0m") == "\\x1b[0m"
    assert printable("abcdefgh", limit=6) == "abc..."
