"""Composite functions that feed each other become one external function."""

from __future__ import annotations

from byocviz.flow.relax.passes.merge import CALL_IN_PARTS, merge
from byocviz.flow.relax.steps.state import Outcome, State

NAME = "merge"


def run(state: State) -> Outcome:
    with state.in_tvm():
        module, call = merge(state.module)
    note = "Composite functions that feed each other become one external function."
    if call == CALL_IN_PARTS:
        note += (
            " TVM's pass reads a straight function named main alone, so it was given each function "
            "without branches, and each branch's blocks, as a main of its own."
        )
    return Outcome(module, f"# mod: the module of the composite step\n{call}", note=note)
