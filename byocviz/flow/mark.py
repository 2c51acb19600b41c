"""Where a walk stood before a step, so that another walk can go on from there.

What a step changes in place is copied; modules, readings and what was drawn of earlier steps are
never changed once made, and are shared. Knows no TVM: it is the same for both dialects.
"""

from __future__ import annotations

import copy
from dataclasses import fields, replace
from typing import Any

from byocviz.flow.identity import Wiring
from byocviz.flow.placing import Sheet
from byocviz.recording import Recording

_SHARED = ("readings", "ids", "drawn", "reasons", "blocks", "_merged", "_partitioned")
_GIVEN = (
    "backend", "rules", "rewrites", "prepare", "policy", "own_policy", "before_rewrite",
    "after_rewrite", "present",
)  # fmt: skip
"""What a walk's state holds that its steps do not make: it stays the new walk's own."""


class Mark:
    """The state of a walk between two steps."""

    def __init__(self, walk: Any) -> None:
        self._steps = list(walk.data.steps)
        self._weights = walk.data.weights
        self._ops = operators(walk.data.ops)
        self._texts = dict(walk.data.texts)
        self._modules = dict(walk.modules)
        self._state = _state(walk.state)
        self._wiring = _wiring(walk.wiring)
        self._shared = {name: getattr(walk, name) for name in _SHARED if hasattr(walk, name)}
        self._tagger = _own(walk.tagger)
        self._operators = _own(walk.operators) if hasattr(walk, "operators") else None
        self._printer = _own(walk.printer) if hasattr(walk, "printer") else None
        self._bodies = getattr(walk, "bodies", None)
        self._printed = dict(walk.sheet.printed) if walk.sheet.printed is not None else None

    def put(self, walk: Any) -> None:
        """Have the walk, which has not begun, stand where the other stood."""
        walk.data = Recording(
            ir=walk.data.ir,
            entry=walk.entry,
            weights=self._weights,
            ops=operators(self._ops),
            steps=list(self._steps),
            texts=dict(self._texts),
        )
        walk.modules = dict(self._modules)
        walk.wiring = _wiring(self._wiring)
        now = walk.state
        given = {f.name: getattr(now, f.name) for f in fields(now) if f.name in _GIVEN}
        walk.state = replace(_state(self._state), **given)
        for name, value in self._shared.items():
            setattr(walk, name, value)
        walk.tagger = _own(self._tagger)
        if self._bodies is not None:
            walk.bodies = self._bodies  # only what was read of functions, which never change
        if self._printer is not None:
            walk.printer = _own(self._printer)
            walk.printer.texts = walk.data.texts
        read: dict[int, Any] = {}
        if self._operators is not None:
            walk.operators = _own(self._operators)
            walk.operators.sources = walk.tagger.sources
            read = walk.operators.read
        printed = dict(self._printed) if self._printed is not None else None
        walk.sheet = Sheet(walk.entry, walk.data.ops, read, walk.data.texts, printed)


def operators(ops: dict[int, Any]) -> dict[int, Any]:
    """A copy that later steps do not change."""
    # Their lists and dictionaries are replaced, never changed.
    return {identity: copy.copy(operator) for identity, operator in ops.items()}


def _wiring(wiring: Wiring) -> Wiring:
    made = Wiring()
    made.inputs, made.results, made.names = wiring.inputs, wiring.results, dict(wiring.names)
    return made


def _own(thing: Any) -> Any:
    """A copy with dictionaries, lists and sets of its own; what they hold is shared."""
    made = copy.copy(thing)
    for name, value in vars(made).items():
        if type(value) in (dict, list, set):
            setattr(made, name, copy.copy(value))
    return made


def _state(state: Any) -> Any:
    made = _own(state)
    if hasattr(made, "verdicts"):
        made.verdicts = _own(made.verdicts)
    return made
