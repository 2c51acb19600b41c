"""Progress: silent while things are fast, and never in the way."""

from __future__ import annotations

import io
import os
import sys
import threading
import time
from collections.abc import Callable

import pytest

from byocviz.progress import Progress, progress


def _until(met: Callable[[], bool]) -> bool:
    """Waits (at most a minute) for another thread's doing."""
    end = time.monotonic() + 60
    while not met() and time.monotonic() < end:
        time.sleep(0.005)
    return met()


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _no_threads() -> bool:
    return not [one for one in threading.enumerate() if one.name == "byocviz-progress"]


@pytest.mark.parametrize("kind", [io.StringIO, _Terminal])
def test_what_is_fast_shows_nothing(kind: type[io.StringIO], monkeypatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    out = kind()
    with progress("fast", after=600, stream=out) as shown:
        for number in range(1000):
            shown.update(f"part {number}", number, 1000)
    assert out.getvalue() == ""
    assert _until(_no_threads)


def test_a_part_that_lasts_gets_one_line() -> None:
    out = io.StringIO()
    with progress("Recording", after=0.02, stream=out) as shown:
        shown.update("FuseOpsByPattern", 3, 7)
        assert _until(lambda: "FuseOpsByPattern" in out.getvalue())
        time.sleep(0.06)
        shown.step("MergeCompositeFunctions")
        assert _until(lambda: "Merge" in out.getvalue())
    lines = out.getvalue().splitlines()
    assert "Recording: FuseOpsByPattern (3 of 7) ..." in lines
    assert "Recording: MergeCompositeFunctions (3 of 7) ..." in lines
    assert all(line.isprintable() for line in lines)


def test_many_short_parts_show_that_it_goes_on() -> None:
    out = io.StringIO()
    with progress("Many", after=0.05, stream=out) as shown:
        numbers = iter(range(10**9))

        def shown_twice() -> bool:
            shown.update("", next(numbers), None)
            shown.step(f"part {shown.done}")
            return out.getvalue().count("\n") >= 2

        assert _until(shown_twice)


def test_a_terminal_gets_a_line_that_is_gone_at_the_end(monkeypatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    out = _Terminal()
    with progress("Recording [bold]x[/]", after=0.01, stream=out) as shown:
        shown.update("prepare\x1b[2J", 1, 7)
        assert _until(lambda: "prepare" in out.getvalue())
        shown.advance(2)
        assert _until(lambda: "(2 of 7)" in out.getvalue())
    assert "[bold]x[/]" in out.getvalue()
    assert "\x1b[2J" not in out.getvalue()
    assert "\x1b[2K" in out.getvalue().split("(2 of 7)")[-1]  # the line is erased
    assert _until(_no_threads)


def test_switched_off() -> None:
    out = io.StringIO()
    with progress("x", enabled=False, after=0, stream=out) as shown:
        shown.update("y", 1, 2)
        shown.step("z")
        shown.advance(2, 3)
    assert type(shown) is Progress
    assert (shown.text, shown.done, shown.total) == ("z", 2, 3)
    assert out.getvalue() == ""


def test_one_within_another_shows_as_its_text() -> None:
    out = io.StringIO()
    with progress("Outer", after=600, stream=out) as outer:
        outer.update("first", 1, 2)
        with progress("Inner", stream=out) as inner:
            inner.update("fold", 3, 9)
            assert outer.line() == "Outer: Inner: fold (3 of 9) (1 of 2)"
        assert outer.line() == "Outer: first (1 of 2)"
    with progress("After", after=600, stream=out) as after:
        assert after.line() == "After"


def test_an_exception_passes_and_ends_it() -> None:
    with pytest.raises(KeyError), progress("x", after=0.01, stream=io.StringIO()):
        raise KeyError("y")
    assert _until(_no_threads)


def test_a_closed_stream_does_no_harm() -> None:
    out = io.StringIO()
    with progress("x", after=0.01, stream=out) as shown:
        out.close()
        shown.step("y")
        time.sleep(0.05)


def test_no_stderr(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    with progress("x", after=0) as shown:
        shown.step("y")


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a pseudo-terminal")
def test_a_real_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    master, slave = os.openpty()
    with (
        open(slave, "w", encoding="utf-8") as stream,
        progress("Recording", after=0.01, stream=stream) as shown,
    ):
        shown.update("merge", 5, 7)
        read = b""
        while b"merge" not in read:
            read += os.read(master, 4096)
    os.close(master)
