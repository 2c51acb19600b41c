"""The stops of a talk, as they lie in ``recording.extra["stops"]``.

A list of mappings, plain data, read by the replay. All keys may be missing:

- ``step``: name of a step, as ``merge``;
- ``from``: name of the step on the left, where it is not the one before;
- ``select``: ``{"op": id}``, ``{"subgraph": index in Step.subgraphs}``, or nothing chosen;
- ``function``: name of the function that is drawn, where it is not the entry;
- ``zoom``: ``[x, y, width, height]`` of what is seen, in points of the drawing's layout;
- ``layout``: ``split``, ``stacked`` or ``single``;
- ``tab``: ``graph``, ``tables``, ``ir`` or ``results``;
- ``note``: what is said there, Markdown.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

STOPS = "stops"
"""The key in `Recording.extra`."""

LAYOUTS = ("split", "stacked", "single")
TABS = ("graph", "tables", "ir", "results")
_LONGEST_NOTE = 20_000
_MOST = 1000


@dataclass(frozen=True)
class Stop:
    """One stop. ``op`` and ``subgraph`` are None where nothing is chosen."""

    step: str = ""
    note: str = ""
    op: int | None = None
    subgraph: int | None = None
    function: str = ""
    zoom: tuple[float, float, float, float] | None = None
    layout: str = ""
    tab: str = ""
    left: str = ""


def plain_stop(stop: Stop) -> dict[str, Any]:
    """The stop as plain data, without what is not set."""
    made: dict[str, Any] = {"step": stop.step, "note": stop.note}
    if stop.op is not None:
        made["select"] = {"op": stop.op}
    elif stop.subgraph is not None:
        made["select"] = {"subgraph": stop.subgraph}
    if stop.zoom is not None:
        made["zoom"] = [round(side, 2) for side in stop.zoom]
    for key, value in (
        ("function", stop.function),
        ("layout", stop.layout),
        ("tab", stop.tab),
        ("from", stop.left),
    ):
        if value:
            made[key] = value
    return made


def read_stop(data: Any) -> Stop:
    """A stop of plain data that may come from anywhere; what does not fit is left out."""
    given = data if isinstance(data, dict) else {}
    select = given.get("select")
    select = select if isinstance(select, dict) else {}
    return Stop(
        step=_text(given.get("step"), 200),
        note=_text(given.get("note"), _LONGEST_NOTE),
        op=_number(select.get("op")),
        subgraph=_number(select.get("subgraph")),
        function=_text(given.get("function"), 100_000),
        zoom=_box(given.get("zoom")),
        layout=_one_of(given.get("layout"), LAYOUTS),
        tab=_one_of(given.get("tab"), TABS),
        left=_text(given.get("from"), 200),
    )


def read_stops(data: Any) -> list[Stop]:
    """The stops of ``recording.extra["stops"]``; none where it is no list."""
    return [read_stop(one) for one in data[:_MOST]] if isinstance(data, list) else []


def _text(value: Any, limit: int) -> str:
    return value[:limit] if isinstance(value, str) else ""


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _one_of(value: Any, known: tuple[str, ...]) -> str:
    return value if isinstance(value, str) and value in known else ""


def _box(value: Any) -> tuple[float, float, float, float] | None:
    if not isinstance(value, (list, tuple)) or len(value) != 4:
        return None
    try:
        x, y, width, height = (float(side) for side in value)
    except (TypeError, ValueError):
        return None
    if not all(map(math.isfinite, (x, y, width, height))) or width <= 0 or height <= 0:
        return None
    return x, y, width, height
