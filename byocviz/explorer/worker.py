"""One thread for what takes long, so that the kernel answers meanwhile."""

from __future__ import annotations

import atexit
import threading
import traceback
from collections.abc import Callable
from typing import Any

Done = Callable[[str, BaseException | None], None]


class Worker:
    """Does one job after the other on a thread of its own.

    A job has a name; one that waits is replaced by the next of its name, so that of many changes
    made meanwhile only the newest is worked on. ``done`` is called on that thread after each job
    with its name, and what it raised or None.
    """

    def __init__(self, done: Done, name: str = "byocviz-explorer") -> None:
        self._done = done
        self._name = name
        self._lock = threading.Condition()
        self._waiting: dict[str, Callable[[], Any]] = {}
        self._now = ""
        self._thread: threading.Thread | None = None
        self._cancelled = threading.Event()
        self._on_cancel: Callable[[], None] | None = None
        self._working = False
        self._ending = False

    @property
    def now(self) -> str:
        """The name of the job under way; "" where none is."""
        return self._now

    @property
    def busy(self) -> bool:
        return bool(self._now or self._waiting)

    @property
    def waiting(self) -> bool:
        """Whether anything is still to be done; what ``done`` is being told of is not."""
        return self._working or bool(self._waiting)

    @property
    def cancelled(self) -> bool:
        """Whether the job under way was asked to end."""
        return self._cancelled.is_set()

    def submit(self, name: str, work: Callable[[], Any]) -> None:
        """Do this after what waits already; in place of a waiting job of the same name."""
        with self._lock:
            self._waiting.pop(name, None)
            self._waiting[name] = work
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
                # A thread inside TVM while the interpreter ends takes the process with it.
                atexit.register(self._end)
            self._lock.notify_all()

    def cancel(self) -> None:
        """Drop what waits, and ask the job under way to end; it looks between its parts."""
        with self._lock:
            self._waiting.clear()
            call = self._on_cancel
            if self._now:
                self._cancelled.set()
        if call is not None:
            call()

    def end(self, name: str, work: Callable[[], Any]) -> None:
        """Do this last: the thread ends where nothing waits any more."""
        self.cancel()
        self._ending = True
        self.submit(name, work)

    def _end(self) -> None:
        self.cancel()
        self.wait(60)

    def on_cancel(self, call: Callable[[], None] | None) -> None:
        """What `cancel` calls besides, during the job under way."""
        self._on_cancel = call

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until nothing is to be done; False where ``timeout`` seconds went by first."""
        if threading.current_thread() is self._thread:
            raise RuntimeError("a job cannot wait for itself")
        with self._lock:
            return self._lock.wait_for(lambda: not self.busy, timeout)

    def _run(self) -> None:
        while True:
            with self._lock:
                while not self._waiting:
                    if self._ending:
                        self._thread = None
                        atexit.unregister(self._end)
                        return
                    self._lock.wait()
                name = next(iter(self._waiting))
                work = self._waiting.pop(name)
                self._now = name
                self._working = True
                self._cancelled.clear()
            failed: BaseException | None = None
            try:
                work()
            except BaseException as error:  # the thread lives on, whatever a pass raises
                failed = error
            self._on_cancel = None
            self._working = False
            work = _nothing  # what it holds is not to live as long as this thread
            try:
                self._done(name, failed)
            except Exception:
                traceback.print_exc()
            with self._lock:
                self._now = ""
                self._lock.notify_all()


def _nothing() -> None:
    """In place of a job that is done."""
