"""What changed between two steps, or between two recordings. Pure functions over the record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from byocviz.errors import StepMissing
from byocviz.recording.printable import printable
from byocviz.recording.recording import Recording
from byocviz.recording.schema import Operator, Place, Step

if TYPE_CHECKING:
    from rich.console import RenderableType

Pair = tuple[int, int]
"""A count before and after."""

RELAX_NAMES = {
    "cast": "astype",
    "concatenate": "concat",
    "gather": "gather_elements",
    "nn.leaky_relu": "nn.leakyrelu",
    "reverse": "flip",
    "transpose": "permute_dims",
}
"""Relay's names of operators that have another one in Relax, only where both do the same.

TVM 0.19 holds importers for either dialect, which make one of ONNX's Cast, Concat,
GatherElements, LeakyRelu and Transpose each (tvm/relay/frontend/onnx.py,
tvm/relax/frontend/onnx/), and documents ``relay.reverse`` and ``relax.flip`` alike: they turn the
order of the elements along one axis round. What only resembles another is left out: ``nn.dense``
has its weight transposed, ``nn.batch_flatten`` keeps the first dimension, ``argwhere`` gives what
``nonzero`` does, transposed.
"""


class Move(msgspec.Struct, frozen=True):
    """An operator (or call) that stands elsewhere."""

    before: Place
    after: Place
    what: tuple[str, ...]
    """Of ``function``, ``composite`` and ``subgraph``, those that differ. A subgraph is the same
    while it holds the same operators, whatever its name and number."""


class Comparison(msgspec.Struct):
    """From step ``a`` to step ``b`` of one recording. Ids are in ascending order."""

    a: str
    b: str
    added: list[int]
    """Ids that stand in ``b`` only."""
    gone: list[int]
    """Ids that stand in ``a`` only."""
    moved: dict[int, Move]
    recoloured: dict[int, tuple[str, str]]
    """Ids whose ``on`` changed, with it before and after."""
    counts: dict[str, Pair]
    """Operators by name, where their number changed; the largest change first."""
    total: Pair
    subgraphs: Pair
    joined: dict[str, list[str]]
    """Subgraphs of ``b`` that hold operators of several of ``a``, with those."""
    dropped: list[str]
    """Subgraphs of ``a`` of whose operators none is in a subgraph of ``b``."""
    coverage_ops: tuple[float, float]
    coverage_macs: tuple[float | None, float | None]
    boundary_bytes: tuple[int | None, int | None]
    """Bytes that enter and leave all subgraphs."""
    text_changed: bool
    """Whether the IR text of any function differs."""

    @property
    def changed(self) -> bool:
        """Whether anything differs that a person could see."""
        return bool(
            self.added
            or self.gone
            or self.moved
            or self.recoloured
            or self.counts
            or self.subgraphs[0] != self.subgraphs[1]
            or self.boundary_bytes[0] != self.boundary_bytes[1]
            or self.text_changed
        )

    def __rich__(self) -> RenderableType:
        from byocviz.render.text import comparison

        return comparison(self)

    def __str__(self) -> str:
        return _printed(self.__rich__())

    def __repr__(self) -> str:
        # msgspec's own lists every operator that moved, with both its places.
        return (
            f"<Comparison {printable(self.a)} -> {printable(self.b)}: {len(self.added)} added, "
            f"{len(self.gone)} gone, {len(self.moved)} moved, "
            f"{', '.join(recolouring(self)) or 'none to another backend'}>"
        )


class RecordingComparison(msgspec.Struct):
    """A step of one recording beside a step of another, by figures: ids of two recordings
    have nothing to do with each other."""

    a: str
    b: str
    """Title and step."""
    counts: dict[str, Pair]
    """Operators by name, where their number differs; the largest difference first."""
    total: Pair
    offloaded: Pair
    subgraphs: Pair
    macs: tuple[int | None, int | None]
    coverage_ops: tuple[float, float]
    coverage_macs: tuple[float | None, float | None]
    boundary_bytes: tuple[int | None, int | None]
    reasons: dict[str, Pair]
    """Operators on TVM by the code of their reason, where it differs."""
    rules_on: tuple[list[str], list[str]]
    """Rules that only the one, or only the other, had switched on."""

    def __rich__(self) -> RenderableType:
        from byocviz.render.text import recording_comparison

        return recording_comparison(self)

    def __str__(self) -> str:
        return _printed(self.__rich__())

    def __repr__(self) -> str:
        return (
            f"<RecordingComparison {printable(self.a, limit=80)} | {printable(self.b, limit=80)}: "
            f"{self.total[0]} | {self.total[1]} operators, "
            f"{self.subgraphs[0]} | {self.subgraphs[1]} subgraphs>"
        )


def _printed(renderable: RenderableType) -> str:
    from byocviz.render.text import to_text

    return to_text(renderable).rstrip("\n")


def compare(recording: Recording, a: str | Step, b: str | Step) -> Comparison:
    """What changed from step ``a`` to step ``b``, by name or as `Step`.

    Raises `StepMissing` where a step is not there or failed, so that there is nothing to compare.
    """
    first, second = _captured(recording, a), _captured(recording, b)
    before, after = first.places, second.places
    both = sorted(before.keys() & after.keys())
    companions = _companions(first), _companions(second)
    moves = {
        key: Move(before[key], after[key], what)
        for key in both
        if (what := _moved(key, before[key], after[key], companions))
    }
    origins = _origins(first, second)
    reached = {name for names in origins.values() for name in names}
    counts = operator_counts(recording.ops, first), operator_counts(recording.ops, second)
    return Comparison(
        a=first.name,
        b=second.name,
        added=sorted(after.keys() - before.keys()),
        gone=sorted(before.keys() - after.keys()),
        moved=moves,
        recoloured={
            key: (before[key].on, after[key].on) for key in both if before[key].on != after[key].on
        },
        counts=differing(*counts),
        total=(sum(counts[0].values()), sum(counts[1].values())),
        subgraphs=(len(first.subgraphs), len(second.subgraphs)),
        joined={name: names for name, names in origins.items() if len(names) > 1},
        dropped=[sub.name for sub in first.subgraphs if sub.name not in reached],
        coverage_ops=(first.profile.coverage_ops, second.profile.coverage_ops),
        coverage_macs=(first.profile.coverage_macs, second.profile.coverage_macs),
        boundary_bytes=(boundary_bytes(first), boundary_bytes(second)),
        text_changed=_texts(recording, first) != _texts(recording, second),
    )


def compare_recordings(
    first: Recording, a: str | Step, second: Recording, b: str | Step
) -> RecordingComparison:
    """Step ``a`` of one recording beside step ``b`` of another: two sets of rules on one model,
    or two models on one backend. Raises `StepMissing` as `compare` does."""
    one, other = _captured(first, a), _captured(second, b)
    counts = operator_counts(first.ops, one), operator_counts(second.ops, other)
    if first.ir != second.ir:  # the same operator by its name in either dialect
        counts = _undialected(counts[0], first.ir), _undialected(counts[1], second.ir)
    on = [{rule.name for rule in rec.backend.rules if rule.enabled} for rec in (first, second)]
    return RecordingComparison(
        a=f"{first.title}: {one.name}",
        b=f"{second.title}: {other.name}",
        counts=differing(*counts),
        total=(sum(counts[0].values()), sum(counts[1].values())),
        offloaded=(one.profile.offloaded_ops, other.profile.offloaded_ops),
        subgraphs=(len(one.subgraphs), len(other.subgraphs)),
        macs=(one.profile.macs, other.profile.macs),
        coverage_ops=(one.profile.coverage_ops, other.profile.coverage_ops),
        coverage_macs=(one.profile.coverage_macs, other.profile.coverage_macs),
        boundary_bytes=(boundary_bytes(one), boundary_bytes(other)),
        reasons=differing(
            Counter(reason.code for reason in one.reasons.values()),
            Counter(reason.code for reason in other.reasons.values()),
        ),
        rules_on=(sorted(on[0] - on[1]), sorted(on[1] - on[0])),
    )


def operator_counts(ops: Mapping[int, Operator], step: Step) -> Counter[str]:
    """Operators that stand at a step, by name; calls of functions do not count."""
    return Counter(ops[key].name for key in step.places if ops[key].kind == "operator")


def recolouring(found: Comparison) -> list[str]:
    """Where operators run now that ran elsewhere: ``301 to tensorrt``, ``3 back to TVM``."""
    to = Counter(after for _, after in found.recoloured.values())
    return [
        f"{number:,} back to TVM" if on == "tvm" else f"{number:,} to {printable(on, limit=40)}"
        for on, number in sorted(to.items(), key=lambda one: (one[0] == "tvm", -one[1], one[0]))
    ]


def _undialected(counts: Mapping[str, int], ir: str) -> Counter[str]:
    """Counts by Relax's names without the dialect: Relax has ``relax.nn.conv2d``, Relay
    ``nn.conv2d``."""
    found: Counter[str] = Counter()
    for name, number in counts.items():
        named = RELAX_NAMES.get(name, name) if ir == "relay" else name
        found[named.removeprefix("relax.")] += number
    return found


def differing(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, Pair]:
    """Names whose count differs, with it before and after; the largest difference first."""
    pairs = {
        name: (before.get(name, 0), after.get(name, 0))
        for name in before.keys() | after.keys()
        if before.get(name, 0) != after.get(name, 0)
    }
    order = sorted(pairs, key=lambda name: (-abs(pairs[name][1] - pairs[name][0]), name))
    return {name: pairs[name] for name in order}


def boundary_bytes(step: Step) -> int | None:
    """Bytes that enter and leave all subgraphs of a step; None where they are unknown."""
    inwards, outwards = step.profile.bytes_in, step.profile.bytes_out
    return None if inwards is None or outwards is None else inwards + outwards


def _captured(recording: Recording, which: str | Step) -> Step:
    step = recording.step(which) if isinstance(which, str) else which
    if step.error is not None and not step.places:
        raise StepMissing(
            f"Step {step.name!r} of {recording.title!r} failed "
            f"({printable(step.error.type)}), so there is nothing to compare.",
            step.error.mend or "Compare the steps before it.",
        )
    return step


def _companions(step: Step) -> list[frozenset[int]]:
    """Of each subgraph, what it holds: its identity from step to step."""
    return [frozenset(sub.op_ids) for sub in step.subgraphs]


def _moved(
    key: int,
    before: Place,
    after: Place,
    companions: tuple[list[frozenset[int]], list[frozenset[int]]],
) -> tuple[str, ...]:
    what = []
    if before.function != after.function:
        what.append("function")
    if before.composite != after.composite:
        what.append("composite")
    inside = [
        companions[side][place.subgraph] if place.subgraph >= 0 else None
        for side, place in enumerate((before, after))
    ]
    if inside[0] != inside[1]:
        what.append("subgraph")
    return tuple(what)


def _origins(first: Step, second: Step) -> dict[str, list[str]]:
    """For each subgraph of ``second``, the subgraphs of ``first`` whose operators it holds."""
    owner = {key: sub.name for sub in first.subgraphs for key in sub.op_ids}
    return {
        sub.name: list(dict.fromkeys(owner[key] for key in sub.op_ids if key in owner))
        for sub in second.subgraphs
    }


def _texts(recording: Recording, step: Step) -> dict[str, str]:
    return {view.name: recording.texts.get(view.text, "") for view in step.functions}
