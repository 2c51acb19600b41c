"""A recording as text for a terminal: rich renderables, and plain text of them.

Every string of the recording is shown through `printable` and as `rich.text.Text`, never as
markup, so that no name can colour, move or hide what stands around it. Nothing is told by
colour alone.
"""

from __future__ import annotations

import io
import shutil
import sys
from typing import TextIO

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from byocviz.recording import Comparison, FunctionView, Recording, RecordingComparison, Step
from byocviz.recording.compare import boundary_bytes, recolouring
from byocviz.recording.printable import printable
from byocviz.render import figures
from byocviz.render.fitted import Column, Fitted
from byocviz.render.pieces import first_line, indented, more, safe, short_op
from byocviz.render.result_sections import built, checked, detected, timed
from byocviz.render.sections import (
    TOP,
    blocker_table,
    blockers,
    reasons,
    rewrites,
    separations,
    subgraphs,
)
from byocviz.render.unknown import unknown

__all__ = [
    "StepsTable",
    "blocker_table",
    "blockers",
    "comparison",
    "composites",
    "header",
    "print_to",
    "reasons",
    "recording_comparison",
    "rewrites",
    "separations",
    "subgraphs",
    "summary",
    "to_text",
    "unknown",
]


def print_to(renderable: RenderableType, stream: TextIO | None = None) -> None:
    """Prints a renderable to ``stream`` (stdout by default): styled on a terminal, else as
    `to_text` gives it. Raises what writing raises, as BrokenPipeError."""
    file = sys.stdout if stream is None else stream
    console = Console(file=file)
    if console.is_terminal or console.is_jupyter:
        console.print(renderable, crop=False)
        return
    encoding = getattr(file, "encoding", None) or "utf-8"
    file.write(to_text(renderable, console.width, encoding=encoding))
    file.flush()


def to_text(
    renderable: RenderableType, width: int | None = None, *, encoding: str | None = None
) -> str:
    """Plain text of a renderable: no escapes, no trailing blanks, ``width`` columns (the
    terminal's by default, 80 where there is none). Characters that ``encoding`` (stdout's)
    does not have are replaced."""
    encoding = encoding or getattr(sys.stdout, "encoding", None) or "utf-8"
    sheet = _Sheet(encoding)
    columns = width or shutil.get_terminal_size((80, 24)).columns
    console = Console(
        file=sheet,
        width=max(columns, 20),
        color_system=None,
        force_terminal=False,
        force_jupyter=False,
        force_interactive=False,
        legacy_windows=False,
        markup=False,
        emoji=False,
        highlight=False,
    )
    console.print(renderable, crop=False)
    text = sheet.getvalue().encode(encoding, "replace").decode(encoding)
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n") + "\n"


class _Sheet(io.StringIO):
    """A text file in memory that claims stdout's encoding, by which rich picks its lines."""

    def __init__(self, encoding: str) -> None:
        super().__init__()
        self._encoding = encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding


def summary(recording: Recording, top: int = TOP) -> Group:
    """Everything in order: what was recorded, the steps, the rewrites, the subgraphs, why the
    rest stays on TVM, what keeps the subgraphs apart, the blockers where they are known, and what
    a "?" stands for."""
    parts: list[RenderableType] = [header(recording), "", StepsTable(recording)]
    errors = _errors(recording)
    parts += ["", *errors] if errors else []
    for title, part in (
        ("Rewrites of the prepare step", rewrites(recording)),
        ("Subgraphs", subgraphs(recording, top=top)),
        ("Why operators stay on TVM", reasons(recording, top=top)),
        ("What keeps subgraphs apart", separations(recording, top=top)),
        ("What one more rule would change", blockers(recording, top=top)),
        ("Build", built(recording, top)),
        ("Results against TVM alone", checked(recording, top)),
        ("Latency", timed(recording)),
        ("Detections", detected(recording, top)),
    ):
        if part is not None:
            parts += ["", Text(title, style="bold"), part]
    note = unknown(recording)
    if note is not None:
        parts += ["", note]
    return Group(*parts)


