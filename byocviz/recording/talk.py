"""A talk as people write it: YAML beside the recording.

    seconds: 10                  # of autoplay, where a stop says nothing else
    stops:
      - step: import
        note: "705 operators, straight from **ONNX**"
      - step: merge
        select: S1               # a subgraph as it is drawn; or 212, or nn.softmax
        zoom: fit
        note: |
          One subgraph is left.

The keys are those of `byocviz.recording.stops`. A file may come from anyone: only texts, numbers,
lists and mappings are read of it, whatever tags it has, and what is wrong in it is said by line.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from byocviz.errors import RecordingError, missing
from byocviz.recording.printable import printable
from byocviz.recording.schema import RecordingData, Step
from byocviz.recording.stops import (
    CARDS,
    LAYOUTS,
    LONGEST_NOTE,
    MOST,
    TABS,
    Stop,
    misfits,
    plain_stop,
    read_box,
    read_pause,
    read_stop,
    shown,
    unknown,
)

LARGEST = 1_000_000
"""Bytes of a file that are read."""
_PROBLEMS = 100
_DEEPEST = 64
_KEYS = (
    "step", "title", "note", "select", "function", "zoom", "layout", "tab", "card", "from",
    "seconds",
)  # fmt: skip
_CHOICES = {"layout": LAYOUTS, "tab": TABS, "card": CARDS}


class Talk(NamedTuple):
    stops: list[Stop]
    problems: list[str]
    """What in the file could not be used, one sentence each, with the line."""


def load_talk(path: str | os.PathLike[str], recording: RecordingData) -> Talk:
    """The stops of a YAML file, for this recording.

    What the recording does not hold, and what is not known, is named in ``problems`` and left
    out; the rest plays. Raises `RecordingError` where the file cannot be read, is larger than
    `LARGEST` or is no YAML, `MissingPackage` without PyYAML.
    """
    name = os.fspath(path)
    try:
        if not Path(path).is_file():
            raise FileNotFoundError(2, "there is no such file")
        with open(path, "rb") as file:
            data = file.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        cause = getattr(error, "strerror", None) or error
        raise RecordingError(
            f"{name} cannot be read: {cause}.", "Name a YAML file of stops: --stops talk.yaml"
        ) from error
    if len(data) > LARGEST:
        raise RecordingError(
            f"{name} is larger than {LARGEST:,} bytes.", "Name a YAML file of stops."
        )
    return read_talk(data, recording, name)


def read_talk(data: bytes, recording: RecordingData, name: str = "the stops") -> Talk:
    """The same for the file's contents; ``name`` is what errors call it."""
    try:
        import yaml
    except ImportError as error:
        raise missing("PyYAML", "replay", "to read stops from a YAML file") from error
    try:
        text = data.decode("utf-8-sig")
        _not_too_deep(yaml, text)
        root = yaml.compose(text, Loader=_loader(yaml))
    except (yaml.YAMLError, UnicodeDecodeError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark is not None else ""
        cause = getattr(error, "problem", None) or error
        raise RecordingError(
            f"{name}{where} is no YAML: {printable(str(cause), limit=200)}.",
            "A stop is written as\n  - step: merge\n    note: What is said there",
        ) from error
    return _Reader(recording, name).talk(root)


def _loader(yaml: Any) -> Any:
    """Makes plain data alone; ten times as fast where PyYAML comes with libyaml."""
    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _not_too_deep(yaml: Any, text: str) -> None:
    """PyYAML composes by recursion."""
    depth = 0
    starts = (yaml.MappingStartEvent, yaml.SequenceStartEvent)
    for event in yaml.parse(text, Loader=_loader(yaml)):
        depth += isinstance(event, starts) - isinstance(
            event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)
        )
        if depth > _DEEPEST:
            raise ValueError(f"lists within lists, deeper than {_DEEPEST}")


