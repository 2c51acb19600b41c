"""A process for native libraries, so that what they do to it is not done to ours.

The child is a new interpreter (no fork: nothing of a GPU's state is inherited), `child.py`.
"""

from __future__ import annotations

import contextlib
import os
import queue
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from byocviz.building import child
from byocviz.building.errors import BuildError, Cancel

__all__ = ["Cancel", "Child", "Lost"]

_GLANCE = 0.05
"""Seconds between two looks at the clock, the child's memory and a request to stop."""

_TAIL = 8192
"""Bytes kept of what the child prints."""

_PREFIX = "byocviz-build-"
"""Of the folders that models and engines go through."""

_STALE = 24 * 3600.0
"""Seconds after which such a folder is one whose owner was killed."""


class Lost(Exception):
    """The child did not answer. ``str`` says what became of it; ``printed`` is its last output."""

    def __init__(self, what: str, mend: str, printed: str = "") -> None:
        self.mend, self.printed = mend, printed
        super().__init__(what)


class Child:
    """One child process, from `start` to `close`; as a context manager, from the first job on.

    ``folder`` is private to it and the user, and goes with it. ``module`` is what the child runs:
    it calls `child.serve`.
    """

    def __init__(
        self, cancel: Cancel | None = None, module: str = "byocviz.building.child"
    ) -> None:
        self._cancel = cancel or Cancel()
        self._module = module
        self._process: subprocess.Popen[bytes] | None = None
        self._answers: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._printed = bytearray()
        self._threads: list[threading.Thread] = []
        self._over = threading.Event()
        self._folder: Path | None = None

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    @property
    def folder(self) -> Path:
        """Where files for the child lie."""
        if self._folder is None:
            _sweep()
            self._folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        return self._folder

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def alive(self) -> bool:
        """Whether it runs, and was not killed from outside."""
        return self._process is not None and self._process.poll() is None

    def ask(
        self,
        message: Mapping[str, Any],
        time_limit: float | None,
        memory_limit: int | None = None,
        heard: Callable[[dict[str, Any]], None] | None = None,
    ) -> dict[str, Any]:
        """The answer to one message; starts the child where there is none.

        ``time_limit`` is in seconds, ``memory_limit`` in bytes of resident memory (where the
        system tells of it in /proc). ``heard`` is called with messages that come before the answer:
        those with a key ``heard``. Raises `Lost`, after which the child is gone, and
        `BuildCancelled`.
        """
        self._cancel.check()
        if self._process is None:
            self._start()
        process = self._process
        assert process is not None
        assert process.stdin is not None
        with contextlib.suppress(queue.Empty):  # answers that nobody asked for, as a fork gives
            while self._answers.get_nowait() is not None:
                pass
            self._answers.put(None)
        until = None if time_limit is None else time.monotonic() + time_limit
        with contextlib.suppress(OSError):  # gone already: found out below
            child.send(process.stdin, message)  # type: ignore[arg-type]
        try:
            while True:
                try:
                    answer = self._answers.get(timeout=_GLANCE)
                    if answer is None or heard is None or "heard" not in answer:
                        break
                    heard(answer)
                except queue.Empty:
                    pass
                self._cancel.check()
                if until is not None and time.monotonic() > until:
                    raise Lost(
                        f"took longer than the limit of {time_limit:g} s",
                        "Give a larger time_limit if the machine is slow or busy.",
                        self._tail(),
                    )
                if memory_limit is not None and _resident(process.pid) > memory_limit:
                    raise Lost(
                        f"took more memory than the limit of {memory_limit:,} bytes",
                        "Give a larger memory_limit if the machine has it.",
                        self._tail(),
                    )
            self._cancel.check()
            if answer is None:
                raise self._died(process)
            return answer
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the child and remove its folder."""
        process, self._process = self._process, None
        if process is not None:
            self._cancel.forget(self._kill)
            _kill(process)
            process.wait()
            self._over.set()
            for thread in self._threads:
                thread.join(1.0)
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()
        folder, self._folder = self._folder, None
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)

    def _start(self) -> None:
        if not sys.executable or getattr(sys, "frozen", False):
            raise BuildError(
                "This works in a process of its own, and this program has no Python "
                "interpreter to start (sys.executable).",
                "Build with isolate=False, explore with isolated=False.",
            )
        here = os.getcwd() if _exists() else ""
        paths = [os.path.abspath(p) if p else here for p in sys.path]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in paths if p)}
        self._answers = queue.SimpleQueue()
        self._printed = bytearray()
        started: queue.SimpleQueue[subprocess.Popen[bytes] | OSError] = queue.SimpleQueue()

        def live() -> None:
            # The child goes with the thread that starts it (PR_SET_PDEATHSIG). The one that asks
            # may end between two jobs; this one stays for as long as there is a child.
            try:
                # It works in an empty folder: ``-m`` looks there first.
                process = subprocess.Popen(
                    [sys.executable, "-m", self._module],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    cwd=folder,
                    env=environment,
                    start_new_session=True,  # an interrupt at the keyboard is for us alone
                )
            except OSError as error:
                started.put(error)
                return
            started.put(process)
            assert process.stdout is not None
            self._read(process.stdout)  # type: ignore[arg-type]
            over.wait()

        folder, over = self.folder, threading.Event()
        reads = threading.Thread(target=live, daemon=True)
        reads.start()
        process = started.get()
        if isinstance(process, OSError):
            raise BuildError(
                f"The process that builds engines does not start: {process}.",
                "Build with isolate=False.",
            ) from process
        self._process, self._over = process, over
        listens = threading.Thread(target=self._listen, args=(process.stderr,), daemon=True)
        listens.start()
        self._threads = [reads, listens]
        self._cancel.on_cancel(self._kill)

    def _kill(self) -> None:
        if self._process is not None:
            _kill(self._process)

    def _read(self, stream: BinaryIO) -> None:
        answers = self._answers
        try:
            while (message := child.receive(stream)) is not None:
                answers.put(message)
        except (OSError, ValueError):
            pass  # no message of ours: as if it had died
        answers.put(None)

    def _listen(self, stream: BinaryIO) -> None:
        printed = self._printed
        with contextlib.suppress(OSError, ValueError):
            while data := os.read(stream.fileno(), _TAIL):
                printed += data
                del printed[:-_TAIL]

    def _tail(self) -> str:
        return bytes(self._printed).decode(errors="replace")

    def _died(self, process: subprocess.Popen[bytes]) -> Lost:
        """What became of a child that closed its end."""
        try:
            code = process.wait(1.0)
        except subprocess.TimeoutExpired:
            return Lost("answered with something that is no answer", _SEND, self._tail())
        for thread in self._threads:
            thread.join(1.0)
        if code >= 0:
            return Lost(f"ended with the status {code}", _SEND, self._tail())
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = "a signal"
        if -code == getattr(signal, "SIGKILL", 9):
            return Lost(
                f"was killed ({name}, {-code}), as the system does where memory runs out",
                "Free memory, or build a smaller subgraph.",
                self._tail(),
            )
        return Lost(f"crashed ({name}, {-code})", _SEND, self._tail())


_SEND = "Send that file to the library's makers, or take another runtime."


def _kill(process: subprocess.Popen[bytes]) -> None:
    """The child and what it started."""
    with contextlib.suppress(OSError):
        if hasattr(os, "killpg"):
            # Its id stays taken, by it or as a zombie, until we wait for it.
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


def _sweep() -> None:
    """Removes the folders of builds whose process was killed: they may be large."""
    with contextlib.suppress(OSError):
        for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
            with contextlib.suppress(OSError):
                found = path.lstat()
                ours = os.name == "nt" or found.st_uid == os.getuid()
                if ours and stat.S_ISDIR(found.st_mode) and time.time() - found.st_mtime > _STALE:
                    shutil.rmtree(path, ignore_errors=True)


def _exists() -> bool:
    try:
        os.getcwd()
    except OSError:
        return False
    return True


def _resident(pid: int) -> int:
    """Bytes of memory that a process holds; 0 where the system does not tell."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
