"""What a prune policy would do, without doing it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from byocviz.recording import Recording
from byocviz.recording.schema import PrunePolicy, Step, Subgraph


@dataclass(frozen=True)
class PrunePreview:
    """The partitioned module, and what a policy would leave of it."""

    going: tuple[tuple[str, str], ...]
    """Subgraphs that would go back to TVM, each with why."""
    subgraphs: tuple[int, int]
    """Now and then."""
    coverage_ops: tuple[float, float]
    coverage_macs: tuple[float | None, float | None]
    boundary_bytes: tuple[int | None, int | None]
    """Bytes that enter and leave all subgraphs."""


def preview(
    recording: Recording, policy: PrunePolicy | None, can: Collection[str] | None = None
) -> PrunePreview | None:
    """Of the partition step; None where it did not run. ``can`` are the external functions that
    can be put back; None: all."""
    from byocviz.flow.pruning import pruned

    step = next((s for s in recording.steps if s.name == "partition" and not s.error), None)
    if step is None:
        return None
    backend = recording.backend.name
    causes = [pruned(s, policy, backend) if policy else "" for s in step.subgraphs]
    if can is not None:
        causes = [
            c if s.function in can else "" for s, c in zip(step.subgraphs, causes, strict=True)
        ]
    going = [(s, c) for s, c in zip(step.subgraphs, causes, strict=True) if c]
    return PrunePreview(
        tuple((s.name, c) for s, c in going),
        (len(step.subgraphs), len(step.subgraphs) - len(going)),
        *_coverage(step, [s for s, _ in going], recording),
    )


def _coverage(
    step: Step, going: list[Subgraph], recording: Recording
) -> tuple[tuple[float, float], tuple[float | None, float | None], tuple[int | None, int | None]]:
    now = step.profile
    ops = sum(recording.ops[i].kind == "operator" for s in going for i in s.op_ids)
    then_ops = (now.offloaded_ops - ops) / now.total if now.total else 0.0
    macs: float | None = None
    lost = [s.macs for s in going]
    if now.coverage_macs is not None and now.offloaded_macs is not None and None not in lost:
        macs = (now.offloaded_macs - sum(m or 0 for m in lost)) / (now.macs or 1)
    parts = [now.bytes_in, now.bytes_out]
    before = None if None in parts else sum(p or 0 for p in parts)
    crossing = [b for s in going for b in (s.bytes_in, s.bytes_out)]
    after = None
    if before is not None and None not in crossing:
        after = before - sum(b or 0 for b in crossing)
    return (now.coverage_ops, then_ops), (now.coverage_macs, macs), (before, after)
