"""What if a rule took it: partitions again, once for each kind of operator left on TVM."""

from __future__ import annotations

import tvm
from tvm import relax
from tvm.relax.transform import FusionPattern

from byocviz.backends.tvm_table import any_call
from byocviz.flow.identity import resolve
from byocviz.flow.relax.capture import Sheet, capture
from byocviz.flow.relax.passes.merge import merge
from byocviz.flow.relax.passes.prune import prune
from byocviz.flow.relax.reader import read_module
from byocviz.flow.relax.steps.prune import to_prune
from byocviz.flow.relax.walk import Walk
from byocviz.flow.stepping import Tell
from byocviz.flow.whatif import blockers, candidates
from byocviz.recording.schema import Blocker, Step


def what_if(walk: Walk, tell: Tell) -> list[Blocker]:
    """A `Blocker` for each kind of operator that lacks a rule, the largest gain first.

    Each figure comes from really partitioning again, with one more rule of lowest priority that
    takes every operator of the kind; the prune policy applies as it did. Operators that produce
    no tensor, and those that were pruned, are left out: no rule would help.
    """
    kinds = candidates(walk.data, "composite", "no-tensor")
    return blockers(walk.data, kinds, lambda name: _partition(walk, name), tell)


def _partition(walk: Walk, operator: str) -> Step:
    """The last step, had the operator a rule of its own."""
    state = walk.state
    rule = FusionPattern(f"{state.backend.name}.what_if", any_call(operator))
    module: tvm.IRModule = relax.transform.FuseOpsByPattern(
        [*state.enabled, rule], bind_constants=True
    )(state.prepared)
    module, _ = merge(module)
    step = _drawn(walk, module)
    if state.policy is not None:
        going = to_prune(module, step.subgraphs, state.policy, state.backend.name)
        module = prune(module, going)
        step = _drawn(walk, module)
    return step


def _drawn(walk: Walk, module: tvm.IRModule) -> Step:
    readings = read_module(module, walk.entry, uncalled=walk.boxed)
    ids, _ = resolve(readings, walk.wiring, walk._name)
    step = Step("what if")
    sheet = Sheet(walk.entry, walk.data.ops, walk.sheet.read, {}, printed=None)
    capture(step, module, sheet, readings, ids)
    return step
