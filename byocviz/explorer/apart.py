"""Runs the steps in a process of its own: one that crashes, or is cancelled, takes nothing along.

The child keeps a `Session` of its own from step to step; what each step gave comes back as a
``.byocviz`` recording of that step alone. A child that was lost is replaced by a new one, which
runs the steps before again, unseen: they are in the recording, and stay.
"""

from __future__ import annotations

import contextlib
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from byocviz import errors
from byocviz.building.isolate import Cancel, Child, Lost
from byocviz.errors import ByocvizError
from byocviz.explorer.given import CannotTravel, Given, read_module
from byocviz.recording import Recording
from byocviz.recording.file import load
from byocviz.recording.printable import printable
from byocviz.recording.schema import STEPS, Blocker

if TYPE_CHECKING:
    from byocviz.explorer.here import Tell
    from byocviz.explorer.settings import Resolved, Settings

CHILD = "byocviz.explorer.child"


class Stopped(ByocvizError):
    """Work that was cancelled. The steps before it stay."""


class PassLost(ByocvizError, RuntimeError):
    """TVM's passes crashed, or took too long, in a process of their own."""


class Asked(Cancel):
    """A request to stop that is asked for: ``cancelled`` says whether there is one."""

    def __init__(self, cancelled: Callable[[], bool]) -> None:
        super().__init__()
        self._asked = cancelled

    def check(self) -> None:
        """Raises `Stopped` where there was a request."""
        if self._asked():
            raise Stopped("Cancelled.", "What ran before stays; run it again to go on.")


def raise_again(answer: Mapping[str, Any]) -> None:
    """Raises what the child could not do as it would have been raised here."""
    kind = answer.get("error")
    if kind is None:
        return
    message, mend = str(answer.get("message", "")), str(answer.get("mend", ""))
    known = getattr(errors, str(kind), None)
    if isinstance(known, type) and issubclass(known, ByocvizError):
        raise known(message, mend)
    raise PassLost(message, mend)


