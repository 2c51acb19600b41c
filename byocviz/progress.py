"""Progress of what takes longer than a second.

::

    with progress("Recording ssd") as p:
        for number, name in enumerate(names, 1):
            p.update(name, number, len(names))

In a terminal a line with a spinner and a bar appears after a second and is gone at the end. In a
notebook one line of output is rewritten. Elsewhere (a log, a pipe) a line goes to stderr for each
part that lasts longer than a second. Nothing is shown of what is faster, and nothing ever goes to
stdout.
"""

from __future__ import annotations

import re
import sys
import threading
import time
from types import TracebackType
from typing import Any, TextIO

from byocviz.recording.printable import printable

AFTER = 1.0
"""Seconds before anything is shown."""

_active = threading.local()


class Progress:
    """What goes on now; the base class shows nothing. Used as a context manager.

    ``update`` may come often: showing is left to the subclasses, and they show seldom.
    """

    def __init__(self, title: str) -> None:
        self.title = title
        self.text = ""
        self.done = 0
        self.total: int | None = None

    def step(self, text: str) -> None:
        """Names the part that goes on now."""
        self.update(text, self.done, self.total)

    def advance(self, done: int, total: int | None = None) -> None:
        """``done`` of ``total`` parts are done (None: it is not known how many there are)."""
        self.update(self.text, done, self.total if total is None else total)

    def update(self, text: str, done: int | None = None, total: int | None = None) -> None:
        """Names the part that goes on now, the ``done``-th of ``total``."""
        self.text = printable(text, limit=200)
        self.done = self.done if done is None else done
        self.total = self.total if total is None else total
        self._changed()

    def line(self) -> str:
        """Title, part and count in one line."""
        parts = [printable(self.title, limit=200)]
        if self.text:
            parts.append(self.text)
        count = f" ({self.done} of {self.total})" if self.total else ""
        return ": ".join(parts) + count

    def _changed(self) -> None:
        pass

    def _start(self) -> None:
        pass

    def _stop(self) -> None:
        pass

    def __enter__(self) -> Progress:
        self._outer = getattr(_active, "top", None)
        _active.top = self
        self._start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _active.top = self._outer
        self._stop()


class _Inner(Progress):
    """A progress within another: it shows as the outer one's text."""

    def __init__(self, title: str, outer: Progress) -> None:
        super().__init__(title)
        self._within = outer

    def _start(self) -> None:
        self._before = self._within.text
        self._within.step(self.line())

    def _changed(self) -> None:
        self._within.step(self.line())

    def _stop(self) -> None:
        self._within.step(self._before)


class _Watched(Progress):
    """Has a thread look on, for what lasts may not call `update` meanwhile."""

    def __init__(self, title: str, after: float, stream: TextIO) -> None:
        super().__init__(title)
        self._after = after
        self._stream = stream
        self._lock = threading.RLock()
        self._ended = threading.Event()

    def _start(self) -> None:
        threading.Thread(target=self._watch, name="byocviz-progress", daemon=True).start()

    def _watch(self) -> None:
        raise NotImplementedError

    def _stop(self) -> None:
        with self._lock:
            self._ended.set()


class _Lines(_Watched):
    """A line for each part that lasts longer than ``after`` seconds, and one every ten times
    that where many short parts take long together."""

    def _start(self) -> None:
        self._part_began = time.monotonic()
        self._said, self._said_at = "", self._part_began - 9 * self._after
        super()._start()

    def update(self, text: str, done: int | None = None, total: int | None = None) -> None:
        before = _uncounted(self.text)
        super().update(text, done, total)
        if _uncounted(self.text) != before:
            self._part_began = time.monotonic()

    def _watch(self) -> None:
        while not self._ended.wait(self._after / 4):
            with self._lock:
                now = time.monotonic()
                text = _uncounted(self.text)
                part = now - self._part_began >= self._after and text != self._said
                if (part or now - self._said_at >= 10 * self._after) and not self._ended.is_set():
                    self._said, self._said_at = text, now
                    _write(self._stream, f"{self.line()} ...\n")


