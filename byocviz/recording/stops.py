"""The stops of a talk: what a replay shows, in order, and what is said there.

They lie in ``recording.extra["stops"]`` as a list of mappings, plain data, so that any version
reads the file. All keys may be missing:

- ``step``: name of a step, as ``merge``;
- ``from``: name of the step on the left, where it is not the one before;
- ``select``: ``{"op": id}``, ``{"subgraph": index in Step.subgraphs}``, or nothing chosen;
- ``function``: name of the function that is drawn, where it is not the entry;
- ``zoom``: ``[x, y, width, height]`` of what is seen, in points of the drawing's layout; or
  ``"fit"``, for all of it;
- ``layout``: ``split``, ``stacked`` or ``single``;
- ``tab``: ``graph``, ``tables``, ``ir`` or ``results``;
- ``card``: on ``results``, the only card shown: ``build``, ``check``, ``latency``, ``detections``;
- ``title``: a few words, shown below; by default the first line of the note;
- ``note``: what is said there, Markdown;
- ``seconds``: how long autoplay stays.

`byocviz.recording.talk` reads the same from a file that people write.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import msgspec

from byocviz.recording.printable import printable
from byocviz.recording.schema import RecordingData, Step

STOPS = "stops"
"""The key in `Recording.extra`."""

LAYOUTS = ("split", "stacked", "single")
TABS = ("graph", "tables", "ir", "results")
CARDS = ("build", "check", "latency", "detections")
MOST = 1000
"""Stops of one talk; what follows is left out."""
LONGEST_NOTE = 20_000
_LONGEST_TITLE = 200
_LONGEST_NAME = 100_000  # TVM names a merged function after every operator in it
_LONGEST_PAUSE = 3600.0
_NUMBERS = 2**53  # as many as a browser tells apart; a file holds hardly more
_NEAR = 2000  # names that are compared for the nearest

AnyRecording = TypeVar("AnyRecording", bound=RecordingData)


class Stop(msgspec.Struct, frozen=True, omit_defaults=True):
    """One stop; an empty text, None and False stand for what is not set."""

    step: str = ""
    note: str = ""
    title: str = ""
    op: int | None = None
    """Id of the chosen operator."""
    subgraph: int | None = None
    """Index of the chosen subgraph in `Step.subgraphs`, where no operator is chosen."""
    function: str = ""
    zoom: tuple[float, float, float, float] | None = None
    """Left, top, width, height, in points of the drawing's layout."""
    fit: bool = False
    """The whole drawing is seen, however small; ``zoom`` is then None."""
    layout: str = ""
    tab: str = ""
    left: str = ""
    """Name of the step on the left."""
    card: str = ""
    seconds: float | None = None


class Misfit(msgspec.Struct, frozen=True):
    """Something in a stop that the recording does not hold."""

    key: str
    """``step``, ``from``, ``function``, ``select`` or ``card``."""
    text: str


def plain_stop(stop: Stop) -> dict[str, Any]:
    """The stop as plain data, without what is not set."""
    made: dict[str, Any] = {"step": stop.step, "note": stop.note}
    if stop.op is not None:
        made["select"] = {"op": stop.op}
    elif stop.subgraph is not None:
        made["select"] = {"subgraph": stop.subgraph}
    if stop.fit:
        made["zoom"] = "fit"
    elif stop.zoom is not None:
        made["zoom"] = [round(side, 2) for side in stop.zoom]
    rest = {
        "title": stop.title,
        "function": stop.function,
        "layout": stop.layout,
        "tab": stop.tab,
        "from": stop.left,
        "card": stop.card,
        "seconds": stop.seconds,
    }
    return made | {key: value for key, value in rest.items() if value}


def read_stop(data: Any) -> Stop:
    """A stop of plain data that may come from anywhere; what does not fit is left out."""
    given = data if isinstance(data, dict) else {}
    select = given.get("select")
    select = select if isinstance(select, dict) else {}
    zoom = given.get("zoom")
    return Stop(
        step=_text(given.get("step"), _LONGEST_TITLE),
        note=_text(given.get("note"), LONGEST_NOTE),
        title=_text(given.get("title"), _LONGEST_TITLE),
        op=_number(select.get("op")),
        subgraph=_number(select.get("subgraph")),
        function=_text(given.get("function"), _LONGEST_NAME),
        zoom=read_box(zoom),
        fit=zoom == "fit",
        layout=_one_of(given.get("layout"), LAYOUTS),
        tab=_one_of(given.get("tab"), TABS),
        left=_text(given.get("from"), _LONGEST_TITLE),
        card=_one_of(given.get("card"), CARDS),
        seconds=read_pause(given.get("seconds")),
    )


