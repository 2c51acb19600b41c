"""Small Relay modules that between them hold what Relay can write, and what is known of each.

Needs a TVM that has Relay (0.19 or older); see CONTRIBUTING.
"""

from __future__ import annotations

from .case import CASES, Case

from . import control, random_graphs, straight, walkthrough  # isort: skip  (they add the cases)

__all__ = ["CASES", "Case", "control", "random_graphs", "straight", "walkthrough"]
