"""What must hold of every recording of a Relay module."""

from __future__ import annotations

import tvm

from byocviz.recording import Recording
from byocviz.recording.schema import Graph
from tests.flow import properties as shared
from tests.flow.properties import ORDER, good_steps, incoming

SEE_THROUGH = {"tuple", "get"}


def producers(graph: Graph) -> dict[int, list[int]]:
    """The nodes that feed each node, tuples and elements looked through, in order of slots."""
    fed = incoming(graph)

    def source(node: int, out: int) -> int | None:
        """What makes result ``out`` of a node."""
        kind = graph.nodes[node].kind
        if kind not in SEE_THROUGH:
            return node
        for slot, src, inner in fed.get(node, ()):
            if slot == out:
                return source(src, inner)
        return None

    return {
        node: [origin for _, src, out in sorted(feeds) if (origin := source(src, out)) is not None]
        for node, feeds in fed.items()
    }


def check_outlined(recording: Recording) -> None:
    """What merge draws as regions is what partition outlines, boundary and all; but a region whose
    parts only a tuple holds together falls apart (PartitionGraph flattens tuples first)."""
    steps = {step.name: step for step in good_steps(recording)}
    if "partition" not in steps:
        return
    merged = {frozenset(s.op_ids): s for s in steps["merge"].subgraphs}
    for subgraph in steps["partition"].subgraphs:
        ids = frozenset(subgraph.op_ids)
        region = merged.get(ids)
        if region is None:
            (region,) = [s for known, s in merged.items() if ids < known]
        else:
            assert (subgraph.macs, subgraph.bytes_in) == (region.macs, region.bytes_in)
            assert subgraph.bytes_out == region.bytes_out
    assert steps["partition"].profile.offloaded_ops == steps["merge"].profile.offloaded_ops


def check_all(recording: Recording) -> None:
    shared.check_identity(recording, lambda name, text: f"{name}(" in text)
    assert not any("span=byocviz" in text for text in recording.texts.values())
    shared.check_connections(recording, producers, lambda name: ORDER[: ORDER.index(name) + 1])
    shared.check_reasons(recording)
    shared.check_subgraphs(recording)
    check_outlined(recording)


def check_calls(recording: Recording, params: dict | None = None) -> None:
    """Each step's call, pasted, makes the step's module from the one before it."""
    modules = recording.__dict__["modules"]
    for step in good_steps(recording)[1:]:
        before = modules[ORDER[ORDER.index(step.name) - 1]]
        scope = {"mod": before, "params": params, "backend": recording.__dict__["backend_used"]}
        exec(compile(step.call, f"<{step.name}>", "exec"), scope)
        assert tvm.ir.structural_equal(scope["mod"], modules[step.name], True), step.name
