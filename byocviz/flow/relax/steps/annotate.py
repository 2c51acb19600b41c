"""Each composite function alone becomes an external function."""

from __future__ import annotations

from tvm import relax

from byocviz.flow.relax.steps.state import Outcome, State

NAME = "annotate"


def run(state: State) -> Outcome:
    composite = state.module
    with state.in_tvm():
        module = relax.transform.FuseOpsByPattern(
            state.enabled, bind_constants=True, annotate_codegen=True
        )(state.prepared)
    state.module = composite  # merge goes on from the composite functions
    return Outcome(
        module,
        f"from tvm import relax\n{state.table}\n"
        "# mod: the module before the composite step\n"
        "mod = relax.transform.FuseOpsByPattern(\n"
        "    patterns, bind_constants=True, annotate_codegen=True\n)(mod)",
        note=(
            "The composite step again with annotate_codegen=True: the subgraphs there would be if "
            "none were merged. Relax has no annotate pass; merge goes on from the composite step."
        ),
    )
