"""What if a rule took it: partitions again, once for each kind of operator left on TVM."""

from __future__ import annotations

from collections import Counter
from typing import Any

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
from byocviz.flow.relax.walk import Tell, Walk
from byocviz.recording import Recording
from byocviz.recording.schema import Blocker, Profile, Step


def candidates(data: Recording) -> dict[str, int]:
    """Operators that stay on TVM for want of a rule, by name with their count, most first.

    Those that produce no tensor, and those that were pruned, are left out: no rule would help.
    """
    step = next((s for s in data.steps if s.name == "composite" and s.error is None), None)
    if step is None:
        return {}
    names = Counter(
        data.ops[identity].name
        for identity, reason in step.reasons.items()
        if reason.code != "no-tensor"
    )
    return dict(sorted(names.items(), key=lambda item: (-item[1], item[0])))


def what_if(walk: Walk, tell: Tell) -> list[Blocker]:
    """A `Blocker` for each candidate, the largest gain first.

    Each figure comes from really partitioning again, with one more rule of lowest priority that
    takes every operator of the kind; the prune policy applies as it did.
    """
    data = walk.data
    now = data.steps[-1].profile
    kinds = candidates(data)
    found = []
    for index, (name, count) in enumerate(kinds.items()):
        tell(f"what if: {name}", index, len(kinds))
        rule = FusionPattern(f"{walk.state.backend.name}.what_if", any_call(name))
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
            then = _partition(walk, rule)
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


def _partition(walk: Walk, rule: Any) -> Profile:
    state = walk.state
    module: tvm.IRModule = relax.transform.FuseOpsByPattern(
        [*state.enabled, rule], bind_constants=True
    )(state.prepared)
    module, _ = merge(module)
    step = _drawn(walk, module)
    if state.policy is not None:
        going = to_prune(module, step.subgraphs, state.policy, state.backend.name)
        module = prune(module, going)
        step = _drawn(walk, module)
    return step.profile


def _drawn(walk: Walk, module: tvm.IRModule) -> Step:
    readings = read_module(module, walk.entry, uncalled=walk.boxed)
    ids, _ = resolve(readings, walk.wiring, walk._name)
    step = Step("what if")
    sheet = Sheet(walk.entry, walk.data.ops, walk.sheet.read, {}, printed=None)
    capture(step, module, sheet, readings, ids)
    return step
