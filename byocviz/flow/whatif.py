"""What if a rule took it: the figures of partitioning again, for each kind of operator on TVM.

Knows no TVM; each dialect partitions in its own way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from byocviz.recording import Recording
from byocviz.recording.compare import boundary_bytes
from byocviz.recording.schema import Blocker, Step

Tell = Callable[[str, int, int], None]


def candidates(data: Recording, step: str, beyond_help: str) -> dict[str, int]:
    """Operators that stay on TVM at that step for want of a rule, by name with their count, most
    first. Those whose reason is ``beyond_help`` are left out: no rule would help."""
    found = next((s for s in data.steps if s.name == step and s.error is None), None)
    if found is None:
        return {}
    names = Counter(
        data.ops[identity].name
        for identity, reason in found.reasons.items()
        if reason.code != beyond_help
    )
    return dict(sorted(names.items(), key=lambda item: (-item[1], item[0])))


def blockers(
    data: Recording, kinds: dict[str, int], partition: Callable[[str], Step], tell: Tell
) -> list[Blocker]:
    """A `Blocker` for each of ``kinds``, the largest gain first.

    ``partition`` partitions again with one more rule for the operator of that name, and gives the
    last step of it; what it raises becomes `Blocker.error`.
    """
    last = data.steps[-1]
    now, bytes_now = last.profile, boundary_bytes(last)
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
            bytes_now,
            bytes_now,
        )
        try:
            then = partition(name)
        except Exception as error:
            blocker.error = f"{type(error).__name__}: {str(error).strip()[-300:]}"
        else:
            blocker.subgraphs = then.profile.subgraphs
            blocker.coverage_ops = then.profile.coverage_ops
            blocker.coverage_macs = then.profile.coverage_macs
            blocker.boundary_bytes = boundary_bytes(then)
        found.append(blocker)
    found.sort(key=lambda b: (-b.gain, -(b.coverage_ops - b.coverage_ops_now), b.op))
    return found
