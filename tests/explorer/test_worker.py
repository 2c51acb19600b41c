"""The thread that works: order, cancel, errors, and the kernel that answers meanwhile."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import Any

import pytest

from byocviz.explorer.worker import Worker


class Lab:
    def __init__(self) -> None:
        self.finished: list[tuple[str, BaseException | None]] = []
        self.ran: list[str] = []
        self.gate = threading.Event()
        self.began = threading.Event()
        self.worker = Worker(lambda name, error: self.finished.append((name, error)))

    def job(self, text: str) -> Any:
        return lambda: self.ran.append(text)

    def block(self) -> None:
        def wait() -> None:
            self.began.set()
            assert self.gate.wait(10)

        self.worker.submit("block", wait)
        assert self.began.wait(10)


def test_only_the_newest_of_a_name_runs() -> None:
    lab = Lab()
    lab.block()
    for number in range(5):
        lab.worker.submit("settings", lab.job(f"settings {number}"))
        lab.worker.submit("other", lab.job(f"other {number}"))
    assert lab.worker.busy
    assert lab.ran == []
    lab.gate.set()
    assert lab.worker.wait(10)
    assert lab.ran == ["settings 4", "other 4"]
    assert not lab.worker.busy


def test_cancel_drops_what_waits_and_asks_what_runs() -> None:
    lab = Lab()
    called = threading.Event()

    def work() -> None:
        lab.worker.on_cancel(called.set)
        lab.began.set()
        while not lab.worker.cancelled:
            pass

    lab.worker.submit("long", work)
    assert lab.began.wait(10)
    lab.worker.submit("next", lab.job("next"))
    lab.worker.cancel()
    assert lab.worker.wait(10)
    assert called.is_set()
    assert lab.ran == []
    lab.worker.submit("next", lab.job("next"))
    assert lab.worker.wait(10)
    assert lab.ran == ["next"]
    assert not lab.worker.cancelled


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(1), KeyboardInterrupt()])
def test_what_a_job_raises_is_told_and_the_thread_lives(error: BaseException) -> None:
    lab = Lab()

    def work() -> None:
        raise error

    lab.worker.submit("bad", work)
    lab.worker.submit("good", lab.job("good"))
    assert lab.worker.wait(10)
    assert lab.finished == [("bad", error), ("good", None)]
    assert lab.ran == ["good"]


def test_a_job_cannot_wait_for_itself() -> None:
    lab = Lab()
    lab.worker.submit("self", lambda: lab.worker.wait())
    assert lab.worker.wait(10)
    assert isinstance(lab.finished[0][1], RuntimeError)


def test_the_process_ends_in_order_while_a_job_is_under_way() -> None:
    """A daemon thread within TVM at that moment would bring the process down."""
    pytest.importorskip("tvm")
    script = (
        "import byocviz\n"
        "from tests.corpus import by_name\n"
        "case = by_name('chain')\n"
        "explorer = byocviz.explore(case.build(), case.backend)\n"
        "explorer.run_all()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "terminate called" not in done.stderr


def test_it_ends_when_it_is_told_to_and_forgets_what_it_did() -> None:
    lab = Lab()
    lab.block()
    thread = lab.worker._thread
    assert thread is not None
    lab.worker.submit("dropped", lab.job("dropped"))
    lab.worker.end("close", lab.job("close"))
    lab.gate.set()
    thread.join(10)
    assert not thread.is_alive()
    assert lab.ran == ["close"]
    lab.worker.submit("later", lab.job("later"))
    assert lab.worker.wait(10)
    assert lab.ran == ["close", "later"]


def test_what_is_told_of_is_not_waiting() -> None:
    seen: list[bool] = []
    worker = Worker(lambda name, error: seen.append(worker.waiting))
    gate, began = threading.Event(), threading.Event()

    def work() -> None:
        began.set()
        gate.wait(10)

    worker.submit("work", work)
    assert began.wait(10)
    assert worker.waiting
    gate.set()
    assert worker.wait(10)
    assert seen == [False]
    worker.end("close", lambda: None)
