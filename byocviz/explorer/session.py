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
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from byocviz.errors import ArgumentError, ByocvizError, missing
from byocviz.explorer.preview import PrunePreview, preview
from byocviz.explorer.settings import Resolved, Settings
from byocviz.recording import Recording
from byocviz.recording.compare import RecordingComparison, compare_recordings
from byocviz.recording.schema import STEPS, PrunePolicy, Step
from byocviz.recording.stops import STOPS, Stop, plain_stop, read_stops

if TYPE_CHECKING:
    import tvm

    from byocviz.explorer.rulebox import AddedRule
    from byocviz.explorer.trial import Trial
    from byocviz.flow.relax.walk import Walk

Tell = Callable[[str, int, int], None]


class Stopped(ByocvizError):
    """Work that was cancelled. The steps before it stay."""


class PassLost(ByocvizError, RuntimeError):
    """TVM's passes crashed, or took too long, in a process of their own."""


@dataclass(frozen=True)
class Cost:
    """What a step took: seconds in TVM, and in capturing."""

    tvm: float
    capture: float

    @property
    def total(self) -> float:
        return self.tvm + self.capture


class Session:
    """One module and the settings under which it is walked. Used by one thread at a time.

    ``mod``, ``backend``, ``params``, ``entry``, ``rules``, ``prepare``, ``prune``, ``lowerable``
    and ``title`` are those of `byocviz.record`, which it agrees with: after `run_all` its
    ``recording`` is what ``record`` would have made with the same settings.

    ``isolate`` runs the passes once in a process of their own before they run here: one that
    crashes natively, or takes longer than ``time_limit`` seconds, ends with an error, and the steps
    before stay. It costs as much again, and needs a backend that is given by name.

    ``tell`` is called before each part with what it is, and how many of how many are done; it may
    raise `Stopped`, which ends the work.

    Raises what `byocviz.record` raises.
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
        isolate: bool = False,
        time_limit: float = 600.0,
        tell: Tell = lambda text, done, total: None,
    ) -> None:
        try:
            import tvm
            from tvm import relax
        except ImportError as error:
            raise missing("TVM with Relax (apache-tvm)", "relax", "to explore a module") from error
        from byocviz.flow import record as flow

        flow._arguments(rules, prepare, prune, lowerable, title)
        self.module = flow._module(mod, tvm)
        flow._check(self.module, entry, relax)
        if title is None:
            title = Path(mod).stem if isinstance(mod, (str, Path)) else ""
        if isolate and not isinstance(backend, str):
            raise ArgumentError(
                "isolate needs a backend that another process can look up.",
                "Give the backend by the name that it is installed under, or isolate=False.",
            )
        self.isolate, self.time_limit = isolate, time_limit
        self.title = title or entry
        self.entry = entry
        self.params = params
        self.tell = tell
        self.cancelled: Callable[[], bool] = lambda: False
        """Asked while another process works."""
        settings = Settings(backend, {}, prepare, prune, lowerable)
        _known_rewrites(prepare)
        if rules is not None:
            settings = settings.changed(rules=_switches(settings, rules))
        self.settings = settings
        self._resolved = settings.resolve()
        self.before: Recording | None = None
        """What the run before the last change gave, as far as it had come."""
        self.ran: list[str] = []
        """Names of the steps that ran since the last change; for people and tests."""
        self._marks: list[Any] = []
        self._walk = self._begin(0)
        self._fresh = False

    # -- what is known

    @property
    def recording(self) -> Recording:
        """The record of the steps that ran under the settings as they are; always the truth."""
        return self._walk.data

    @property
    def next_step(self) -> str:
        """The step that would run next; "" where none would."""
        return self._walk.next_step

    @property
    def done(self) -> list[str]:
        """Names of the steps that the recording holds."""
        return [step.name for step in self.recording.steps]

    def cost(self, step: str) -> Cost | None:
        """What a step took in this session; None where it did not run."""
        found = next((s for s in self.recording.steps if s.name == step), None)
        return Cost(found.tvm_seconds, found.capture_seconds) if found else None

    @property
    def stops(self) -> list[Stop]:
        """What was marked, in order."""
        return read_stops(self.recording.extra.get(STOPS))

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
            _known_rewrites(settings.prepare)
        if "held" in changes:
            self._known_operators(settings.held - self.settings.held)
        resolved = settings.resolve()
        touched = self.settings.touched(settings)
        self.settings, self._resolved = settings, resolved
        at = STEPS.index(touched) if touched else len(STEPS)
        if at >= len(self.recording.steps):
            self._adopt()
            return touched
        if self._fresh:
            self.before, self._fresh = self.recording, False
        self._walk = self._begin(at)
        return touched

    def _advance(self) -> None:
        walk = self._walk
        at = len(walk.data.steps)
        name = walk.next_step
        del self._marks[at:]
        from byocviz.flow.relax.mark import Mark

        self._marks.append(Mark(walk))
        try:
            if name == "composite":
                self._adopt()
                self._try_passes()
            walk.advance()
        except BaseException:
            # The step may have changed anything: from where it began.
            self._walk = self._begin(at)
            raise
        self._fresh = True
        self.ran.append(name)
        if name in ("composite", "import"):
            self._describe(self._walk)

    def _try_passes(self) -> None:
        if not self.isolate:
            return
        from byocviz.explorer.trial import try_passes

        self.tell("trying the passes apart", 2, len(STEPS))
        problem = try_passes(
            self._walk.modules["prepare"], self.settings, self.time_limit, self.cancelled
        )
        if problem:
            raise PassLost(*problem)

    def _begin(self, at: int) -> Walk:
        """A walk under the settings as they are, before the step of that number."""
        from byocviz.flow.relax.walk import Walk

        settings, resolved = self.settings, self._resolved
        walk = Walk(
            self.module,
            resolved.backend,
            resolved.rules,
            entry=self.entry,
            params=self.params,
            prepare=settings.prepare,
            policy=resolved.policy,
            tell=lambda text, done, total: self.tell(text, done, total),
        )
        old = getattr(self, "_walk", None)
        if old is not None:
            walk.data.weights = old.data.weights
            walk.data.extra = old.data.extra  # one for all runs: a mark is never lost
        if at:
            extra = walk.data.extra
            self._marks[at].put(walk)
            walk.data.extra = extra
        del self._marks[at + 1 :]
        self.ran = []
        self._describe(walk)
        return walk

    def _adopt(self) -> None:
        """Give the walk the backend as it is now, with what is held back."""
        from byocviz.explorer.held import with_held

        state, resolved = self._walk.state, self._resolved
        state.backend, state.rules, state.policy = resolved.backend, resolved.rules, resolved.policy
        state.prepare = bool(self.settings.prepare)
        state.rewrites = (
            dict(self.settings.prepare) if isinstance(self.settings.prepare, Mapping) else {}
        )
        if self.settings.held and len(self._walk.data.steps) == STEPS.index("composite"):
            state.backend, state.rules = with_held(
                resolved, self._walk, self.settings.held, self.entry
            )
        self._describe(self._walk)

    def _describe(self, walk: Walk) -> None:
        from byocviz.flow.record import describe, hang_on

        resolved = self._resolved
        describe(walk.data, self.title, resolved.backend, resolved.rules, resolved.policy)
        hang_on(walk.data, walk, resolved.backend, self.params, False)

    def _known_operators(self, ids: frozenset[int]) -> None:
        for identity in ids:
            if identity not in self.recording.ops:
                raise ArgumentError(
                    f"There is no operator {identity!r}.", "Give ids of the recording's operators."
                )

    # -- questions

    def comparison(self) -> RecordingComparison | None:
        """This run beside the one before the last change, at the last step that both have; None
        where there is no such."""
        if self.before is None:
            return None
        good = [{s.name for s in r.steps if s.error is None} for r in (self.before, self.recording)]
        both = [name for name in STEPS if name in good[0] & good[1]]
        if not both:
            return None
        return compare_recordings(self.before, both[-1], self.recording, both[-1])

    def preview(self, policy: PrunePolicy | bool | None) -> PrunePreview | None:
        """What a prune policy (True: the backend's own) would do to the partitioned module; None
        where that step did not run yet."""
        if policy is True:
            policy = self._resolved.backend.prune
        return preview(self.recording, policy or None, self._walk.modules.get("partition"))

    def try_rule(self, source: str, *, time_limit: float = 20.0) -> Trial:
        """What a rule's text (`byocviz.explorer.rulebox`) matches on the prepared module by
        itself, or what went wrong. It runs in a process of its own, which is ended after
        ``time_limit`` seconds. Steps up to prepare run where they did not."""
        from byocviz.explorer.trial import try_rule

        step = self.run_to("prepare")
        module = self._walk.modules.get("prepare") if step and step.error is None else None
        if module is None:
            module = self._walk.modules["import"]
        name = self._resolved.backend.name
        return try_rule(module, source, name, time_limit, self.cancelled)

    def add_rule(self, name: str, source: str, *, time_limit: float = 20.0) -> str:
        """Try a rule as `try_rule` does, and add it before the others; one of that name is
        replaced. Returns what `change` does; raises `RuleError` where the trial fails."""
        from byocviz.explorer.rulebox import AddedRule, RuleError, checked_name

        name = checked_name(name.removeprefix(f"{self._resolved.backend.name}."))
        trial = self.try_rule(source, time_limit=time_limit)
        if trial.error:
            raise RuleError(trial.error, trial.mend, trial.line)
        added = [rule for rule in self.settings.added if rule.name != name]
        return self.change(added=(AddedRule(name, source), *added))

    def script(self) -> str:
        """The pipeline as Python text that runs when pasted where ``mod`` is the module."""
        from byocviz.explorer.script import script

        return script(self.recording, self._resolved.policy)

    # -- marking

    def mark(self, stop: Stop) -> Stop:
        """Add a stop for the replay to ``recording.extra["stops"]``."""
        stops = [*self.stops, stop]
        self.recording.extra[STOPS] = [plain_stop(one) for one in stops]
        return stop

    def unmark(self, index: int) -> None:
        """Take a stop off, by its number from 0. Raises IndexError."""
        stops = self.stops
        del stops[index]
        self.recording.extra[STOPS] = [plain_stop(one) for one in stops]


def _switches(settings: Settings, rules: Any) -> dict[str, bool]:
    """`record`'s ``rules`` as a mapping of full names that differ from the backend's own."""
    chosen = settings.resolve().backend
    own = {rule.name: rule.enabled for rule in chosen.rules()}
    return {r.name: r.enabled for r in chosen.rules(rules) if r.enabled != own[r.name]}


def _known_rewrites(prepare: bool | Mapping[str, bool]) -> None:
    from byocviz.flow.relax.prepare import rewrite

    for name in prepare if isinstance(prepare, Mapping) else ():
        rewrite(name)  # raises where there is none


__all__ = ["AddedRule", "Cost", "PassLost", "Resolved", "Session", "Stopped"]
