"""`Session`: all that exploring knows, as one Python object without widgets and without threads.

::

    session = Session(mod, "tensorrt")
    session.run_to("merge")                 # import ... merge, each once
    session.change(rules={"tensorrt.nn.softmax": False})
    session.run_all()                       # from composite on; import and prepare stay
    print(session.comparison())             # this run beside the one before
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from byocviz.errors import ArgumentError, StepMissing
from byocviz.explorer import dialects
from byocviz.explorer.apart import Apart, PassLost, Stopped
from byocviz.explorer.given import CannotTravel, Given, no_recording
from byocviz.explorer.here import Here, Tell
from byocviz.explorer.questions import Questions
from byocviz.explorer.settings import Resolved, Settings
from byocviz.explorer.trial import Trier
from byocviz.models._load import weights
from byocviz.models._source import source_of
from byocviz.recording import Recording
from byocviz.recording.results import Results
from byocviz.recording.schema import STEPS, PrunePolicy, Step

if TYPE_CHECKING:
    import tvm

    from byocviz.explorer.rulebox import AddedRule
    from byocviz.recording.stops import Stop


@dataclass(frozen=True)
class _Past:
    """What a change is undone to."""

    settings: Settings
    resolved: Resolved
    shots: list[Recording]
    before: Recording | None
    fresh: bool
    engine: Any


@dataclass(frozen=True)
class Cost:
    """What a step took: seconds in TVM, and in capturing."""

    tvm: float
    capture: float

    @property
    def total(self) -> float:
        return self.tvm + self.capture


class Session(Questions):
    """One module and the settings under which it is walked. Used by one thread at a time.

    ``mod``, ``backend``, ``params``, ``entry``, ``rules``, ``prepare``, ``prune``, ``lowerable``
    and ``title`` are those of `byocviz.record`, which it agrees with: after `run_all` its
    ``recording`` is what ``record`` would have made with the same settings.

    ``isolated`` runs the passes in a process of their own, one for all steps: one that crashes
    natively, takes longer than ``time_limit`` seconds or is cancelled ends with an error, and the
    steps before stay. Starting it costs what importing TVM does, once; a step of an SSD then takes
    some 50 ms longer, and fetching a module from it, as building does, a second.
    None: on where this TVM was built with the backend's codegen, and the backend can be given to
    another process. That is: by name, and not by `byocviz.backends.register` in this one. Where a
    backend cannot, its passes run here, and ``why_here`` says so.

    ``tell`` is called before each part with what it is, and how many of how many are done; it may
    raise `Stopped`, which ends the work.

    Raises what `byocviz.record` raises, and `ArgumentError` for ``isolated=True`` with a backend
    that was given as an object.
    """

    def __init__(
        self,
        mod: tvm.IRModule | str | Path | Any,
        backend: Any = "tensorrt",
        *,
        params: Mapping[str, Any] | None = None,
        entry: str = "main",
        rules: Any = None,
        prepare: bool | Mapping[str, bool] = True,
        prune: bool | PrunePolicy = True,
        lowerable: bool = False,
        title: str | None = None,
        isolated: bool | None = False,
        time_limit: float = 600.0,
        tell: Tell = lambda text, done, total: None,
    ) -> None:
        from byocviz.flow.arguments import check_arguments, module_of, needs_tvm

        needs_tvm("to explore a module")
        check_arguments(rules, prepare, prune, lowerable, title)
        no_recording(mod)
        if isolated is not None and not isinstance(isolated, bool):
            raise ArgumentError(f"isolated is {isolated!r}.", "Give True, False or None.")
        module = module_of(mod)
        self.dialect = dialects.of(module)
        self.dialect.check(module, entry)
        if title is None:
            title = Path(mod).stem if isinstance(mod, (str, Path)) else ""
        if isolated and not isinstance(backend, str):
            raise ArgumentError(
                "isolated=True needs a backend that another process can look up by its name.",
                "Give the backend by the name that it is installed under (an entry point of the "
                "group byocviz.backends), or isolated=False.",
            )
        params = weights(mod) if params is None else params
        self.given = Given(module, self.dialect, entry, params, title or entry)
        self.time_limit = time_limit
        self.tell = tell
        self.cancelled: Callable[[], bool] = lambda: False
        """Asked while another process works."""
        settings = Settings(backend, {}, prepare, prune, lowerable, ir=self.dialect.ir)
        self._known_rewrites(prepare)
        if rules is not None:
            settings = settings.changed(rules=_switches(settings, rules))
        self.settings = settings
        self._resolved = settings.resolve()
        if isolated is None:
            isolated = isinstance(backend, str) and self.dialect.native(backend)
        self.isolated = bool(isolated)
        """Whether the passes are to run in a process of their own; see `isolate`."""
        self.why_here = ""
        """Why they run here all the same."""
        self._stays: Any = None
        """The backend that cannot be given to another process."""
        self.before: Recording | None = None
        """What the run before the last change gave, as far as it had come."""
        self.ran: list[str] = []
        """Names of the steps that ran since the last change; for people and tests."""
        self._extra: dict[str, Any] = {}
        """One for all runs: a mark is never lost."""
        self._marks: list[tuple[Stop, Settings]] = []
        # A child's threads hold what it asks: that must not keep the session.
        session = weakref.ref(self)
        self._asked = lambda: (one := session()) is not None and one.cancelled()
        self._trier = Trier(self.dialect.ir, self._asked)
        self._runs = 0
        """How many steps ran in all: tells one run's module from another's."""
        self._prepared = 0
        self._fresh = False
        self._shots = [Recording(ir=self.dialect.ir, entry=entry, extra=self._extra)]
        """The record after so many steps. Those that ran under other settings are not there."""
        self._past: _Past | None = None
        self._engine: Here | Apart = self._made()
        self._describe(self._shots[0])

    # -- what is known

    @property
    def recording(self) -> Recording:
        """The record of the steps that ran under the settings as they are; always the truth: it
        holds whole steps, whatever is under way."""
        return self._shots[-1]

    @property
    def title(self) -> str:
        """What is explored, for people."""
        return self.given.title

    @property
    def rules(self) -> list[Any]:
        """The rules as they are switched, in order; each with ``name`` and ``enabled``."""
        return self._resolved.rules

    @property
    def policy(self) -> PrunePolicy | None:
        """The prune policy; None where nothing is pruned."""
        return self._resolved.policy

    @property
    def next_step(self) -> str:
        """The step that would run next; "" where none would."""
        steps = self.recording.steps
        if len(steps) == len(STEPS) or self.recording.failed is not None:
            return ""
        return STEPS[len(steps)]

    @property
    def done(self) -> list[str]:
        """Names of the steps that the recording holds."""
        return [step.name for step in self.recording.steps]

    def cost(self, step: str) -> Cost | None:
        """What a step took in this session; None where it did not run."""
        found = next((s for s in self.recording.steps if s.name == step), None)
        return Cost(found.tvm_seconds, found.capture_seconds) if found else None

    # -- running

    def run_to(self, step: str) -> Step | None:
        """Run what is missing up to a step, and return it; None where a step before it failed.

        Raises `ArgumentError` for a name that is no step, `Stopped`, and what `byocviz.record`
        raises for what was given.
        """
        if step not in STEPS:
            raise ArgumentError(f"There is no step {step!r}.", f"Its steps: {', '.join(STEPS)}.")
        collecting = gc.isenabled()
        gc.disable()  # as Walk.run does, and for its reason
        try:
            while step not in self.done and self.next_step:
                self._advance()
        finally:
            if collecting:
                gc.enable()
        return next((s for s in self.recording.steps if s.name == step), None)

    def run_all(self) -> Recording:
        """Run what is missing."""
        self.run_to(STEPS[-1])
        return self.recording

    def change(self, **changes: Any) -> str:
        """Change settings (fields of `Settings`) and drop the steps that they touch.

        Nothing runs. Returns the first step that has to run again, "" where none has. Where
        something cannot be (an unknown backend or rule), the error is raised and nothing changes.
        """
        settings = self.settings.changed(**changes)
        if "prepare" in changes:
            self._known_rewrites(settings.prepare)
        if "held" in changes:
            self._known_operators(settings.held - self.settings.held)
        resolved = settings.resolve()
        touched = self.settings.touched(settings)
        if not touched:
            return ""
        if self._past is None:
            self._past = _Past(
                self.settings,
                self._resolved,
                list(self._shots),
                self.before,
                self._fresh,
                self._engine.past(),
            )
        self.settings, self._resolved = settings, resolved
        at = STEPS.index(touched)
        self._engine.change(settings, resolved, at)
        if at < len(self.recording.steps):
            if self._fresh:
                self.before, self._fresh = self.recording, False
            self._shots[at:] = [self._cut(at)]
            self.ran = []
        self._describe(self.recording)
        return touched

    def keep(self) -> None:
        """What was changed is not to be undone any more."""
        self._past = None

    def undo(self) -> bool:
        """Back to settings, steps and results as they were before the first change since `keep`;
        marks stay. False where nothing was changed."""
        past, self._past = self._past, None
        if past is None:
            return False
        at = STEPS.index(self.settings.touched(past.settings) or STEPS[-1])
        at = min(at, len(past.shots) - 1)  # no step that ran since is to be ahead
        self._engine.back(past.settings, past.resolved, at, past.engine)
        self.settings, self._resolved = past.settings, past.resolved
        self._shots, self.before, self._fresh = past.shots, past.before, past.fresh
        return True

    def isolate(self, on: bool) -> None:
        """Run the passes in a process of their own, or here. What ran stays, and runs once more
        there, unseen: later steps go on from it. Where that fails, all stays as it was."""
        if on == self.isolated:
            return
        engine, why = self._engine, self.why_here
        self.isolated = on
        try:
            self._engine = self._made()
            if self.recording.steps:
                made = self._run_step(len(self.recording.steps) - 1)
                for shot in self._shots:  # the ones that are there: the others' process ends
                    shot.__dict__["modules"] = made.__dict__["modules"]
        except BaseException:
            self._engine.close()
            self._engine, self.isolated, self.why_here = engine, not on, why
            raise
        self._past = None
        engine.close()
        self._describe(self.recording)

    def close(self) -> None:
        """End the processes that were started. What ran stays."""
        self._engine.close()
        self._trier.close()

    def _made(self) -> Here | Apart:
        """Where the passes run under the settings as they are."""
        settings, resolved = self.settings, self._resolved
        self.why_here = ""
        if not self.isolated:
            return Here(self.given, settings, resolved, self._told)
        return Apart(self.given, settings, resolved, self._told, self._asked, self.time_limit)

    def _told(self, text: str, done: int, total: int) -> None:
        self.tell(text, done, total)

    def _advance(self) -> None:
        now = self.recording
        at = len(now.steps)
        made = self._run_step(at)
        shot = msgspec.structs.replace(
            made,
            entry=now.entry,
            steps=[*now.steps, *made.steps[-1:]],
            texts=now.texts | made.texts,
            results=now.results,
            extra=self._extra,
        )
        shot.__dict__.update(made.__dict__)
        if "prunable" in now.__dict__:
            shot.__dict__.setdefault("prunable", now.__dict__["prunable"])
        self._describe(shot)
        self._shots.append(shot)
        self._fresh = True
        self._runs += 1
        name = shot.steps[-1].name
        self.ran.append(name)
        if name in ("import", "prepare"):
            self._prepared = self._runs

    def _run_step(self, at: int) -> Recording:
        """The step of that number, where the passes run."""
        if self.why_here and self.settings.backend is not self._stays:
            self._engine = self._made()
        try:
            return self._engine.step(at)
        except CannotTravel as cause:
            self._engine.close()
            self._engine = Here(self.given, self.settings, self._resolved, self._told)
            self._stays = self.settings.backend
            self.why_here = (
                f"The passes run in this process, for one of their own cannot be given {cause}. "
                f"One that crashes natively takes this process with it."
            )
            return self._engine.step(at)

    def _cut(self, at: int) -> Recording:
        """The record after so many steps, with no results: they were of other subgraphs."""
        kept = self._shots[at]
        made = msgspec.structs.replace(kept, results=Results(), extra=self._extra)
        made.__dict__.update(kept.__dict__)
        return made

    def _describe(self, recording: Recording) -> None:
        """Write down what it was made of, and hang on what it needs of this process."""
        self.dialect.describe(recording, self.title, self._resolved)
        engine = self._engine
        recording._live = lambda: engine.blockers()
        recording.__dict__.update(
            backend_used=self._resolved.backend,
            params=self.given.params,
            source=source_of(self.given.module),
        )

    def _known_operators(self, ids: frozenset[int]) -> None:
        for identity in ids:
            if identity not in self.recording.ops:
                raise ArgumentError(
                    f"There is no operator {identity!r}.", "Give ids of the recording's operators."
                )

    def _known_rewrites(self, prepare: bool | Mapping[str, bool]) -> None:
        known = self.dialect.rewrites()
        for name in prepare if isinstance(prepare, Mapping) else ():
            if name not in known:
                raise StepMissing(
                    f"There is no rewrite {name!r}.", f"There are: {', '.join(known)}."
                )


def _switches(settings: Settings, rules: Any) -> dict[str, bool]:
    """`record`'s ``rules`` as a mapping of full names that differ from the backend's own."""
    dialect = dialects.named(settings.ir)
    chosen = settings.resolve().backend
    own = {rule.name: rule.enabled for rule in dialect.rules(chosen, None)}
    return {r.name: r.enabled for r in dialect.rules(chosen, rules) if r.enabled != own[r.name]}


__all__ = ["AddedRule", "Cost", "PassLost", "Resolved", "Session", "Stopped"]
