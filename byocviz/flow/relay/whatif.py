"""What if a rule took it: partitions again, once for each kind of operator left on TVM."""

from __future__ import annotations

from dataclasses import replace

from byocviz.backends.lowerable import only_lowerable
from byocviz.backends.relay_table import RelayRule
from byocviz.flow.identity import resolve
from byocviz.flow.placing import Sheet
from byocviz.flow.relay import steps
from byocviz.flow.relay.capture import capture
from byocviz.flow.relay.checks import Verdicts
from byocviz.flow.relay.reader import read_module
from byocviz.flow.relay.walk import Walk
from byocviz.flow.stepping import Tell
from byocviz.flow.whatif import blockers, candidates
from byocviz.recording.schema import Blocker, Step


def what_if(walk: Walk, tell: Tell) -> list[Blocker]:
    """A `Blocker` for each kind of operator that lacks a rule, the largest gain first.

    Each figure comes from really partitioning again, with an operator rule that takes every
    operator of the kind that no pattern has taken; the prune policy applies as it did. Operators
    that were pruned are left out: no rule would help.
    """
    kinds = candidates(walk.data, "annotate", "already-lowered")
    return blockers(walk.data, kinds, lambda name: _partition(walk, name), tell)


def _partition(walk: Walk, operator: str) -> Step:
    """The last step, had the operator a rule of its own."""
    state = walk.state
    # Patterns have matched: only what follows is different.
    name, check = f"{state.backend.name}.what_if", None
    if state.backend.lowers:
        ((_, _, check),) = only_lowerable([(name, operator)])
    rule = RelayRule(name, None, operator, check)
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
    return step


def _drawn(walk: Walk, state: steps.State) -> Step:
    readings = read_module(state.module, walk.entry, uncalled=walk.boxed, bodies=walk.bodies)
    ids, _ = resolve(readings, walk.wiring, walk._name)
    step = Step("what if")
    sheet = Sheet(walk.entry, walk.data.ops, walk.sheet.read, {}, printed=None)
    capture(step, state.module, sheet, readings, ids, None, walk.bodies.types)
    return step
