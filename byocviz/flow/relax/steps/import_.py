"""The module as it came."""

from __future__ import annotations

from byocviz.flow.relax.steps.state import Outcome, State

NAME = "import"


def run(state: State) -> Outcome:
    return Outcome(
        state.module,
        "# mod: the module that was given to byocviz.record",
        origin="byocviz",
        note="The module as it was given.",
    )
