"""Who is who during a walk: the operators' ids, what feeds them, and what became of them.

Knows no TVM; each dialect's walk builds on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from byocviz.flow.identity import Ids, Wiring
from byocviz.flow.reading import Reading
from byocviz.recording import Recording


class Ledger:
    """The part of a walk that writes operators down.

    A walk sets ``data``, ``tagger``, ``operators``, ``readings``, ``ids`` and ``wiring``.
    """

    data: Recording
    tagger: Any
    """Gives new ids: ``new()``."""
    operators: Any
    """Describes a call: ``describe(identity, reading, node)``."""
    readings: list[Reading]
    ids: Ids
    wiring: Wiring
    blocks: dict[int, tuple[str, int]]

    def _name(self, reading: Reading, node: int) -> str:
        raise NotImplementedError

    def _describe(self, known: Any, created_by: str = "") -> None:
        """Write down the operators that are not yet known, and wire all of them."""
        names: dict[int, str] = {}
        for reading in self.readings:
            for node in reading.calls:
                identity = self.ids[reading.name, node]
                names[identity] = self._name(reading, node)
                if identity not in known:
                    self._write_down(identity, reading, node, created_by)
        self.wiring = Wiring.of(self.readings, self.ids, names.__getitem__)
        self.blocks = {
            self.ids[reading.name, node]: (reading.name, block)
            for reading in self.readings
            for node, block in reading.blocks.items()
        }

    def _write_down(self, identity: int, reading: Reading, node: int, created_by: str) -> None:
        operator = self.operators.describe(identity, reading, node)
        operator.created_by = created_by
        self.data.ops[identity] = operator

    def _made_by(self, step: str) -> None:
        """Give calls that a pass made of its own their ids: they live from this step on."""
        for reading in self.readings:
            for node in reading.calls:
                if (reading.name, node) not in self.ids:
                    identity = self.ids[reading.name, node] = self.tagger.new()
                    self._write_down(identity, reading, node, step)

    def _ended(self, gone: Mapping[int, tuple[str, list[int]]], by: str) -> None:
        """What a rewrite made of operators: how each ended, and who stands for it."""
        for identity, (fate, successors) in gone.items():
            operator = self.data.ops[identity]
            operator.fate, operator.fate_by = fate, by
            operator.replaced_by = successors

    def _lost(self, lost: Any, step: str) -> None:
        """Operators that a pass dropped."""
        for identity in lost:
            operator = self.data.ops[identity]
            operator.fate, operator.fate_by = "dead", step
            del self.wiring.names[identity]

    def _alive(self, wiring: Wiring) -> int:
        return sum(self.data.ops[i].kind == "operator" for i in wiring.names)
