"""Where a walk stood before a step, so that another walk can go on from there.

What a step changes in place is copied; modules, readings and what was drawn of earlier steps are
never changed once made, and are shared.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from byocviz.flow.identity import Wiring
from byocviz.flow.placing import Sheet
from byocviz.flow.relax.operators import Operators
from byocviz.flow.relax.tag import Tagger
from byocviz.recording import Recording

if TYPE_CHECKING:
    from byocviz.flow.relax.walk import Walk

_SHARED = ("readings", "ids", "drawn", "reasons", "blocks", "_merged")


class Mark:
    """The state of a walk between two steps."""

    def __init__(self, walk: Walk) -> None:
        self._steps = list(walk.data.steps)
        self._ops = _operators(walk.data.ops)
        self._texts = dict(walk.data.texts)
        self._modules = dict(walk.modules)
        self._state = replace(walk.state)
        self._wiring = _wiring(walk.wiring)
        self._tagger = _tagger(walk.tagger)
        self._shared = {name: getattr(walk, name) for name in _SHARED if hasattr(walk, name)}
        self._operators = _reader(walk.operators) if hasattr(walk, "operators") else None
        self._printed = dict(walk.sheet.printed) if walk.sheet.printed is not None else None

    def put(self, walk: Walk) -> None:
        """Have the walk, which has not begun, stand where the other stood."""
        walk.data = Recording(
            ir="relax",
            entry=walk.entry,
            weights=walk.data.weights,
            ops=_operators(self._ops),
            steps=list(self._steps),
            texts=dict(self._texts),
        )
        walk.modules = dict(self._modules)
        walk.wiring = _wiring(self._wiring)
        walk.tagger = _tagger(self._tagger)
        now = walk.state
        walk.state = replace(
            self._state,
            backend=now.backend,
            rules=now.rules,
            rewrites=now.rewrites,
            prepare=now.prepare,
            policy=now.policy,
            before_rewrite=now.before_rewrite,
            after_rewrite=now.after_rewrite,
        )
        for name, value in self._shared.items():
            setattr(walk, name, value)
        read: dict[int, Any] = {}
        if self._operators is not None:
            walk.operators = _reader(self._operators)
            walk.operators.sources = walk.tagger.sources
            read = walk.operators.read
        printed = dict(self._printed) if self._printed is not None else None
        walk.sheet = Sheet(walk.entry, walk.data.ops, read, walk.data.texts, printed)


def _operators(ops: dict[int, Any]) -> dict[int, Any]:
    # Their lists and dictionaries are replaced, never changed.
    return {identity: copy.copy(operator) for identity, operator in ops.items()}


def _wiring(wiring: Wiring) -> Wiring:
    made = Wiring()
    made.inputs, made.results, made.names = wiring.inputs, wiring.results, dict(wiring.names)
    return made


def _tagger(tagger: Tagger) -> Tagger:
    made = Tagger()
    made.next, made.sources = tagger.next, dict(tagger.sources)
    return made


def _reader(operators: Operators) -> Operators:
    made = Operators(operators.module, operators.weights, operators.sources)
    made.read = dict(operators.read)
    return made