class _Terminal(_Watched):
    """rich's live line, from ``after`` seconds on until the end."""

    _shown: Any = None
    _task: Any = None

    def _watch(self) -> None:
        if self._ended.wait(self._after):
            return
        from rich.console import Console
        from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bars

        with self._lock:
            if self._ended.is_set():
                return
            self._shown = Bars(
                SpinnerColumn("line"),
                TextColumn("{task.description}", markup=False),
                BarColumn(bar_width=20),
                TimeElapsedColumn(),
                console=Console(file=self._stream, highlight=False, markup=False, emoji=False),
                transient=True,
                # The caller's own prints and TVM's log lines go where they always went.
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._task = self._shown.add_task(self.line(), completed=self.done, total=self.total)
            self._shown.start()

    def _changed(self) -> None:
        with self._lock:
            if self._shown is not None:
                self._shown.update(
                    self._task, description=self.line(), completed=self.done, total=self.total
                )

    def _stop(self) -> None:
        with self._lock:
            self._ended.set()
            if self._shown is not None:
                self._shown.stop()
                self._shown = None


class _Notebook(Progress):
    """One output of the running cell, rewritten. Only from the caller's own thread, since what
    another thread displays can land in another cell."""

    def __init__(self, title: str, after: float) -> None:
        super().__init__(title)
        self._after = after
        self._handle: Any = None
        self._began = self._shown_at = 0.0

    def _start(self) -> None:
        self._began = time.monotonic()

    def _changed(self) -> None:
        now = time.monotonic()
        if now - self._began >= self._after and now - self._shown_at >= 0.2:
            self._shown_at = now
            self._show(self.line())

    def _stop(self) -> None:
        if self._handle is not None:
            self._show(
                f"{printable(self.title, limit=200)}: {time.monotonic() - self._began:.1f} s"
            )

    def _show(self, line: str) -> None:
        from IPython.display import display  # type: ignore[import-not-found,unused-ignore]

        bundle = {"text/plain": line}
        if self._handle is None:
            self._handle = display(bundle, raw=True, display_id=True)
        else:
            self._handle.update(bundle, raw=True)


def progress(
    title: str,
    enabled: bool | None = None,
    *,
    after: float = AFTER,
    stream: TextIO | None = None,
) -> Progress:
    """Shows how far something is that may last; see the module.

    ``enabled``: False for silence; None and True for the form that fits where it runs.
    ``after`` is in seconds; ``stream`` is stderr by default. Within another progress of the same
    thread it shows as that one's text.
    """
    outer = getattr(_active, "top", None)
    if enabled is False:
        return Progress(title)
    if outer is not None:
        return _Inner(title, outer)
    out = sys.stderr if stream is None else stream
    if out is None:  # pythonw, and services: there is nowhere to show it
        return Progress(title)
    if stream is None and _in_notebook():
        return _Notebook(title, after)
    if _is_terminal(out):
        return _Terminal(title, after, out)
    return _Lines(title, after, out)


def _uncounted(text: str) -> str:
    """A part without how far it is: what an inner progress says at each of its steps."""
    return re.sub(r" \(\d+ of \d+\)", "", text)


def _in_notebook() -> bool:
    """Whether a Jupyter kernel runs this (IPython in a terminal is a terminal)."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")


def _is_terminal(stream: TextIO) -> bool:
    import os

    try:
        return stream.isatty() and os.environ.get("TERM", "") not in ("dumb", "unknown")
    except (AttributeError, ValueError):
        return False


def _write(stream: TextIO, text: str) -> None:
    """Progress must not fail what it reports on: a closed or narrow stream is let be."""
    try:
        stream.write(text)
        stream.flush()
    except (OSError, ValueError):
        pass
