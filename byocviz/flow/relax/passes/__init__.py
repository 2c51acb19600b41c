"""What byocviz does to a Relax module itself, where TVM has no pass or one that falls short."""

from __future__ import annotations

from byocviz.flow.relax.passes.merge import merge, merge_in_parts
from byocviz.flow.relax.passes.prune import prune

__all__ = ["merge", "merge_in_parts", "prune"]
