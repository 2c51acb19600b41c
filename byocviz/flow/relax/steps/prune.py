"""Subgraphs that do not pay go back to TVM."""

from __future__ import annotations

from collections.abc import Iterable

import tvm

from byocviz.flow.relax.compat import plain
from byocviz.flow.relax.passes.prune import is_straight, prune
from byocviz.flow.relax.steps.state import Outcome, State
from byocviz.recording.schema import PrunePolicy, Subgraph

NAME = "prune"


def verdict(subgraph: Subgraph, policy: PrunePolicy) -> str:
    """Why a subgraph goes back, with its figure against the threshold; "" where it stays.

    An unknown figure keeps it: what cannot be counted cannot be too little.
    """
    operators = sum(subgraph.ops.values())
    if policy.require_macs and subgraph.macs == 0:
        return "no multiply-accumulate (0, at least 1 wanted)"
    if operators < policy.min_ops:
        return f"{operators} operators, at least {policy.min_ops} wanted"
    if subgraph.macs is not None and subgraph.macs < policy.min_macs:
        return f"{subgraph.macs} multiply-accumulates, at least {policy.min_macs} wanted"
    return ""


def pruned(subgraph: Subgraph, policy: PrunePolicy, backend: str) -> str:
    """`verdict`, for the backend whose policy it is: another's subgraphs are not its to judge."""
    return verdict(subgraph, policy) if subgraph.backend == backend else ""


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
    named = ", ".join(
        text
        for text in (
            "a multiply-accumulate" if policy.require_macs else "",
            f"{policy.min_ops} operators" if policy.min_ops else "",
            f"{policy.min_macs} multiply-accumulates" if policy.min_macs else "",
        )
        if text
    )
    return Outcome(
        module,
        f"from byocviz.flow.relax.passes import prune\nmod = prune(mod, {going!r})",
        origin="byocviz",
        note=f"Subgraphs without at least {named} go back to TVM."
        if named
        else "No threshold set.",
        outlined=True,
    )
