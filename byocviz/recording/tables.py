"""A recording as rows: lists of flat dicts, and pandas frames where pandas is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from byocviz.errors import StepMissing, missing
from byocviz.recording.compare import boundary_bytes
from byocviz.recording.recording import Recording
from byocviz.recording.schema import Operator, Step

if TYPE_CHECKING:
    import pandas

Row = dict[str, Any]


class ReasonGroup(msgspec.Struct):
    """Operators of one label that stay on TVM for reasons of one code."""

    code: str
    op: str
    """The `label` that they share."""
    op_ids: list[int]
    texts: dict[str, int]
    """The sentences, with how many operators each is said of; the most frequent first."""
    mends: dict[str, int]
    rules: list[str]


def label(op: Operator) -> str:
    """What an operator does: its name, and for a call of a TIR function that function's name
    without the number by which TVM tells equal names apart (``relax.call_tir maximum``)."""
    callee = op.callee.rstrip("0123456789_")
    return f"{op.name} {callee}" if callee else op.name


def reason_groups(recording: Recording, step: Step) -> list[ReasonGroup]:
    """The reasons of a step by code and operator, the most operators first."""
    groups: dict[tuple[str, str], ReasonGroup] = {}
    for key, reason in sorted(step.reasons.items()):
        op = label(recording.ops[key])
        group = groups.setdefault((reason.code, op), ReasonGroup(reason.code, op, [], {}, {}, []))
        group.op_ids.append(key)
        group.texts[reason.text] = group.texts.get(reason.text, 0) + 1
        group.mends[reason.mend] = group.mends.get(reason.mend, 0) + 1
        if reason.rule and reason.rule not in group.rules:
            group.rules.append(reason.rule)
    for group in groups.values():
        group.texts = _by_count(group.texts)
        group.mends = _by_count(group.mends)
    return sorted(groups.values(), key=lambda group: (-len(group.op_ids), group.code, group.op))


def _by_count(counts: dict[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: -item[1]))


def subgraph_number(index: int) -> str:
    """What a subgraph is called wherever it is shown, by its index in `Step.subgraphs`: ``S1``
    for the first. A number holds within one step."""
    return f"S{index + 1}"


class Tables:
    """A recording as tables: ``steps``, ``operators``, ``subgraphs``, ``reasons``,
    ``rewrites``, ``separations`` and ``blockers``, which ``names`` lists.

    Each is a property, computed when asked: a list of flat dicts, one a row, all with the same
    keys in the same order. `frame` makes a pandas frame of one::

        recording.tables.frame("subgraphs").nlargest(5, "macs")

    Unknown figures are None. Bytes and seconds are what columns of that name hold, coverage is a
    share of 0 to 1. Subgraphs are ``S1``, ``S2`` ... within their step, as in figures and text.
    """

    names = ("steps", "operators", "subgraphs", "reasons", "rewrites", "separations", "blockers")

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    @property
    def steps(self) -> list[Row]:
        """One a step."""
        return [
            {
                "step": step.name,
                "operators": step.profile.total,
                "subgraphs": len(step.subgraphs),
                "offloaded_ops": step.profile.offloaded_ops,
                "coverage_ops": step.profile.coverage_ops,
                "macs": step.profile.macs,
                "offloaded_macs": step.profile.offloaded_macs,
                "coverage_macs": step.profile.coverage_macs,
                "bytes_in": step.profile.bytes_in,
                "bytes_out": step.profile.bytes_out,
                "boundary_bytes": boundary_bytes(step),
                "param_bytes": step.profile.param_bytes,
                "tvm_seconds": step.tvm_seconds,
                "capture_seconds": step.capture_seconds,
                "changed": step.changed,
                "max_difference": step.max_difference,
                "error": f"{step.error.type}: {step.error.message}" if step.error else "",
            }
            for step in self._recording.steps
        ]

    @property
    def operators(self) -> list[Row]:
        """One an operator or call, with where it ended up: its place at the last step."""
        recording = self._recording
        good = [step for step in recording.steps if step.error is None]
        places = good[-1].places if good else {}
        reasons = good[-1].reasons if good else {}
        rows = []
        for key, op in sorted(recording.ops.items()):
            place, reason = places.get(key), reasons.get(key)
            rows.append(
                {
                    "id": key,
                    "name": op.name,
                    "kind": op.kind,
                    "var": op.var,
                    "source": op.source,
                    "callee": op.callee,
                    "arg_types": ", ".join(op.arg_types),
                    "out_types": ", ".join(op.out_types),
                    "macs": op.macs,
                    "param_bytes": op.param_bytes,
                    "created_by": op.created_by,
                    "fate": op.fate,
                    "fate_by": op.fate_by,
                    "on": place.on if place else "",
                    "function": place.function if place else "",
                    "composite": place.composite if place else "",
                    "subgraph": (
                        subgraph_number(place.subgraph) if place and place.subgraph >= 0 else ""
                    ),
                    "reason": reason.code if reason else "",
                }
            )
        return rows

    @property
    def subgraphs(self) -> list[Row]:
        """One a subgraph and step."""
        return [
            {
                "step": step.name,
                "subgraph": subgraph_number(index),
                "name": sub.name,
                "backend": sub.backend,
                "function": sub.function,
                "caller": sub.caller,
                "operators": sum(sub.ops.values()),
                "composites": sum(sub.composites.values()),
                "macs": sub.macs,
                "param_bytes": sub.param_bytes,
                "bytes_in": sub.bytes_in,
                "bytes_out": sub.bytes_out,
                "inputs": len(sub.inputs),
                "outputs": len(sub.outputs),
            }
            for step in self._recording.steps
            for index, sub in enumerate(step.subgraphs)
        ]

    @property
    def reasons(self) -> list[Row]:
        """One an operator left on TVM and step."""
        return [
            {
                "step": step.name,
                "id": key,
                "op": self._recording.ops[key].name,
                "code": reason.code,
                "rule": reason.rule,
                "text": reason.text,
                "mend": reason.mend,
            }
            for step in self._recording.steps
            for key, reason in sorted(step.reasons.items())
        ]

    @property
    def rewrites(self) -> list[Row]:
        """One a rewrite, with the step that made it."""
        return [
            {
                "step": step.name,
                "rewrite": rewrite.name,
                "text": rewrite.text,
                "count": rewrite.count,
                "before": rewrite.before,
                "after": rewrite.after,
                "origin": rewrite.origin,
                "assumes": rewrite.assumes,
                "enabled": rewrite.enabled,
                "left": sum(rewrite.left.values()),
                "seconds": rewrite.seconds,
            }
            for step in self._recording.steps
            for rewrite in step.rewrites
        ]

    @property
    def separations(self) -> list[Row]:
        """One a pair of subgraphs that could not be one, and step."""
        return [
            {
                "step": step.name,
                "a": subgraph_number(apart.a),
                "b": subgraph_number(apart.b),
                "code": apart.code,
                "text": apart.text,
                "path": " -> ".join(self._recording.ops[key].name for key in apart.path),
                "between": len(apart.path),
            }
            for step in self._recording.steps
            for apart in step.separations
        ]

    @property
    def blockers(self) -> list[Row]:
        """One a kind of operator; empty where `Recording.blockers` was never asked."""
        return [
            {**msgspec.structs.asdict(blocker), "gain": blocker.gain}
            for blocker in self._recording.what_if or []
        ]

    def rows(self, name: str) -> list[Row]:
        """The table of that name, as its property gives it. Raises `StepMissing` for an unknown
        name."""
        if name not in self.names:
            raise StepMissing(
                f"No table {name!r} in a recording.", f"There are: {', '.join(self.names)}."
            )
        found: list[Row] = getattr(self, name)
        return found

    def frame(self, name: str) -> pandas.DataFrame:
        """The table of that name as a pandas frame, one column a key. Raises `StepMissing` for an
        unknown name, `MissingPackage` where pandas is not installed."""
        rows = self.rows(name)
        try:
            import pandas
        except ImportError as error:
            raise missing("pandas", "tables", "to make a frame; `rows(name)` needs none") from error
        return pandas.DataFrame(rows)

    def __repr__(self) -> str:
        return f"<Tables of {self._recording.title!r}: {', '.join(self.names)}>"


def tables(recording: Recording) -> Tables:
    """The rows of a recording, by table, as `Recording.tables`: see `Tables`."""
    return Tables(recording)


__all__ = ["ReasonGroup", "Row", "Tables", "reason_groups", "subgraph_number", "tables"]
