"""Subgraphs that do not pay go back to TVM."""

from __future__ import annotations

from collections.abc import Iterable

import tvm

from byocviz.flow.pruning import named, pruned, verdict
from byocviz.flow.relax.compat import plain
from byocviz.flow.relax.passes.prune import is_straight, prune
from byocviz.flow.relax.steps.state import Outcome, State
from byocviz.recording.schema import PrunePolicy, Subgraph

__all__ = ["NAME", "pruned", "run", "to_prune", "verdict"]

NAME = "prune"


def to_prune(
    module: tvm.IRModule, subgraphs: Iterable[Subgraph], policy: PrunePolicy, backend: str
) -> list[str]:
    """Names of the external functions that go back, sorted; one with a branch inside stays."""
    functions = {plain(var.name_hint): function for var, function in module.functions.items()}
    return sorted(
        {
            s.function
            for s in subgraphs
            if pruned(s, policy, backend) and is_straight(functions[s.function])
        }
    )


def run(state: State) -> Outcome:
    policy = state.policy
    if policy is None:
        return Outcome(state.module, "# switched off", "byocviz", "Switched off.", outlined=True)
    going = to_prune(state.module, state.subgraphs, policy, state.backend.name)
    with state.in_tvm():
        module = prune(state.module, going)
    said = named(policy)
    return Outcome(
        module,
        f"from byocviz.flow.relax.passes import prune\nmod = prune(mod, {going!r})",
        origin="byocviz",
        note=f"Subgraphs without at least {said} go back to TVM." if said else "No threshold set.",
        outlined=True,
    )
