"""The text of a Graphviz figure, in one pass over what is drawn; the same recording gives the
same text.

Labels are Graphviz's HTML-like ones. Every string of the recording goes into them through
`words`: cut, with what could steer a terminal or the reading direction written out, and escaped.
Nodes and boxes are named by numbers alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from byocviz.recording.schema import (
    FunctionView,
    RecordingData,
    Step,
    Subgraph,
)
from byocviz.render import figures
from byocviz.render.dot_function import FunctionWriter
from byocviz.render.dot_words import colours, sub_figures, words
from byocviz.render.flows import drawn
from byocviz.render.palette import BACKENDS, Paint, Theme, theme
from byocviz.render.pieces import first_line

_MANY = 150
"""Nodes above which edges are drawn as lines with corners: splines take Graphviz far longer."""


class Look(NamedTuple):
    theme: str = "light"
    direction: str = "TB"
    legend: bool = True
    dpi: int | None = None


class Writer:
    """Writes functions of one step into one ``digraph``."""

    def __init__(
        self, recording: RecordingData, step: Step, views: list[FunctionView], look: Look
    ) -> None:
        self.recording, self.step, self.views, self.look = recording, step, views, look
        self.theme: Theme = theme(look.theme)
        names = dict.fromkeys([recording.backend.name] if recording.backend.name else [])
        for one in recording.steps:
            names.update(dict.fromkeys(sub.backend for sub in one.subgraphs if sub.backend))
        self.backends = {name: number % BACKENDS for number, name in enumerate(names)}
        self.seen: dict[str, str] = {}
        """What the legend explains: words by the name of their paint."""

    def text(self) -> str:
        found = [(view, drawn(view.graph)) for view in self.views if view.graph is not None]
        nodes = sum(len(one.nodes) for _, one in found)
        several = len(found) > 1
        body: list[str] = []
        for number, (view, one) in enumerate(found):
            function = FunctionWriter(self, view, one, f"f{number}_")
            if several:
                body += [f"subgraph cluster_f{number} {{", *self._frame(view)]
            body += function.lines()
            if several:
                body.append("}")
        if self.step.error is not None:
            body.append(self._failure())
        elif not nodes:
            body.append(f"nothing [{self._note('This step draws nothing.')}]")
        return "\n".join([*self._head(nodes), *body, "}"]) + "\n"

    # -- the whole

    def _head(self, nodes: int) -> Iterator[str]:
        ink, muted = self.theme.ink, self.theme.muted
        yield "digraph byocviz {"
        yield (
            f'graph [rankdir={self.look.direction}, bgcolor="{self.theme.page}", compound=true, '
            f'fontname="Helvetica,Arial,sans-serif", fontsize=11, fontcolor="{ink}", '
            f"nodesep=0.22, ranksep=0.32, pad=0.15, outputorder=edgesfirst"
            + (", splines=polyline, nslimit=1, mclimit=0.3" if nodes > _MANY else "")
            + (f", dpi={self.look.dpi}" if self.look.dpi else "")
            + "]"
        )
        yield (
            'node [shape=box, style="filled,rounded", fontname="Helvetica,Arial,sans-serif", '
            f'fontsize=11, height=0.3, margin="0.11,0.055", penwidth=1.2, fontcolor="{ink}"]'
        )
        yield (
            f'edge [color="{self.theme.edge}", arrowsize=0.55, penwidth=1, fontsize=9, '
            f'fontname="Helvetica,Arial,sans-serif", fontcolor="{muted}"]'
        )
        if self.look.legend:
            yield f"graph [labelloc=b, label={self._caption()}]"

    def _caption(self) -> str:
        """Title, figures and the legend of the paints that occur."""
        title = f"{words(self.recording.title or 'untitled', 60)} &#183; {words(self.step.name)}"
        only = self.views[0] if len(self.views) == 1 else None
        sites = [i for i in only.sites if i < len(self.step.subgraphs)] if only else []
        if sites:
            title += " &#183; " + ", ".join(f"S{i + 1}" for i in sites[:8])
            title += ", ..." * (len(sites) > 8)
            figure = ", ".join(sub_figures(self.step.subgraphs[sites[0]]))
        else:
            if only and only.kind != "entry":
                title += f" &#183; {words(only.name, 50)}"
            figure = self._coverage(only)
        rows = [f"<B>{title}</B>", self.small(figure)]
        keys = "".join(
            f'<TD BGCOLOR="{self.theme.paints[name].fill}" BORDER="1" '
            f'COLOR="{self.theme.paints[name].line}" CELLPADDING="3">'
            f'<FONT POINT-SIZE="9" COLOR="{self.theme.paints[name].ink}">{said}</FONT></TD>'
            for name, said in sorted(self.seen.items(), key=lambda item: _rank(item[0]))
        )
        if keys:
            rows.append(f'<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="4"><TR>{keys}</TR></TABLE>')
        cells = "".join(f"<TR><TD>{row}</TD></TR>" for row in rows)
        return f'<<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0">{cells}</TABLE>>'

    def _coverage(self, only: FunctionView | None) -> str:
        profile = self.step.profile
        if only is not None:
            profile = self.step.function_profiles.get(only.name, profile)
        said = figures.plural(profile.total, "operator")
        if not profile.subgraphs:
            return said
        return (
            f"{said}, {figures.plural(profile.subgraphs, 'subgraph')}, "
            f"{figures.share(profile.coverage_ops)} of operators and "
            f"{figures.share(profile.coverage_macs)} of MACs on "
            f"{words(self.recording.backend.name) or 'the backend'}"
        )

    def _frame(self, view: FunctionView) -> Iterator[str]:
        yield (
            f'graph [style=rounded, color="{self.theme.edge}", penwidth=1, margin=12, '
            f"labelloc=t, labeljust=l, label=<<B>{words(view.name) or '?'}</B>>]"
        )

    def _failure(self) -> str:
        error = self.step.error
        assert error is not None
        said = f"This step failed: {error.type}: {first_line(error.message[:400])}"
        return f"failed [{self._note(said, 160)}]"

    def _note(self, text: str, limit: int = 80) -> str:
        paint = self.theme.paints["reason"]
        return f"label=<<B>{words(text, limit)}</B>>, {colours(paint)}"

    def small(self, text: str, colour: str = "") -> str:
        """Text of second rank, escaped already; nothing where it is empty, which Graphviz's
        labels do not take."""
        return text and f'<FONT POINT-SIZE="9" COLOR="{colour or self.theme.muted}">{text}</FONT>'

    # -- what they share

    def paint(self, name: str, legend: str = "") -> Paint:
        if legend:
            self.seen.setdefault(name, legend)
        return self.theme.paints[name]

    def on(self, backend: str) -> Paint:
        """The paint of where an operator runs."""
        if backend == "tvm":
            return self.paint("tvm", "TVM")
        number = self.backends.get(backend, 0)
        return self.paint(f"b{number}", words(backend) or "?")

    def label(self, title: str, small: Iterable[str], paint: Paint, left: bool = False) -> str:
        """``title`` and ``small`` are escaped already."""
        lines = [f'<FONT COLOR="{paint.ink}"><B>{title or "?"}</B></FONT>', *filter(None, small)]
        if left:  # each line, the last as well, ends with how it is set
            end = '<BR ALIGN="LEFT"/>'
            return f"<{end.join(lines)}{end}>"
        return f"<{'<BR/>'.join(lines)}>"

    def sub_title(self, index: int) -> str:
        sub = self.step.subgraphs[index]
        return f"S{index + 1} &#183; {words(sub.backend)}"

    def sub_lines(self, sub: Subgraph, paint: Paint) -> list[str]:
        return [self.small(line, paint.ink) for line in sub_figures(sub)]


def _rank(name: str) -> tuple[int, str]:
    kinds = ("tvm", "b", "composite", "reason", "prune")
    return next((i for i, kind in enumerate(kinds) if name.startswith(kind)), 9), name
