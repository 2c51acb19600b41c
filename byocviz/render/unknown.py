"""Why figures of a recording are "?": said once below it, with the mend where there is one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from rich.console import Group, RenderableType

from byocviz.recording import Operator, Recording, Step
from byocviz.recording.tables import label
from byocviz.render import figures
from byocviz.render.pieces import counted, safe

_SHAPE = re.compile(r"\[([^\[\]]*)\]")
_OPAQUE = re.compile(
    r"relax\.(call_(builtin_with_ctx|dps_packed|inplace_packed|pure_packed|py_func)"
    r"|invoke_(pure_)?closure)"
)
"""Operators that run code which the recording cannot look into, whatever the shapes."""


def unknown(recording: Recording) -> RenderableType | None:
    """A line for each cause of a "?" among the figures of steps, subgraphs and blockers. None
    where every figure is known."""
    good = [step for step in recording.steps if step.error is None]
    if not any(map(_without, good)):
        return None
    shapes: set[str] = set()
    opaque: Counter[str] = Counter()
    for op in _uncounted(recording, good):
        kinds = set() if _is_opaque(op) else _shapes([*op.arg_types, *op.out_types])
        shapes |= kinds
        opaque[label(op)] += not kinds
    opaque = +opaque
    for step in good:
        for sub in step.subgraphs:
            for tensor in (*sub.inputs, *sub.outputs):
                if tensor.bytes is None:
                    shapes |= _shapes([tensor.type]) or {"unknown"}
    said = []
    if "symbolic" in shapes:
        said.append(
            "?: not known, the shapes are symbolic; fix them (models.load(..., shapes={...}), "
            "on the command line --shape NAME=...)"
        )
    if "unknown" in shapes:
        said.append("?: not known, a shape depends on values that only a run gives")
    if opaque:
        number = sum(opaque.values())
        said.append(
            f"?: not known, the work of {figures.plural(number, 'call')} cannot be counted: "
            f"{counted(dict(opaque.most_common()))}"
        )
    return Group(*map(safe, said)) if said else None


def _uncounted(recording: Recording, good: list[Step]) -> list[Operator]:
    """Operators whose work is unknown, at the last step of which that makes the figure unknown."""
    step = next((step for step in reversed(good) if step.profile.macs is None), None)
    found = (recording.ops[key] for key in sorted(step.places if step is not None else ()))
    return [op for op in found if op.macs is None]


def _without(step: Step) -> bool:
    """Whether a figure of a step is unknown."""
    profile = step.profile
    return None in (profile.macs, profile.offloaded_macs, profile.bytes_in, profile.bytes_out)


def _is_opaque(op: Operator) -> bool:
    return op.kind == "call" or _OPAQUE.fullmatch(op.name) is not None


def _shapes(types: Iterable[str]) -> set[str]:
    """Of ``symbolic`` (a dimension with a name or an expression) and ``unknown`` (``?``, or
    ``*`` for an unknown rank), those that stand in types as a recording writes them."""
    found = set()
    for type_ in types:
        for inside in _SHAPE.findall(type_):
            for dim in filter(None, map(str.strip, inside.split(","))):
                if not dim.lstrip("-").isdecimal():
                    found.add("unknown" if dim in ("?", "*") else "symbolic")
    return found
