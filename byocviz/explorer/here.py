"""Runs the steps in this process."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from byocviz.explorer.given import Given, write_module
from byocviz.flow.mark import Mark, operators
from byocviz.recording import Recording
from byocviz.recording.schema import STEPS

if TYPE_CHECKING:
    from byocviz.explorer.settings import Resolved, Settings

Tell = Callable[[str, int, int], None]


class Here:
    """One walk, and a mark before each of its steps, to begin there again."""

    def __init__(self, given: Given, settings: Settings, resolved: Resolved, tell: Tell) -> None:
        self._given, self._tell = given, tell
        self._settings, self._resolved = settings, resolved
        self._marks: list[Any] = []
        self._written: tuple[Any, Path, Any] | None = None
        self._walk: Any = None
        self._begin(0)

    def change(self, settings: Settings, resolved: Resolved, at: int) -> None:
        """Other settings, which touch the step of that number first."""
        self._settings, self._resolved = settings, resolved
        if at < len(self._walk.data.steps):
            self._begin(at)
        else:
            self._adopt()

    def past(self) -> Any:
        """What `back` takes to undo changes that come after this."""
        return None

    def back(self, settings: Settings, resolved: Resolved, at: int, past: Any) -> None:
        """Undo a change, which touched the step of that number first. What is missing then runs
        again when another step needs it."""
        self.change(settings, resolved, at)

    def step(self, at: int) -> Recording:
        """The record up to and with the step of that number; what is missing runs."""
        walk = self._walk
        while len(walk.data.steps) <= at and walk.next_step:
            number = len(walk.data.steps)
            del self._marks[number:]
            self._marks.append(Mark(walk))
            try:
                if walk.next_step == "composite":
                    self._adopt()  # what is held back is known only now
                walk.advance()
            except BaseException:
                # The step may have changed anything: from where it began.
                self._begin(number)
                raise
        return self._shot()

    def blockers(self) -> list[Any]:
        """What one more rule would change."""
        return self._given.dialect.blockers(self._walk)

    def module_file(self, step: str) -> Path:
        """A file with the module of a step, as TVM's JSON."""
        self.step(STEPS.index(step))
        module = self._walk.modules[step]
        if self._written is None or not self._written[0].same_as(module):
            folder = tempfile.TemporaryDirectory(prefix="byocviz-explore-")
            path = Path(folder.name, "step.json")
            write_module(module, path)
            self._written = module, path, folder
        return self._written[1]

    def close(self) -> None:
        """Nothing is kept open."""

    def _begin(self, at: int) -> None:
        walk = self._given.dialect.walk(
            self._given,
            self._settings,
            self._resolved,
            lambda text, done, total: self._tell(text, done, total),
        )
        if at:
            self._marks[at].put(walk)
        if at > STEPS.index("composite"):
            # The rules that composite ran with, and what was held back from them.
            before = self._walk.state
            walk.state.backend, walk.state.rules = before.backend, before.rules
        del self._marks[at + 1 :]
        self._walk = walk
        self._adopt()

    def _adopt(self) -> None:
        self._given.dialect.adopt(self._walk, self._given, self._settings, self._resolved)

    def _shot(self) -> Recording:
        """The record as it is now; later steps do not change it."""
        walk, data = self._walk, self._walk.data
        shot = Recording(
            ir=data.ir,
            entry=data.entry,
            weights=data.weights,
            ops=operators(data.ops),
            steps=list(data.steps),
            texts=dict(data.texts),
        )
        shot.__dict__["modules"] = walk.modules
        return shot