class _Reader:
    """Walks the nodes that YAML is made of, which know their lines."""

    def __init__(self, recording: RecordingData, name: str) -> None:
        self.recording = recording
        self.file = printable(os.path.basename(name), limit=80)
        self.problems: list[str] = []
        self.seconds: float | None = None
        self.names: dict[str, dict[str, int]] = {}

    def say(self, node: Any, text: str | Callable[[], str]) -> None:
        """``text`` may be a call: looking for the nearest name takes long."""
        if len(self.problems) < _PROBLEMS:
            said = text if isinstance(text, str) else text()
            self.problems.append(f"{self.file}, line {node.start_mark.line + 1}: {said}.")
        elif len(self.problems) == _PROBLEMS:
            self.problems.append(f"{self.file}: and more.")

    def talk(self, root: Any) -> Talk:
        if root is None:
            return Talk([], [f"{self.file} is empty."])
        rows = root
        if root.id == "mapping":
            pairs = self.pairs(root, ("stops", "seconds", "title"), "key")
            rows = pairs.get("stops")
            if "seconds" in pairs:
                self.seconds = self.pause(pairs["seconds"])
        if rows is None or rows.id != "sequence":
            self.say(rows or root, "no list of stops; write `stops:` and under it `- step: merge`")
            return Talk([], self.problems)
        if len(rows.value) > MOST:
            self.say(rows, f"{len(rows.value):,} stops; the first {MOST:,} play")
        return Talk([self.stop(one) for one in rows.value[:MOST]], self.problems)

    def pairs(self, node: Any, known: tuple[str, ...], what: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in node.value:
            name = key.value if key.id == "scalar" else "?"
            if name not in known:
                self.say(key, partial(unknown, what, name, known))
            elif name in found:
                self.say(key, f"{name} is given twice; the first holds")
            else:
                found[name] = value
        return found

    def stop(self, node: Any) -> Stop:
        if node.id != "mapping":
            # A line alone is what is said.
            note = node.value if node.id == "scalar" else ""
            if not note:
                self.say(node, "a stop is a mapping, as `step: merge`")
            return Stop(note=note[:LONGEST_NOTE], seconds=self.seconds)
        given = self.pairs(node, _KEYS, "key of a stop")
        plain: dict[str, Any] = {}
        for key, value in given.items():
            read = self.value(key, value, given)
            if read is not None:
                plain[key] = read
        plain.setdefault("seconds", self.seconds)
        stop = read_stop(plain)
        for misfit in misfits(self.recording, stop):
            self.say(given.get(misfit.key, node), misfit.text)
            left = plain_stop(stop)
            left.pop(misfit.key, None)
            stop = read_stop(left)
        return stop

    def value(self, key: str, node: Any, given: dict[str, Any]) -> Any:
        if key == "select":
            return self.select(node, given.get("step"))
        if key == "zoom":
            if node.id == "scalar" and node.value == "fit":
                return "fit"
            sides = [_figure(one) for one in node.value] if node.id == "sequence" else []
            box = read_box(sides)
            if box is None:
                self.say(node, "zoom is fit, or [left, top, width, height]")
            return None if box is None else list(box)
        if key == "seconds":
            return self.pause(node)
        if node.id != "scalar":
            self.say(node, f"{key} is a text")
            return None
        text: str = node.value
        choices = _CHOICES.get(key)
        if choices and text not in choices:
            self.say(node, f"{unknown(key, text, choices)} (of {', '.join(choices)})")
            return None
        if key == "note" and len(text) > LONGEST_NOTE:
            self.say(node, f"a note of {len(text):,} characters; {LONGEST_NOTE:,} are kept")
        return text

    def pause(self, node: Any) -> float | None:
        seconds = read_pause(_figure(node))
        if seconds is None:
            self.say(node, "seconds is a number from 0.1 to 3600")
        return seconds

    def select(self, node: Any, step: Any) -> dict[str, int] | None:
        """An operator's id or name, or a subgraph as it is drawn (S1 is the first)."""
        if node.id == "mapping":
            pairs = self.pairs(node, ("op", "subgraph"), "key of select")
            read = {key: _figure(value) for key, value in pairs.items()}
            made = {key: one for key, one in read.items() if isinstance(one, int)}
            if made and len(made) == len(read):
                return made
        elif node.id == "scalar":
            text = node.value.removeprefix("#")
            if text.isascii() and text.isdigit() and len(text) < 16:
                return {"op": int(text)}
            if text[:1] in "sS" and text[1:].isascii() and text[1:].isdigit() and len(text) < 16:
                return {"subgraph": max(0, int(text[1:]) - 1)}
            return self.named(node, text, step.value if step is not None else "")
        self.say(node, "select is an operator (212, or nn.softmax) or a subgraph (S1)")
        return None

    def named(self, node: Any, text: str, step: Any) -> dict[str, int] | None:
        """The first operator of that name, by TVM's or by the model's own."""
        at = next((one for one in self.recording.steps if one.name == step), None)
        names = self.names.get(at.name if at else "")
        if names is None:
            names = self.names[at.name if at else ""] = self.names_at(at)
        if text in names:
            return {"op": names[text]}
        where = f" at the step {shown(at.name)}" if at is not None else ""
        self.say(node, lambda: unknown(f"operator{where}", text, list(names)))
        return None

    def names_at(self, at: Step | None) -> dict[str, int]:
        """The first operator of each name, at a step or in all."""
        ids = sorted(at.places) if at is not None else list(self.recording.ops)
        names: dict[str, int] = {}
        for op_id in ids:
            op = self.recording.ops.get(op_id)
            if op is None:
                continue
            for one in (op.name, op.name.partition(".")[2], op.source, op.var):
                if one:
                    names.setdefault(one, op_id)
        return names


def _figure(node: Any) -> int | float | None:
    """The number that a scalar is written as."""
    if node.id != "scalar" or len(node.value) > 40:
        return None
    with contextlib.suppress(ValueError):
        return int(node.value)
    with contextlib.suppress(ValueError):
        return float(node.value)
    return None
