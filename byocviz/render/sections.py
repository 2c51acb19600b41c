"""Parts of a recording's summary below its steps. Each is None where there is nothing to say."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from byocviz.recording import STEPS, Blocker, Recording, Rewrite, Separation, Step, Subgraph
from byocviz.recording.printable import printable
from byocviz.recording.tables import ReasonGroup, label, reason_groups, subgraph_number
from byocviz.render import figures
from byocviz.render.branches import both_branches
from byocviz.render.pieces import (
    counted,
    first_line,
    fitting,
    indented,
    last_good,
    middle,
    more,
    op_at,
    plain_table,
    safe,
    short_op,
)

TOP = 10
"""Rows of a table that may be long; what is left out is counted below it."""
_PATH = 6
_NAME = 60
_LEAST = 10
"""Columns below which what a subgraph mostly holds says nothing."""
_ENOUGH = 26
"""Columns for it that names leave."""
_LEAST_NAME = 20
_WORD = re.compile(r"[\w#]+")


def rewrites(recording: Recording) -> RenderableType | None:
    """The rewrites that changed something, in order, with what they assume; those that found
    nothing or were off in a line below. None where there are none."""
    every = [rewrite for step in recording.steps for rewrite in step.rewrites]
    if not every:
        return None
    parts: list[RenderableType] = [_rewrite(rewrite) for rewrite in every if rewrite.count]
    idle = [rewrite.name for rewrite in every if rewrite.enabled and not rewrite.count]
    off = [rewrite.name for rewrite in every if not rewrite.enabled]
    if idle:
        parts.append(indented(f"found nothing: {', '.join(idle)}"))
    if off:
        parts.append(indented(f"switched off: {', '.join(off)}"))
    return Group(*parts)


def _rewrite(rewrite: Rewrite) -> Group:
    line = Text("  ").append(printable(rewrite.name, limit=_NAME), style="bold")
    line.append(
        f": {figures.plural(rewrite.count, 'place')}, "
        f"operators {rewrite.before:,} -> {rewrite.after:,}"
    )
    said = [first_line(rewrite.text)]
    if rewrite.assumes:
        said.append(f"Assumes: {first_line(rewrite.assumes)}")
    said += [f"Left {places:,}: {cause}" for cause, places in rewrite.left.items()]
    return Group(line, *(indented(one, 6) for one in said if one))


def subgraphs(
    recording: Recording, step: Step | None = None, top: int = TOP
) -> RenderableType | None:
    """The subgraphs of a step (the last), the most multiply-accumulates first."""
    step = step or last_good(recording)
    if step is None or step.name in STEPS[: STEPS.index("annotate")]:
        return None  # before there can be any
    if not step.subgraphs:
        return indented("none")
    table = SubgraphTable(recording, step, top)
    both = [
        subgraph_number(index)
        for index, sub in enumerate(step.subgraphs)
        if both_branches(recording, step, sub)
    ]
    said = (
        f"{', '.join(both[:top])}{', ...' * (len(both) > top)}: operators of both branches of an "
        "if; as one subgraph, both are always computed"
    )
    return Group(
        table, *more(len(step.subgraphs) - top, "subgraph"), *[indented(said)] * bool(both)
    )


class SubgraphTable:
    """Subgraphs, one a row: number, name, figures, operators. The operators tell one from another,
    so where the width is short it is the names that go, which TVM can make thousands of
    characters long."""

    _FIGURES = ("operators", "MACs", "weights", "in", "out")

    def __init__(self, recording: Recording, step: Step, top: int) -> None:
        order = sorted(
            enumerate(step.subgraphs),
            key=lambda item: (-(item[1].macs or 0), -sum(item[1].ops.values()), item[0]),
        )
        self.rows = order[:top]
        self.kinds = [_kinds(recording, sub) for _, sub in self.rows]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        rows = [
            (
                figures.count(sum(sub.ops.values())),
                figures.short(sub.macs),
                figures.data(sub.param_bytes),
                figures.data(sub.bytes_in),
                figures.data(sub.bytes_out),
            )
            for _, sub in self.rows
        ]
        widths = [max(map(len, column)) for column in zip(self._FIGURES, *rows, strict=True)]
        number = max(len(subgraph_number(index)) for index, _ in self.rows)
        rest = options.max_width - number - sum(widths) - 2 * len(widths)
        names, mostly = self._shares(rest)
        columns = [("", "left")] + [("name", "left")] * bool(names)
        columns += [(name, "right") for name in self._FIGURES]
        table = plain_table(columns + [("mostly", "left")] * bool(mostly))
        for (index, sub), row, kinds in zip(self.rows, rows, self.kinds, strict=True):
            cells: list[RenderableType] = [subgraph_number(index)]
            if names:
                cells.append(Text(middle(sub.name, names)))
            cells += row
            if mostly:
                cells.append(Text(middle(fitting(kinds, mostly), mostly)))
            table.add_row(*cells)
        yield table

    def _shares(self, rest: int) -> tuple[int, int]:
        """Columns of the names and of what is mostly inside; 0 where one has to go."""
        mostly = max(len("mostly"), *map(len, map(counted, self.kinds)))
        longest = max(max(len(printable(sub.name)) for _, sub in self.rows), len("name"))
        left = rest - 2 - min(mostly, max(_ENOUGH, rest // 2)) - 2
        names = min(longest, left) if left >= min(longest, _LEAST_NAME) else 0
        room = rest - 2 - (names + 2 if names else 0)
        return names, room if room >= min(mostly, _LEAST) else 0


def _kinds(recording: Recording, sub: Subgraph) -> dict[str, int]:
    """A subgraph's operators by name: those that compute most first, then the most frequent."""
    macs: Counter[str] = Counter()
    for key in sub.op_ids:
        op = recording.ops[key]
        # What cannot be counted computes something.
        macs[op.name] += 1 if op.macs is None else op.macs
    return dict(sorted(sub.ops.items(), key=lambda item: (-macs[item[0]], -item[1], item[0])))


