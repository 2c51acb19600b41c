"""The steps of the flow on Relax, each a file: what it calls, and what that is in TVM."""

from __future__ import annotations

from byocviz.flow.relax.steps import annotate, composite, import_, merge, partition, prepare, prune
from byocviz.flow.relax.steps.state import Outcome, State

__all__ = ["WALK", "Outcome", "State"]

WALK = (import_, prepare, composite, annotate, merge, partition, prune)
"""In order. Each module has a NAME and a ``run(state)`` that returns an `Outcome`."""
