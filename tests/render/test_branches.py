"""Both branches of an "if" in one subgraph are told, from the step before they were merged."""

from __future__ import annotations

import pytest

from byocviz.recording import Recording
from byocviz.recording.schema import (
    FunctionView,
    Graph,
    Node,
    Operator,
    Place,
    Profile,
    Step,
    Subgraph,
)
from byocviz.render.branches import both_branches
from byocviz.render.sections import subgraphs
from byocviz.render.text import to_text

_IF = [
    Node("op", "a", [0]),
    Node("if", "if"),
    Node("branch", "then", owner=1),
    Node("op", "b", [1], 2),
    Node("branch", "else", owner=1),
    Node("op", "c", [2], 4),
]
_MERGED = [Node("region", "r", subgraph=0), *(Node("op", n, [i], 0) for i, n in enumerate("abc"))]


def _step(name: str, nodes: list[Node], held: list[int]) -> Step:
    places = {
        key: Place("main", "main", at, "b", subgraph=0 if key in held else -1)
        for at, node in enumerate(nodes)
        for key in node.ops
    }
    sub = Subgraph("s", "b", "s", op_ids=held, ops={"nn.relu": len(held)})
    view = FunctionView("main", "entry", graph=Graph(nodes))
    profile = Profile(total=3, subgraphs=bool(held))
    return Step(name, functions=[view], places=places, subgraphs=[sub], profile=profile)


def _recording(last: list[Node], held: list[int]) -> Recording:
    ops = {key: Operator(key, "nn.relu", "main") for key in range(3)}
    steps = [_step("annotate", _IF, []), _step("merge", last, held)]
    return Recording(title="if", ir="relay", ops=ops, steps=steps)


@pytest.mark.parametrize(
    ("last", "held", "both"),
    [
        (_MERGED, [0, 1, 2], True),
        (_MERGED, [1, 2], True),
        (_MERGED, [0, 1], False),
        (_MERGED, [0], False),
        (_MERGED, [], False),
        (_IF, [0, 1, 2], False),  # the "if" is in the subgraph, and decides
    ],
)
def test_both_branches_are_told(last: list[Node], held: list[int], both: bool) -> None:
    recording = _recording(last, held)
    step = recording.step("merge")
    assert both_branches(recording, step, step.subgraphs[0]) == both
    part = subgraphs(recording, step)
    assert part is not None
    said = " ".join(to_text(part).split())
    assert ("both are always computed" in said) == both
