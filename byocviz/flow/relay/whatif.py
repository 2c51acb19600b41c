"""What if a rule took it: partitions again, once for each kind of operator left on TVM."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from byocviz.backends.relay_table import RelayRule
from byocviz.flow.identity import resolve
from byocviz.flow.placing import Sheet
from byocviz.flow.relay import steps
from byocviz.flow.relay.capture import capture
from byocviz.flow.relay.checks import Verdicts
from byocviz.flow.relay.reader import read_module
from byocviz.flow.relay.walk import Tell, Walk
from byocviz.recording import Recording
from byocviz.recording.schema import Blocker, Profile, Step


def candidates(data: Recording) -> dict[str, int]:
    """Operators that stay on TVM for want of a rule, by name with their count, most first.

    Those that were pruned are left out: no rule would help.
    """
    step = next((s for s in data.steps if s.name == "annotate" and s.error is None), None)
    if step is None:
        return {}
    names = Counter(
        data.ops[identity].name
        for identity, reason in step.reasons.items()
        if reason.code != "already-lowered"
    )
    return dict(sorted(names.items(), key=lambda item: (-item[1], item[0])))


def what_if(walk: Walk, tell: Tell) -> list[Blocker]:
    """A `Blocker` for each candidate, the largest gain first.

    Each figure comes from really partitioning again, with an operator rule that takes every
    operator of the kind that no pattern has taken; the prune policy applies as it did.
    """
    data = walk.data
    now = data.steps[-1].profile
    kinds = candidates(data)
    found = []
    for index, (name, count) in enumerate(kinds.items()):
        tell(f"what if: {name}", index, len(kinds))
        blocker = Blocker(
            name,
            count,
            now.subgraphs,
            now.subgraphs,
            now.coverage_ops,
            now.coverage_ops,
            now.coverage_macs,
            now.coverage_macs,
            _boundary(now),
            _boundary(now),
        )
        try:
            then = _partition(walk, name)
        except Exception as error:
            blocker.error = f"{type(error).__name__}: {str(error).strip()[-300:]}"
        else:
            blocker.subgraphs = then.subgraphs
            blocker.coverage_ops = then.coverage_ops
            blocker.coverage_macs = then.coverage_macs
            blocker.boundary_bytes = _boundary(then)
        found.append(blocker)
    found.sort(key=lambda b: (-b.gain, -(b.coverage_ops - b.coverage_ops_now), b.op))
    return found


def _boundary(profile: Profile) -> int | None:
    if profile.bytes_in is None or profile.bytes_out is None:
        return None
    return profile.bytes_in + profile.bytes_out


def _partition(walk: Walk, operator: str) -> Profile:
    """The profile after the last step, had the operator a rule of its own."""
    state = walk.state
    # Patterns have matched: only what follows is different.
    rule = RelayRule(f"{state.backend.name}.what_if", None, operator, None)
    others = [r for r in state.rules if r.pattern is not None or r.op != operator]
    again = replace(
        state,
        module=walk.modules["composite"],
        rules=[*others, rule],
        verdicts=Verdicts(),
        why_pruned={},
    )
    for run in (steps.annotate, steps.merge, steps.partition):
        again.module = run(again).module
    step = _drawn(walk, again)
    if state.policy is not None:
        again.subgraphs = step.subgraphs
        again.module = steps.prune(again).module
        step = _drawn(walk, again)
    return step.profile


def _drawn(walk: Walk, state: steps.State) -> Step:
    readings = read_module(state.module, walk.entry, uncalled=walk.boxed, bodies=walk.bodies)
    ids, _ = resolve(readings, walk.wiring, walk._name)
    step = Step("what if")
    sheet = Sheet(walk.entry, walk.data.ops, walk.sheet.read, {}, printed=None)
    capture(step, state.module, sheet, readings, ids, None, walk.bodies.types)
    return step
