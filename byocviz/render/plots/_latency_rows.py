"""What the latency comparison says of each variant, before any of it is drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from byocviz.errors import StepMissing
from byocviz.recording.printable import printable
from byocviz.recording.results import Latency, Part, Variant
from byocviz.recording.schema import RecordingData
from byocviz.render import figures
from byocviz.render.plots import _words
from byocviz.render.plots._words import milliseconds

TVM = "TVM"
"""The name of the part that is everything between subgraphs."""
NONE = "–"
"""What a variant has no such thing of; not the same as unknown."""


@dataclass
class Row:
    """A variant. Times are in ms, None where they are unknown."""

    variant: Variant
    number: int
    """Its place in the recording."""
    ms: float | None = None
    low: float | None = None
    high: float | None = None
    first: float | None = None
    cells: list[str] = field(default_factory=list)
    """One a column."""
    details: str = ""

    @property
    def end(self) -> float:
        """Where its bar and whisker end."""
        return max(self.ms or 0.0, self.high or 0.0)

    @property
    def name(self) -> str:
        return self.variant.name.strip() or "(no name)"

    @property
    def parts(self) -> tuple[list[float], float]:
        """The times of its subgraphs, and that on TVM between them."""
        inside = [_of(part) for part in self.variant.parts if part.name != TVM]
        return inside, sum(_of(part) for part in self.variant.parts if part.name == TVM)


@dataclass
class Group:
    """The variants of a setting; the setting is empty where it is not one of several."""

    setting: str
    rows: list[Row]


def needed(recording: RecordingData) -> Latency:
    """What the plot shows. Raises `StepMissing` where nothing was timed."""
    found = recording.results.latency
    if found is None or not found.variants:
        raise StepMissing(
            f"Recording {printable(recording.title, limit=200)!r} holds no latency.",
            "Build it and call build.latency(inputs).",
        )
    return found


def groups_of(latency: Latency, most: int) -> list[Group]:
    """The first ``most`` variants by setting, in the order in which the settings come."""
    groups: dict[str, Group] = {}
    for number, variant in enumerate(latency.variants[:most]):
        group = groups.setdefault(variant.setting, Group(variant.setting, []))
        group.rows.append(_row(variant, number))
    return list(groups.values())


def _row(variant: Variant, number: int) -> Row:
    row = Row(variant, number)
    if not variant.cannot:
        low, high = milliseconds(variant.p10), milliseconds(variant.p90)
        row.ms, row.first = milliseconds(variant.median), milliseconds(variant.first)
        if row.ms is not None and low is not None and high is not None:
            row.low, row.high = min(low, high), max(low, high)
    return row


def tell(rows: list[Row]) -> list[str]:
    """Fills in each row's cells and details; returns the heads of the columns."""
    variants = [row.variant for row in rows]
    columns: dict[str, Callable[[Row], str]] = {"median": _median}
    if any(one.kind == "tvm" for one in variants) and len(variants) > 1:
        columns["vs TVM alone"] = lambda row: _against(row, rows)
    if any(one.subgraphs is not None for one in variants):
        columns["subgraphs"] = lambda row: _cell(row.variant, row.variant.subgraphs, figures.count)
    if any(one.boundary_bytes is not None for one in variants):
        columns["boundary"] = lambda row: _cell(
            row.variant, row.variant.boundary_bytes, figures.data
        )
    for row in rows:
        row.cells = [column(row) for column in columns.values()]
        row.details = _details(row)
    return list(columns)


def drop_column(heads: list[str], rows: list[Row]) -> None:
    """Moves the last column into the details, where there is no room beside the bars."""
    head = heads.pop()
    for row in rows:
        cell = row.cells.pop()
        if cell != NONE:
            row.details = " · ".join(filter(None, [f"{head} {cell}", row.details]))


def _median(row: Row) -> str:
    if row.ms is not None:
        return _words.said(row.ms)
    return NONE if row.variant.cannot else figures.UNKNOWN


def _against(row: Row, rows: list[Row]) -> str:
    if row.variant.kind == "part" or row.ms is None:
        return NONE  # a part does less work: nothing to be compared
    alone = [one for one in rows if one.variant.kind == "tvm" and one.ms is not None]
    alone.sort(key=lambda one: (one.variant.setting != row.variant.setting, one.variant.setting))
    if not alone:
        return NONE
    return "1×" if alone[0] is row else _words.faster(alone[0].ms or 0.0, row.ms)


def _cell(variant: Variant, value: int | None, form: Callable[[int | None], str]) -> str:
    """What is unknown of a partitioned module is "?"; the others have no such thing."""
    return NONE if value is None and variant.kind != "byoc" else form(value)


def _details(row: Row) -> str:
    variant, said = row.variant, []
    if row.ms is not None and variant.parts:
        inside, between = row.parts
        # Clocked in runs of their own: their times need not add up to the median.
        share = sum(inside) / (sum(inside) + between) if sum(inside) + between else None
        said.append(f"{figures.share(share)} of a run in {figures.plural(len(inside), 'subgraph')}")
    if variant.noisy:
        said.append("noisy: p90 far above p10")
    if row.first is not None:
        said.append(f"first run {_words.said(row.first)}")
    if variant.kind == "byoc" and variant.coverage_ops is not None:
        said.append(f"{figures.share(variant.coverage_ops)} of operators")
    if variant.note:
        said.append(variant.note)
    return " · ".join(said)


def _of(part: Part) -> float:
    return milliseconds(part.median) or 0.0