def reasons(
    recording: Recording, step: Step | None = None, top: int = TOP
) -> RenderableType | None:
    """Why operators stay on TVM at a step (the last), by operator and code, with the mend."""
    step = step or last_good(recording)
    if step is None or not step.reasons:
        return None
    groups = reason_groups(recording, step)
    parts = [_reason(group) for group in groups[:top]]
    return Group(*parts, *more(len(groups) - top, "kind of operator", "kinds of operators"))


def _reason(group: ReasonGroup) -> Group:
    line = Text(f"{len(group.op_ids):>6,}  ")
    line.append(printable(short_op(group.op), limit=_NAME), style="bold")
    line.append(printable(f"  [{group.code}]"))
    parts: list[RenderableType] = [line]
    said, places = next(iter(group.texts.items()))
    others = len(group.texts) - 1
    if others:
        wordings = figures.plural(others, "other wording")
        said = f"{first_line(said)} ({places:,} of {len(group.op_ids):,}; {wordings})"
    parts.append(indented(first_line(said), 8))
    mend = next(iter(group.mends), "")
    if mend:
        parts.append(indented(f"-> {first_line(mend)}", 8))
    return Group(*parts)


def separations(
    recording: Recording, step: Step | None = None, top: int = TOP
) -> RenderableType | None:
    """What keeps the subgraphs of a step (the last) from being one: pairs by the kinds of the
    operators between them, the most pairs first."""
    step = step or last_good(recording)
    if step is None or not step.separations:
        return None
    groups: dict[tuple[str, tuple[str, ...]], list[Separation]] = {}
    for apart in step.separations:
        names = tuple(label(recording.ops[key]) for key in apart.path)
        groups.setdefault((apart.code, names), []).append(apart)
    order = sorted(groups.values(), key=lambda group: (-len(group), len(group[0].path)))
    parts = [_separation(recording, step, group) for group in order[:top]]
    return Group(*parts, *more(len(order) - top, "cause"))


def _separation(recording: Recording, step: Step, group: list[Separation]) -> Group:
    """Pairs that the same kinds of operators keep apart, told by the first of them."""
    apart = group[0]
    line = Text(f"{len(group):>6,}  {'pair' if len(group) == 1 else 'pairs'}")
    line.append(printable(f"  [{apart.code}]"))
    pair = (subgraph_number(apart.a), subgraph_number(apart.b))
    text = first_line(numbered(step, apart.text))
    parts: list[RenderableType] = [line, indented(text, 8)]
    said = " | ".join(pair)
    if apart.path:
        named = [op_at(recording, key) for key in apart.path]
        half = _PATH // 2
        if len(named) > _PATH + 1:
            named[half:-half] = [f"({len(apart.path) - _PATH:,} more)"]
        said += f": {' -> '.join(named)}"
    if len(group) > 1:
        said = f"such as {said}"
    if len(group) > 1 or apart.path or not set(pair) <= set(_WORD.findall(text)):
        parts.append(indented(said, 8))
    return Group(*parts)


def numbered(step: Step, text: str) -> str:
    """A sentence about subgraphs of a step with their numbers in place of their names."""
    numbers = {sub.name: subgraph_number(index) for index, sub in enumerate(step.subgraphs)}
    return _WORD.sub(lambda word: numbers.get(word[0], word[0]), text)


def blockers(recording: Recording, top: int = TOP) -> RenderableType | None:
    """The what-if of each kind of operator left on TVM, the largest gain first. None where it
    was not worked out, and where a step failed, so that it could not be."""
    if recording.what_if is None or recording.failed is not None:
        return None
    return blocker_table(recording.what_if, top)


def blocker_table(found: Sequence[Blocker], top: int = TOP) -> RenderableType:
    """Blockers in their order, below what they compare with."""
    if not found:
        return indented("nothing: no operator is left on TVM that a rule could take")
    now = found[0]
    parts: list[RenderableType] = [
        indented(
            f"now: {figures.plural(now.subgraphs_now, 'subgraph')}, "
            f"{figures.share(now.coverage_ops_now)} of operators and "
            f"{figures.share(now.coverage_macs_now)} of MACs on the backend, "
            f"{figures.data(now.boundary_bytes_now)} over the boundary"
        )
    ]
    names = ("operators", "subgraphs", "on backend", "of MACs", "boundary")
    table = plain_table([("a rule for", "left"), *((name, "right") for name in names)])
    for one in found[:top]:
        table.add_row(*map(safe, _blocker(one)))
    parts += [table, *more(len(found) - top, "kind", "kinds")]
    parts += [
        indented(f"{short_op(one.op)}: partitioning failed: {first_line(one.error)}")
        for one in found[:top]
        if one.error
    ]
    return Group(*parts)


def _blocker(one: Blocker) -> list[str]:
    name = middle(short_op(one.op), 26)
    if one.error:
        return [name, figures.count(one.count), "failed", "-", "-", "-"]
    return [
        name,
        figures.count(one.count),
        figures.count(one.subgraphs),
        figures.share(one.coverage_ops),
        figures.share(one.coverage_macs),
        figures.data(one.boundary_bytes),
    ]
