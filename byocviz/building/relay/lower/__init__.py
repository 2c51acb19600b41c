"""Subgraphs of Relay calls as ONNX models.

Where an operator means the same in Relax, its converter there serves here too; those that differ
have their own in ``convert``. See `byocviz.building.lower`.
"""

from __future__ import annotations

from byocviz.building.errors import LoweringError
from byocviz.building.relay.lower.call import RelayCall
from byocviz.building.relay.lower.registry import converter, converters
from byocviz.building.relay.lower.walker import check, lower

__all__ = ["LoweringError", "RelayCall", "check", "converter", "converters", "lower"]
