"""The whole pipeline of a recording as one Python text."""

from __future__ import annotations

from byocviz.recording import Recording
from byocviz.recording.schema import PrunePolicy

RUNS = ("prepare", "composite", "merge", "prune")
"""Steps whose call goes on from the one before; annotate is a view beside the way, partition
another drawing of merge."""


def script(recording: Recording, policy: PrunePolicy | None) -> str:
    """Text that makes the last module of ``mod``, step by step, where it is pasted.

    A step that did not run, or failed, ends it. Where ``policy`` is None nothing is pruned.
    """
    head = [
        f"# {recording.title!r} for {recording.backend.name!r}, as byocviz"
        f" {recording.made_with.get('byocviz', '')} recorded it with TVM"
        f" {recording.made_with.get('tvm', '')}.",
        "# mod: the Relax module to begin with.",
    ]
    parts = ["\n".join(head)]
    for step in recording.steps:
        if step.error is not None:
            parts.append(f"# {step.name}: failed here with {step.error.type!r}")
            break
        if step.name not in RUNS or (step.name == "prune" and policy is None):
            continue
        call = step.call.replace("# mod: the module of the composite step\n", "")
        parts.append(f"# {step.name}\n{call}")
    return "\n\n".join(parts) + "\n"