def header(recording: Recording) -> Group:
    """Title, backend and its rules, weights, and the versions that made it."""
    title = safe(recording.title or "untitled", style="bold")
    backend = recording.backend
    off = [rule.name for rule in backend.rules if not rule.enabled]
    line = safe(f"{recording.ir}, entry {recording.entry!r}, backend {backend.name or 'none'}")
    line.append(f", {figures.plural(len(backend.rules), 'rule')}")
    if off:
        line.append(printable(f" ({len(off)} off: {', '.join(off[:4])}"))
        line.append(", ...)" if len(off) > 4 else ")")
    lines: list[RenderableType] = [title, line]
    if backend.options:
        told = ", ".join(f"{name} {value}" for name, value in backend.options.items())
        lines.append(safe(f"options: {told}"))
    weights = recording.weights
    if weights.tensors:
        lines.append(
            Text(
                f"weights: {figures.plural(weights.tensors, 'tensor')}, "
                f"{figures.short(weights.elements)} elements, {figures.data(weights.bytes)} "
                "(not in the recording)"
            )
        )
    made = ", ".join(f"{name} {version}" for name, version in recording.made_with.items())
    if made or recording.created:
        when = f"recorded {recording.created}" if recording.created else "recorded"
        lines.append(safe(f"{when} with {made}" if made else when, style="dim"))
    return Group(*lines)


_LESS = ("composites", "of MACs", "boundary", "on backend")
"""Of what happened, what is left out first where even that is too wide."""


class StepsTable:
    """The steps, one a row: one table where the width allows it, else what happened and how
    long it took apart."""

    _WHAT = ("operators", "composites", "subgraphs", "on backend", "of MACs", "boundary")
    _TIME = ("changed", "TVM", "capture")

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.verified = any(
            step.max_difference is not None or step.verify_error for step in recording.steps
        )

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        whole = self._columns(what=True, time=True)
        if Fitted(whole).width(console, options) <= options.max_width:
            yield Fitted(whole)
            return
        yield Fitted(self._columns(what=True, time=False), [[name] for name in _LESS])
        yield ""
        yield Fitted(self._columns(what=False, time=True), [["capture"], ["TVM"]])

    def _columns(self, *, what: bool, time: bool) -> list[Column]:
        names = [*(self._WHAT if what else ()), *(self._TIME if time else ())]
        if time and self.verified:
            names.append("max difference")
        rows = []
        for step in self.recording.steps:
            row = [step.name, *(_what(step) if what else ()), *(_time(step) if time else ())]
            if time and self.verified:
                row.append("failed" if step.verify_error else _checked(step))
            rows.append(row)
        cells = list(zip(*rows, strict=True)) or [()] * (len(names) + 1)
        heads = [("step", "left"), *((name, "right") for name in names)]
        return [Column(*pair, column) for pair, column in zip(heads, cells, strict=True)]


def _what(step: Step) -> list[str]:
    if step.error is not None:
        return ["failed", *["-"] * 5]
    profile = step.profile
    return [
        figures.count(profile.total),
        figures.count(composites(step)),
        figures.count(len(step.subgraphs)),
        figures.share(profile.coverage_ops),
        "-" if profile.macs == 0 else figures.share(profile.coverage_macs),
        figures.data(boundary_bytes(step)),
    ]


def _time(step: Step) -> list[str]:
    changed = "failed" if step.error is not None else "yes" if step.changed else "no"
    return [changed, figures.seconds(step.tvm_seconds), figures.seconds(step.capture_seconds)]


def _checked(step: Step) -> str:
    return "-" if step.max_difference is None else figures.difference(step.max_difference)


def composites(step: Step) -> int:
    """Composite functions at a step, one a place where they are called."""
    inside = sum(sum(sub.composites.values()) for sub in step.subgraphs)
    return inside + sum(_free_composites(view) for view in step.functions)