def read_stops(data: Any) -> list[Stop]:
    """The stops of ``recording.extra["stops"]``; none where it is no list."""
    return [read_stop(one) for one in data[:MOST]] if isinstance(data, list) else []


def stops_of(recording: RecordingData) -> list[Stop]:
    """The stops that a recording holds, at most `MOST`; what does not fit is left out."""
    return read_stops(recording.extra.get(STOPS))


def with_stops(recording: AnyRecording, stops: Iterable[Stop]) -> AnyRecording:
    """A copy of the recording that holds these stops in place of its own; the two share all
    else. Without any, it has no entry for them."""
    extra = {key: value for key, value in recording.extra.items() if key != STOPS}
    plain = [plain_stop(stop) for stop in list(stops)[:MOST]]
    made = msgspec.structs.replace(recording, extra={**extra, STOPS: plain} if plain else extra)
    getattr(made, "__dict__", {}).update(getattr(recording, "__dict__", {}))  # what is live of it
    return made


def misfits(recording: RecordingData, stop: Stop) -> list[Misfit]:
    """What the stop names and the recording does not hold, each with the nearest name it does.

    A replay plays the stop without it.
    """
    found: list[Misfit] = []
    names = [step.name for step in recording.steps]
    for key, name in (("step", stop.step), ("from", stop.left)):
        if name and name not in names:
            found.append(Misfit(key, unknown("step", name, names)))
    step = next((one for one in recording.steps if one.name == stop.step), None)
    if stop.op is not None and stop.op not in recording.ops:
        text = f"no operator #{stop.op}: ids go from {_ends(sorted(recording.ops))}"
        found.append(Misfit("select", text))
    if step is not None:
        found += _misfits_at(step, stop)
    results = recording.results
    there = {
        "build": results.build,
        "check": results.check,
        "latency": results.latency,
        "detections": results.photos,
    }
    if stop.card and not there.get(stop.card):
        known = ", ".join(name for name, part in there.items() if part) or "none"
        found.append(
            Misfit("card", f"this recording has no results of {stop.card}; it has {known}")
        )
    return found


def _misfits_at(step: Step, stop: Stop) -> list[Misfit]:
    found: list[Misfit] = []
    drawn = [view.name for view in step.functions if view.graph is not None]
    if stop.function and stop.function not in drawn:
        text = unknown(
            f"function of the step {shown(step.name)} that is drawn,", stop.function, drawn
        )
        found.append(Misfit("function", text))
    if stop.op is None and stop.subgraph is not None and stop.subgraph >= len(step.subgraphs):
        text = f"no subgraph S{stop.subgraph + 1} at the step {shown(step.name)}"
        most = len(step.subgraphs)
        found.append(Misfit("select", f"{text}, which has {f'S1 to S{most}' if most else 'none'}"))
    return found


def unknown(what: str, name: str, known: Sequence[str]) -> str:
    """``no step 'merg'; the nearest is 'merge'``."""
    if not known:
        return f"no {what} {shown(name)}: there is none"
    names = {one[:200]: None for one in known[:_NEAR]}
    near = difflib.get_close_matches(name[:200], list(names), n=1, cutoff=0.0)
    return f"no {what} {shown(name)}; the nearest is {shown(near[0])}"


def shown(name: str) -> str:
    """A name of a file in quotes, safe to print."""
    return f"'{printable(name, limit=80)}'"


def read_pause(value: Any) -> float | None:
    """Seconds from a tenth to an hour, else None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        seconds = float(value)
    except OverflowError:
        return None
    return seconds if 0.1 <= seconds <= _LONGEST_PAUSE else None


def read_box(value: Any) -> tuple[float, float, float, float] | None:
    """Four finite numbers of which width and height are above zero, else None."""
    if not isinstance(value, (list, tuple)) or len(value) != 4:
        return None
    if any(isinstance(side, bool) or not isinstance(side, (int, float)) for side in value):
        return None
    try:
        x, y, width, height = (float(side) for side in value)
    except OverflowError:
        return None
    if not all(map(math.isfinite, (x, y, width, height))) or width <= 0 or height <= 0:
        return None
    return x, y, width, height


def _ends(ids: list[int]) -> str:
    return f"{ids[0]} to {ids[-1]}" if ids else "none to none"


def _text(value: Any, limit: int) -> str:
    # What is no Unicode cannot be written into a file.
    return value[:limit].encode(errors="replace").decode() if isinstance(value, str) else ""


def _number(value: Any) -> int | None:
    fits = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _NUMBERS
    return value if fits else None


def _one_of(value: Any, known: tuple[str, ...]) -> str:
    return value if isinstance(value, str) and value in known else ""
