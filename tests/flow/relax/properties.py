"""What must hold of every recording of a Relax module."""

from __future__ import annotations

from collections import Counter

import tvm_ffi

from byocviz.recording import Recording, Step
from byocviz.recording.schema import Graph
from tests.flow import properties as shared
from tests.flow.properties import ORDER, good_steps, incoming

SEE_THROUGH = {"tuple", "get", "cast"}


def producers(graph: Graph) -> dict[int, list[int]]:
    """The nodes that feed each node, tuples and elements looked through, in order of slots."""
    fed = incoming(graph)

    def sources(node: int) -> list[int]:
        if graph.nodes[node].kind not in SEE_THROUGH:
            return [node]
        feeds = sorted(fed.get(node, ()))
        if graph.nodes[node].kind == "get":
            (_, whole, index) = feeds[0]
            if graph.nodes[whole].kind == "tuple":
                fields = {slot: src for slot, src, _ in fed.get(whole, ())}
                return sources(fields[index]) if index in fields else []
        return [origin for _, src, _ in feeds for origin in sources(src)]

    return {
        node: [origin for _, src, _ in sorted(feeds) for origin in sources(src)]
        for node, feeds in fed.items()
    }


def connections(step: Step) -> Counter[tuple[int, int]]:
    """(maker, user) of each value that passes from one operator to another, in place."""
    return shared.connections(step, producers)


def check_connections(recording: Recording) -> None:
    shared.check_connections(
        recording,
        producers,
        lambda name: ("composite", "merge") if name == "merge" else ("composite",),
    )


def called(name: str, text: str) -> bool:
    return not name.startswith("relax.") or f"R.{name.removeprefix('relax.')}(" in text


def check_all(recording: Recording) -> None:
    # Operators of other dialects, and those printed as Python's own, have no call by their name.
    shared.check_identity(
        recording, lambda name, text: not name.startswith("relax.") or "R." in text
    )
    check_connections(recording)
    shared.check_reasons(recording)
    shared.check_subgraphs(recording)


def check_calls(recording: Recording) -> None:
    """Each step's call, pasted, makes the step's module from the one that it names."""

    modules = recording.__dict__["modules"]
    for step in good_steps(recording):
        index = ORDER.index(step.name)
        source = {"annotate": "prepare", "merge": "composite"}.get(step.name, ORDER[index - 1])
        if step.name == "import":
            continue
        scope = {"mod": modules[source], "params": None}
        exec(compile(step.call, f"<{step.name}>", "exec"), scope)
        assert tvm_ffi.structural_equal(scope["mod"], modules[step.name]), step.name
