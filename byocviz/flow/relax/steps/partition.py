"""The merged module, drawn by its functions."""

from __future__ import annotations

from byocviz.flow.relax.steps.state import Outcome, State

NAME = "partition"


def run(state: State) -> Outcome:
    return Outcome(
        state.module,
        "# mod: the module of the merge step; MergeCompositeFunctions has outlined its regions",
        origin="byocviz",
        note=(
            "The module of the merge step, drawn with each subgraph as a function of its own: "
            "Relax partitions while it merges."
        ),
        outlined=True,
    )
