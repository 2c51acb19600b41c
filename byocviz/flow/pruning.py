"""Which subgraphs go back to TVM, by a policy."""

from __future__ import annotations

from byocviz.recording.schema import PrunePolicy, Subgraph


def verdict(subgraph: Subgraph, policy: PrunePolicy) -> str:
    """Why a subgraph goes back, with its figure against the threshold; "" where it stays.

    An unknown figure keeps it: what cannot be counted cannot be too little.
    """
    operators = sum(subgraph.ops.values())
    if policy.require_macs and subgraph.macs == 0:
        return "no multiply-accumulate (0, at least 1 wanted)"
    if operators < policy.min_ops:
        return f"{operators} operator{'s' * (operators != 1)}, at least {policy.min_ops} wanted"
    if subgraph.macs is not None and subgraph.macs < policy.min_macs:
        return f"{subgraph.macs} multiply-accumulates, at least {policy.min_macs} wanted"
    return ""


def pruned(subgraph: Subgraph, policy: PrunePolicy, backend: str) -> str:
    """`verdict`, for the backend whose policy it is: another's subgraphs are not its to judge."""
    return verdict(subgraph, policy) if subgraph.backend == backend else ""


JOIN = " Or join it to a neighbour (see what keeps them apart)."
_MENDS = (
    (
        "no multiply-accumulate",
        "Keep such ones: record(..., prune=byocviz.PrunePolicy(require_macs=False)), or "
        "prune=False." + JOIN,
    ),
    (
        "operator",
        "Lower the threshold: record(..., prune=byocviz.PrunePolicy(min_ops=...)), or "
        "prune=False." + JOIN,
    ),
    (
        "multiply-accumulates",
        "Lower the threshold: record(..., prune=byocviz.PrunePolicy(min_macs=...)), or "
        "prune=False." + JOIN,
    ),
)
"""Words of `verdict`, and what to do about them."""


def mend_pruned(cause: str) -> str:
    """What to do where a subgraph went back for this cause."""
    for words, mend in _MENDS:
        if words in cause:
            return mend
    return "record(..., prune=False) keeps it." + JOIN


def named(policy: PrunePolicy) -> str:
    """The thresholds in words; "" where none is set."""
    return ", ".join(
        text
        for text in (
            "a multiply-accumulate" if policy.require_macs else "",
            f"{policy.min_ops} operators" if policy.min_ops else "",
            f"{policy.min_macs} multiply-accumulates" if policy.min_macs else "",
        )
        if text
    )
