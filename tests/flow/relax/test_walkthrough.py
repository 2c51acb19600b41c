"""TVMConf 2020's BYOC demo, part 1, written in Relax."""

from __future__ import annotations

import byocviz
from tests.corpus import CASES

from . import properties

CASE = next(case for case in CASES if case.name == "walkthrough")


def test_three_subgraphs() -> None:
    recording = byocviz.record(CASE.build(), "tutorial", progress=False, verify=True)
    assert recording.failed is None
    properties.check_all(recording)
    assert sorted(tuple(sorted(s.ops)) for s in recording.last.subgraphs) == [
        ("relax.add",),
        ("relax.add", "relax.nn.conv2d", "relax.nn.relu"),
        ("relax.add", "relax.nn.conv2d", "relax.nn.relu", "relax.reshape"),
    ]
    assert all(step.max_difference == 0 for step in recording.steps)


def test_the_loop_and_the_branch_are_drawn() -> None:
    recording = byocviz.record(CASE.build(), "tutorial", progress=False)
    kinds = {
        node.kind
        for function in recording.step("import").functions
        if function.graph
        for node in function.graph.nodes
    }
    assert {"if", "branch", "call", "op", "param", "output"} <= kinds