def _free_composites(view: FunctionView) -> int:
    """Composite boxes of one drawing that no subgraph counts already."""
    if view.graph is None or view.kind == "subgraph":
        return 0
    nodes, found = view.graph.nodes, 0
    for node in nodes:
        if node.kind != "composite":
            continue
        around, owned = node, node.subgraph >= 0
        while around.parent >= 0 and not owned:
            around = nodes[around.parent]
            owned = around.subgraph >= 0
        found += not owned
    return found


def _errors(recording: Recording) -> list[RenderableType]:
    found: list[RenderableType] = []
    for step in recording.steps:
        if step.error is not None:
            error = step.error
            found.append(safe(f"{step.name} failed: {error.type}: {first_line(error.message)}"))
            if error.mend:
                found.append(indented(error.mend))
        if step.verify_error:
            found.append(
                safe(f"{step.name} could not be verified: {first_line(step.verify_error)}")
            )
    return found


def comparison(found: Comparison) -> Group:
    """What changed between two steps, in a few lines."""
    parts: list[RenderableType] = [safe(f"{found.a} -> {found.b}", style="bold")]
    if not found.changed:
        return Group(*parts, indented("nothing changed"))
    parts.append(
        indented(
            ", ".join(
                [
                    f"{len(found.added):,} added, {len(found.gone):,} gone",
                    f"{len(found.moved):,} moved",
                    *(recolouring(found) or ["none to another backend"]),
                ]
            )
        )
    )
    parts.append(
        indented(
            f"operators {found.total[0]:,} -> {found.total[1]:,}; "
            f"subgraphs {found.subgraphs[0]:,} -> {found.subgraphs[1]:,}; boundary "
            f"{figures.data(found.boundary_bytes[0])} -> {figures.data(found.boundary_bytes[1])}"
        )
    )
    parts.append(indented(_coverage(found, "->")))
    return Group(*parts, *_counts(found.counts, "->", "all in .counts"))


def recording_comparison(found: RecordingComparison) -> Group:
    """A step of one recording beside a step of another, in a few lines."""
    parts: list[RenderableType] = [safe(f"{found.a} | {found.b}", style="bold")]
    macs = " | ".join(map(figures.short, found.macs))
    parts.append(
        indented(
            f"operators {found.total[0]:,} | {found.total[1]:,}; MACs {macs}; "
            f"subgraphs {found.subgraphs[0]:,} | {found.subgraphs[1]:,}; boundary "
            f"{figures.data(found.boundary_bytes[0])} | {figures.data(found.boundary_bytes[1])}"
        )
    )
    parts.append(indented(_coverage(found, "|")))
    for name, rules in zip((found.a, found.b), found.rules_on, strict=True):
        if rules:
            shown = ", ".join(rules[:TOP]) + ", ..." * (len(rules) > TOP)
            parts.append(indented(f"rules that only {name} had on: {shown}"))
    if found.reasons:
        parts.append(indented("on TVM, by reason:"))
        parts += [
            indented(f"{code}: {one:,} | {other:,}", 4)
            for code, (one, other) in list(found.reasons.items())[:TOP]
        ]
        parts += more(len(found.reasons) - TOP, "reason")
    if found.counts:
        parts.append(indented("operators:"))
    return Group(*parts, *_counts(found.counts, "|", "all with --json, in Python in .counts"))


def _coverage(found: Comparison | RecordingComparison, to: str) -> str:
    ops = f" {to} ".join(map(figures.share, found.coverage_ops))
    macs = f" {to} ".join(map(figures.share, found.coverage_macs))
    return f"on a backend: {ops} of operators, {macs} of MACs"


def _counts(counts: dict[str, tuple[int, int]], to: str, rest: str) -> list[RenderableType]:
    """The operators whose number differs, one a line; ``rest`` says where those are that are left
    out."""
    shown: list[RenderableType] = [
        indented(f"{short_op(name)}: {before:,} {to} {after:,}", 4)
        for name, (before, after) in list(counts.items())[:TOP]
    ]
    noun, many = (f"{kind} ({rest})" for kind in ("kind of operator", "kinds of operators"))
    return shown + more(len(counts) - TOP, noun, many)
