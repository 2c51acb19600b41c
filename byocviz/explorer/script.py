"""The whole pipeline of a recording as one Python text."""

from __future__ import annotations

from collections.abc import Collection

from byocviz.recording import Recording
from byocviz.recording.schema import STEPS, PrunePolicy

RUNS = {"relax": ("prepare", "composite", "merge", "prune"), "relay": STEPS[1:]}
"""Steps whose call goes on from the one before. On Relax annotate is a view beside the way, and
partition another drawing of merge."""


def script(recording: Recording, policy: PrunePolicy | None, held: Collection[int] = ()) -> str:
    """Text that makes the last module of ``mod``, step by step, where it is pasted.

    A step that did not run, or failed, ends it. Where ``policy`` is None nothing is pruned. What
    was held back on Relay is not in the text, which says so: there no pass takes it.
    """
    head = [
        f"# {recording.title!r} for {recording.backend.name!r}, as byocviz"
        f" {recording.made_with.get('byocviz', '')} recorded it with TVM"
        f" {recording.made_with.get('tvm', '')}.",
        f"# mod: the {recording.ir.capitalize()} module to begin with.",
    ]
    if held and recording.ir == "relay":
        head.append(
            f"# Not in this text: nothing was offloaded after the operators {sorted(held)}, which "
            "the explorer asked in the rules' checks."
        )
    parts = ["\n".join(head)]
    for step in recording.steps:
        if step.error is not None:
            parts.append(f"# {step.name}: failed here with {step.error.type!r}")
            break
        if step.name not in RUNS[recording.ir] or (step.name == "prune" and policy is None):
            continue
        call = step.call.replace("# mod: the module of the composite step\n", "")
        parts.append(f"# {step.name}\n{call}")
    return "\n\n".join(parts) + "\n"
