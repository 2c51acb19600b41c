"""What became of the branches of an "if", which TVM moves when it merges regions."""

from __future__ import annotations

from collections.abc import Iterator

from byocviz.recording import Recording, Step, Subgraph
from byocviz.recording.schema import Graph


def both_branches(recording: Recording, step: Step, sub: Subgraph) -> bool:
    """Whether a subgraph of a step holds operators of both branches of one "if".

    TVM's MergeCompilerRegions moves them before it, so the last step before that draws them in
    branches is asked. Drawn so at the step itself, the "if" is in the subgraph and decides.
    """
    names = [one.name for one in recording.steps]
    last = names.index(step.name) if step.name in names else len(names) - 1
    for at in range(last, -1, -1):
        here = recording.steps[at]
        graphs = {view.name: view.graph for view in here.functions}
        seen: dict[tuple[str, int], int] = {}
        for key in sub.op_ids:
            place = here.places.get(key)
            graph = graphs.get(place.graph) if place is not None else None
            if place is None or graph is None:
                continue
            for box, owner in _branches_round(graph, place.node):
                if seen.setdefault((place.graph, owner), box) != box:
                    return at < last
        if seen:
            return False
    return False


def _branches_round(graph: Graph, node: int) -> Iterator[tuple[int, int]]:
    """The branch boxes round a node with their "if" nodes, from the inside out."""
    at = graph.nodes[node].parent
    while at >= 0:
        box = graph.nodes[at]
        if box.kind == "branch":
            yield at, box.owner
        at = box.parent
