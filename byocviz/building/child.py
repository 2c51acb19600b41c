"""The process that native libraries build in: ``python -m byocviz.building.child``.

It is started by `isolate`, takes one job after the other from its standard input and answers each
on what was its standard output. Messages are a length (4 bytes, big-endian) and JSON; jobs, models
and engines lie in the folder that it works in. It imports no TVM.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import queue
import signal
import struct
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

LARGEST = 1 << 20
"""Bytes of a message; what is larger is none of ours."""

_LENGTH = struct.Struct(">I")


@dataclass(frozen=True)
class Job:
    """A subgraph as the child sees it: a `Subgraph`."""

    name: str
    nodes: Mapping[str, Sequence[int]]
    calls: Mapping[str, str]
    path: Path

    def serialized(self) -> bytes:
        return self.path.read_bytes()


def send(stream: BinaryIO, message: Mapping[str, Any]) -> None:
    """One message. Raises `OSError` where the other side is gone."""
    data = json.dumps(message).encode()
    stream.write(_LENGTH.pack(len(data)) + data)
    stream.flush()


def receive(stream: BinaryIO) -> dict[str, Any] | None:
    """The next message; None at the end. Raises `ValueError` for what is no message."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    if length > LARGEST:
        raise ValueError(f"a message of {length:,} bytes")
    data = stream.read(length)
    if len(data) < length:
        return None
    message = json.loads(data)
    if not isinstance(message, dict):
        raise ValueError("a message that is no object")
    return message


Answer = Callable[[Mapping[str, Any], Callable[[Mapping[str, Any]], None]], dict[str, Any]]
"""Answers one message; its second argument sends what is to be heard before."""


def main() -> None:
    state = _State()
    serve(lambda message, _: _answer(state, message))


def serve(answer: Answer) -> None:
    """Answer one message after the other until the parent is gone; does not return."""
    # Native libraries print to 1 and read from 0: those are for them, the copies are for us.
    asked = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    _expendable()
    faulthandler.enable()
    jobs: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    # A thread, so that a build is given up when the parent is gone.
    threading.Thread(target=_listen, args=(asked, jobs), daemon=True).start()
    while True:
        send(answers, answer(jobs.get(), lambda heard: send(answers, heard)))


def _expendable() -> None:
    """No core file, the first to go where memory runs out, and gone with the parent."""
    with contextlib.suppress(Exception):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    if sys.platform == "linux":
        with contextlib.suppress(Exception):
            import ctypes

            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _listen(stream: BinaryIO, jobs: queue.SimpleQueue[dict[str, Any]]) -> None:
    try:
        while (message := receive(stream)) is not None:
            jobs.put(message)
    except (OSError, ValueError):
        pass
    os._exit(0)


class _State:
    """What is kept between jobs."""

    def __init__(self) -> None:
        from byocviz.building.runtimes.base import Notes

        self.notes = Notes()
        self.runtimes: dict[tuple[str, str], Any] = {}

    def runtime(self, module: str, name: str) -> Any:
        if (module, name) not in self.runtimes:
            self.runtimes[module, name] = getattr(import_module(module), name)()
        return self.runtimes[module, name]


def _answer(state: _State, message: Mapping[str, Any]) -> dict[str, Any]:
    """Builds one engine; what goes wrong is the answer, too."""
    from byocviz.errors import ByocvizError

    try:
        number = int(message["number"])
        job = json.loads(Path(f"{number}.json").read_text(encoding="utf-8"))
        runtime = state.runtime(*job["runtime"])
        earlier = Path(f"{number}.timing")
        if earlier.exists():
            state.notes.timing = earlier.read_bytes()
        subgraph = Job(job["name"], job["nodes"], job["calls"], Path(f"{number}.onnx"))
        before = state.notes.timing
        began = time.perf_counter()
        plan = runtime.plan(subgraph, job["options"], state.notes)
        seconds = time.perf_counter() - began
        if plan is not None:
            if not isinstance(plan, bytes):
                raise TypeError(f"plan() gave {type(plan).__name__}, not bytes")
            Path(f"{number}.plan").write_bytes(plan)
        timing = state.notes.timing != before
        if timing:
            Path(f"{number}.times").write_bytes(state.notes.timing)
        return {"plan": plan is not None, "timing": timing, "seconds": seconds}
    except ByocvizError as error:
        return {
            "error": type(error).__name__,
            "message": error.message[:4000],
            "mend": error.mend[:4000],
        }
    except MemoryError:
        return {"error": "MemoryError"}
    except Exception as error:
        return {"error": "Exception", "message": f"{type(error).__name__}: {str(error)[:2000]}"}


if __name__ == "__main__":
    with contextlib.suppress(OSError):
        main()