class Apart:
    """The same as `Here`, in a child process. ``time_limit`` is in seconds, for one step."""

    def __init__(
        self,
        given: Given,
        settings: Settings,
        resolved: Resolved,
        tell: Tell,
        cancelled: Callable[[], bool],
        time_limit: float,
    ) -> None:
        self._given, self._tell, self._time_limit = given, tell, time_limit
        self._settings, self._resolved = settings, resolved
        self._lock = threading.RLock()
        self._child = Child(Asked(cancelled), CHILD)
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._begin: dict[str, Any] = {}
        self._runs = [0] * len(STEPS)
        """The number of each step's last run: a module belongs to one."""
        self._run = 0
        self._modules = _Modules(self, {})

    def change(self, settings: Settings, resolved: Resolved, at: int) -> None:
        """Other settings, which touch the step of that number first."""
        with self._lock:
            self._settings, self._resolved = settings, resolved
            for number in range(at, len(STEPS)):
                self._runs[number] = 0

    def past(self) -> Any:
        """What `back` takes to undo changes that come after this."""
        return list(self._runs)

    def back(self, settings: Settings, resolved: Resolved, at: int, past: Any) -> None:
        """Undo a change, which touched the step of that number first."""
        with self._lock:
            self._settings, self._resolved = settings, resolved
            self._runs = list(past)  # what runs again gives the same

    def step(self, at: int) -> Recording:
        """The record of the step of that number alone; the steps before run where they did not.

        Raises `PassLost` where the process is lost, `Stopped`, and `CannotTravel` for what the
        child cannot be given.
        """
        with self._lock:
            name = STEPS[at]
            answer = self._ask({"do": "step", "step": name}, f"The step {name}", at)
            made = load(self._child.folder / "step.byocviz")
            self._run += 1
            for number in range(at):  # the ones before it ran as well
                self._runs[number] = self._runs[number] or self._run
            self._runs[at] = self._run
            live = made.__dict__
            names = [STEPS[n] for n in range(at + 1) if self._runs[n]]
            live["modules"] = _Modules(self, {n: self._runs[STEPS.index(n)] for n in names})
            live["modules"].loaded.update(self._modules.still(live["modules"]))
            self._modules = live["modules"]
            if made.steps and made.steps[-1].error is not None:
                del live["modules"].runs[name]
            if "prunable" in answer:
                live["prunable"] = frozenset(map(str, answer["prunable"]))
            return made

    def blockers(self) -> list[Any]:
        """What one more rule would change."""
        with self._lock:
            self._ask({"do": "blockers"}, "The search for blockers", len(STEPS))
            data = (self._child.folder / "blockers.json").read_bytes()
            return msgspec.json.decode(data, type=list[Blocker])

    def module_file(self, step: str) -> Path:
        """A file with the module of a step, as TVM's JSON; it goes with the child."""
        with self._lock:
            self._ask({"do": "module", "step": step}, f"The module of {step}", STEPS.index(step))
            return self._child.folder / "asked.json"

    def module(self, step: str, run: int) -> Any:
        """The module of a step's run. Raises KeyError where another run came after."""
        with self._lock:
            if self._runs[STEPS.index(step)] != run:
                raise KeyError(step)
            return read_module(self.module_file(step))

    def valid(self, step: str, run: int) -> bool:
        """Whether that is the step's last run."""
        return self._runs[STEPS.index(step)] == run

    @property
    def pid(self) -> int | None:
        """Of the child, where there is one."""
        return self._child.pid

    def close(self) -> None:
        """End the child."""
        self._child.close()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # the interpreter may be ending
            self._child.close()

    def _ask(self, job: dict[str, Any], what: str, at: int) -> dict[str, Any]:
        """The child's answer under the settings as they are; starts one where there is none."""
        if not isinstance(self._settings.backend, str):
            raise CannotTravel("a backend that was given as an object, not by name")
        if not self._child.alive:
            self._child.close()  # killed from outside, while nothing was asked of it
            self._start(at)
        answer = self._answer(job, what)
        names = answer.get("rules")
        if names is not None and names != [rule.name for rule in self._resolved.rules]:
            raise CannotTravel("a backend whose rules were registered in this one alone")
        return answer

    def _start(self, at: int) -> None:
        self._tell("starting a process for the passes", at, len(STEPS))
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="byocviz-explore-")
            self._begin = {"do": "begin", **self._given.write(Path(self._folder.name))}
        self._answer(self._begin, "Reading the module")

    def _answer(self, job: dict[str, Any], what: str) -> dict[str, Any]:
        answer = self._send({**job, "settings": self._settings.plain()}, what)
        if answer.get("error") == "BackendError":  # it is known here
            raise CannotTravel("a backend that is known in this one alone")
        raise_again(answer)
        return answer

    def _send(self, message: dict[str, Any], what: str) -> dict[str, Any]:
        def heard(said: dict[str, Any]) -> None:
            text, done, total = said["heard"]
            self._tell(str(text), int(done), int(total))

        try:
            return self._child.ask(message, self._time_limit, heard=heard)
        except Lost as lost:
            tail = last_words(lost.printed)
            raise PassLost(
                f"{what} {lost}, in the process of its own that it ran in."
                + (f" It said: {tail}." if tail else ""),
                "The steps before stay. Switch rules or rewrites off, half of them at a time, to "
                "find the one that brings it about.",
            ) from lost


def last_words(printed: str) -> str:
    """The most telling lines of what a child printed that is gone: where Python stood, if any."""
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    # Python's faulthandler lists each thread's calls, the most recent first.
    now = next((i for i, line in enumerate(lines) if line.startswith("Current thread")), None)
    if now is not None:
        fault = [line for line in lines if line.startswith("Fatal Python error")]
        return printable("; ".join([*fault[:1], *lines[now + 1 : now + 4]]), limit=500)
    return printable(" ".join(lines[-3:]), limit=500)


class _Modules(Mapping[str, Any]):
    """Modules that lie in a child, by step; each is fetched when it is first asked for."""

    def __init__(self, engine: Apart, runs: dict[str, int]) -> None:
        self.runs = runs
        self.loaded: dict[str, Any] = {}
        self._engine = engine

    def __getitem__(self, step: str) -> Any:
        if step not in self.loaded:
            self.loaded[step] = self._engine.module(step, self.runs[step])
        return self.loaded[step]

    def __contains__(self, step: object) -> bool:
        return step in self.loaded or (
            step in self.runs and self._engine.valid(str(step), self.runs[str(step)])
        )

    def __iter__(self) -> Iterator[str]:
        return (step for step in self.runs if step in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def still(self, other: _Modules) -> dict[str, Any]:
        """What was fetched of runs that the other has too."""
        return {n: m for n, m in self.loaded.items() if self.runs.get(n) == other.runs.get(n)}
