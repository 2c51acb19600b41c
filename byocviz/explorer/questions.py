"""What is asked of a session, and the stops that are marked in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from byocviz.errors import ArgumentError
from byocviz.explorer.preview import PrunePreview, preview
from byocviz.recording import Recording
from byocviz.recording.compare import RecordingComparison, compare_recordings
from byocviz.recording.schema import STEPS, PrunePolicy
from byocviz.recording.stops import MOST, STOPS, Stop, plain_stop, read_stop

if TYPE_CHECKING:
    from byocviz.explorer.apart import Apart
    from byocviz.explorer.dialects import Dialect
    from byocviz.explorer.here import Here
    from byocviz.explorer.settings import Resolved, Settings
    from byocviz.explorer.trial import Trial, Trier
    from byocviz.recording.schema import Step


class Questions:
    """The part of a `Session` that changes no setting, but for `add_rule`."""

    dialect: Dialect
    settings: Settings
    before: Recording | None
    _resolved: Resolved
    _engine: Here | Apart
    _trier: Trier
    _prepared: int
    _extra: dict[str, Any]
    _marks: list[tuple[Stop, Settings]]
    """What was marked, and under which settings."""

    @property
    def recording(self) -> Recording:
        raise NotImplementedError

    def run_to(self, step: str) -> Step | None:
        raise NotImplementedError

    def change(self, **changes: Any) -> str:
        raise NotImplementedError

    @property
    def stops(self) -> list[Stop]:
        """What was marked, in order."""
        return [stop for stop, _ in self._marks[:MOST]]

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
        return preview(self.recording, policy or None, self.prunable())

    def prunable(self) -> frozenset[str] | None:
        """The external functions of the partition step that can be put back; None where that step
        did not run. One with a branch inside cannot."""
        recording = self.recording
        found = recording.__dict__.get("prunable")
        step = next((s for s in recording.steps if s.name == "partition" and not s.error), None)
        if found is None and step is not None:
            module, backend = recording.module("partition"), recording.backend.name
            found = self.dialect.prunable(module, step.subgraphs, backend)
            recording.__dict__["prunable"] = found
        return found if step is not None else None

    def try_rule(self, source: str, *, time_limit: float = 20.0) -> Trial:
        """What a rule's text (`byocviz.explorer.rulebox`) matches on the prepared module by
        itself, or what went wrong. It runs in a process of its own, which is ended after
        ``time_limit`` seconds. Steps up to prepare run where they did not."""
        step = self.run_to("prepare")
        name = "prepare" if step and step.error is None else "import"
        key = name, self._prepared
        path = None if self._trier.loaded(key) else self._engine.module_file(name)
        backend = self._resolved.backend.name
        return self._trier.try_rule(key, path, source, backend, time_limit)

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

        return script(self.recording, self._resolved.policy, self.settings.held)

    # -- marking

    @property
    def outdated(self) -> list[int]:
        """The stops, by number from 0, that were marked under other settings than now: what they
        say may not be so any more."""
        return [i for i, (_, under) in enumerate(self._marks) if under != self.settings]

    def mark(self, stop: Stop) -> Stop:
        """Add a stop for the replay to ``recording.extra["stops"]``."""
        try:
            stop = read_stop(plain_stop(stop))
        except (TypeError, ValueError) as error:
            raise ArgumentError(f"That is no stop: {error}.", "Give a byocviz.Stop.") from error
        self._write([*self._marks[:MOST], (stop, self.settings)])
        return stop

    def unmark(self, index: int) -> None:
        """Take a stop off, by its number from 0. Raises IndexError."""
        marks = self._marks[:MOST]
        del marks[index]
        self._write(marks)

    def _write(self, marks: list[tuple[Stop, Settings]]) -> None:
        self._marks = marks
        self._extra[STOPS] = [plain_stop(stop) for stop, _ in marks]
