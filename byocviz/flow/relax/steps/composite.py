"""Patterns become composite functions."""

from __future__ import annotations

from tvm import relax

from byocviz.flow.relax.reasons import record_checks
from byocviz.flow.relax.steps.state import Outcome, State

NAME = "composite"


def run(state: State) -> Outcome:
    state.prepared = state.module
    patterns, state.refusals = record_checks(state.enabled)
    with state.in_tvm():
        module = relax.transform.FuseOpsByPattern(patterns, bind_constants=True)(state.module)
    return Outcome(
        module,
        f"from tvm import relax\n{state.table}\n"
        "mod = relax.transform.FuseOpsByPattern(patterns, bind_constants=True)(mod)",
        note="Each match of a rule becomes a composite function (attribute Composite).",
    )
