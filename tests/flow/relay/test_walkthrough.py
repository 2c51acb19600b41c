"""The TVMConf 2020 demo's walkthrough, on the IR that it was given on."""

from __future__ import annotations

from tests.relay import needs_relay

needs_relay()

import pytest  # noqa: E402

import byocviz  # noqa: E402
from byocviz import Backend  # noqa: E402
from tests.corpus_relay.walkthrough import SUBGRAPHS, rules, walkthrough  # noqa: E402

from .properties import check_all, check_calls  # noqa: E402

BACKENDS = ["tutorial", "byoc_target"]


@pytest.fixture(scope="module", params=BACKENDS)
def recording(request):
    name = request.param
    backend = name if name == "tutorial" else Backend(name, rules(name))
    return byocviz.record(walkthrough(), backend, verify=True, progress=False)


def test_the_subgraphs_are_the_demo_s(recording):
    name = recording.backend.name
    wanted = {f"tvmgen_default_{name}_{end}": ops for end, ops in SUBGRAPHS}
    found = {s.function: s.ops for s in recording.step("partition").subgraphs}
    assert found == wanted
    assert {s.function for s in recording.last.subgraphs} == set(wanted)


def test_four_regions_become_three(recording):
    annotated, merged = recording.step("annotate").subgraphs, recording.step("merge").subgraphs
    assert sorted(sum(s.ops.values()) for s in annotated) == [1, 1, 3, 3]
    assert sorted(sum(s.ops.values()) for s in merged) == [1, 3, 4]


def test_what_is_drawn(recording):
    graph = recording.step("merge").functions[0].graph
    kinds = [node.kind for node in graph.nodes]
    assert kinds.count("if") == 1
    assert kinds.count("branch") == 2
    assert kinds.count("function") == 1
    assert kinds.count("region") == 3
    assert kinds.count("composite") == 2
    (loop,) = [i for i, node in enumerate(graph.nodes) if node.kind == "function"]
    assert graph.nodes[loop].label == "loop"
    # The loop's function feeds its own call as well as the first.
    fed = [edge.dst for edge in graph.edges if edge.src == loop]
    assert sorted(graph.nodes[node].kind for node in fed) == ["call", "call"]
    for node in graph.nodes:
        if node.kind == "branch":
            assert graph.nodes[node.owner].kind == "if"
    labels = {node.label for node in graph.nodes if node.kind == "param"}
    assert labels == {"data", "i", "x"}
    assert "annotation.compiler_begin" not in recording.step("merge").profile.ops


def test_properties(recording):
    check_all(recording)
    check_calls(recording)
    assert all(step.max_difference == 0.0 for step in recording.steps)
    (reason,) = recording.last.reasons.values()
    assert reason.code == "no-rule"
    assert "less" in reason.text


def test_it_is_shown_without_tvm(recording, tmp_path):
    assert "less" in recording.summary()
    path = recording.save(tmp_path / "walkthrough")
    again = byocviz.load(path)
    assert again == recording
    assert again.ir == "relay"
    for step in ("import", "merge", "partition"):
        assert again.to_dot(step).startswith("digraph")
    name = again.last.subgraphs[-1].function
    assert "reshape" in again.to_dot("partition", name)
