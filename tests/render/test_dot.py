"""Graphviz figures: what they show, of real recordings; that no recording breaks them; and that
Graphviz draws them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from functools import lru_cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import byocviz
from byocviz.errors import ByocvizError, MissingPackage, RecordingError, StepMissing
from byocviz.recording import (
    BackendInfo,
    Edge,
    FunctionView,
    Graph,
    Node,
    Operator,
    Place,
    Reason,
    Recording,
    Step,
    Subgraph,
)
from byocviz.render import dot, flows
from byocviz.render.palette import THEMES
from tests.recording.strategies import HOSTILE, built, recordings

DOT = shutil.which("dot")
needs_dot = pytest.mark.skipif(DOT is None, reason="Graphviz's dot is not installed")

NASTY = (
    *HOSTILE,
    "</TABLE>>]; evil [label=x",
    '"quoted"',
    "back\\slash\\N\\G\\l",
    "new\nline\r\n",
    "&amp; & < > '",
    "]]>",
    " ",
    "   ",
    "\u2028\u2029",
    "\ufffe\ud800",
    "\u05e9\u05dc\u05d5\u05dd",
    "\U0001f600",
    "}",
    "-->",
    "x" * 1_000_000,
)


@lru_cache
def walkthrough() -> Recording:
    from tests.corpus import by_name

    case = by_name("walkthrough")
    return byocviz.record(case.build(), case.backend, title="walkthrough", progress=False)


def case(name: str) -> Recording:
    from tests.corpus import by_name

    one = by_name(name)
    return byocviz.record(one.build(), one.backend, entry=one.entry, title=name, progress=False)


def drawn_by_graphviz(text: str) -> ElementTree.Element:
    """What ``dot`` draws, as XML; it must have nothing to say about the text."""
    assert DOT is not None
    done = subprocess.run(
        [DOT, "-Tsvg"], input=text.encode("utf-8"), capture_output=True, check=False
    )
    said = done.stderr.decode()
    assert done.returncode == 0, said
    assert "syntax error" not in said
    assert "not well-formed" not in said
    return ElementTree.fromstring(done.stdout)


def titles(svg: ElementTree.Element, kind: str) -> list[str]:
    """Names of the nodes, edges or clusters that were drawn."""
    space = "{http://www.w3.org/2000/svg}"
    return [
        group.findtext(f"{space}title", "")
        for group in svg.iter(f"{space}g")
        if group.get("class") == kind
    ]


def nodes_of(text: str) -> list[str]:
    return re.findall(r"^(f\d+_\d+) \[", text, re.MULTILINE)


# -- what is shown


def test_every_operator_is_drawn_once_and_says_where_it_runs() -> None:
    recording = walkthrough()
    for step in recording.steps:
        text = dot.to_dot(recording, step.name)
        outside = [p for p in step.places.values() if p.graph in ("main", "loop")]
        on = Counter(
            place.on
            for key, place in step.places.items()
            if place.graph in ("main", "loop") and recording.ops[key].kind == "operator"
        )
        said = re.findall(r"&#183; (TVM|tutorial)</FONT>", text)
        assert Counter(said) == Counter({"TVM": on["tvm"], "tutorial": on["tutorial"]}), step.name
        assert len(outside) <= len(nodes_of(text))


def test_the_boxes_are_those_of_the_step() -> None:
    recording = walkthrough()
    boxes = {
        name: len(re.findall(r"^subgraph cluster_f\d+_\d+ ", dot.to_dot(recording, name), re.M))
        for name in ("import", "composite", "annotate", "merge", "partition")
    }
    # Two branches; two composites of several operators; a region for each subgraph.
    assert boxes == {"import": 2, "composite": 4, "annotate": 8, "merge": 7, "partition": 2}
    assert dot.to_dot(recording, "composite").count("peripheries=2") == 2


def test_an_outlined_subgraph_is_a_node_with_its_figures() -> None:
    recording = walkthrough()
    step = recording.step("partition")
    text = dot.to_dot(recording, "partition")
    for number, sub in enumerate(step.subgraphs, 1):
        assert f"S{number} &#183; tutorial" in text
        for name in sub.ops:
            assert name.removeprefix("relax.") in text
    assert "4 operators, 9.22 k MACs" in text
    assert "1.58 KiB in, 1.00 KiB out" in text
    inside = dot.to_dot(recording, "partition", step.subgraphs[2].function)
    assert "walkthrough &#183; partition &#183; S3" in inside
    assert "4 operators, 9.22 k MACs" in inside
    assert inside.count(" &#183; tutorial</FONT>") == 4


def test_control_flow_parts_and_joins() -> None:
    text = dot.to_dot(walkthrough(), "import", "loop")
    assert text.count("shape=diamond") == 1
    assert text.count("lhead=cluster_") == 2
    joined = re.findall(r"^f0_\d+ -> (f0_\d+j)", text, re.MULTILINE)
    assert len(joined) == 2
    assert re.search(rf"^{joined[0]} -> f0_\d+$", text, re.MULTILINE)
    assert "calls itself" in text


def test_reasons_and_what_was_given_back() -> None:
    text = dot.to_dot(walkthrough(), "merge")
    assert "! no-rule" in text
    assert "why it stays on TVM" in text
    recording = built(9)
    step = recording.last
    step.reasons = {8: Reason("pruned", "small", "keep it")}
    text = dot.to_dot(recording, step)
    assert "! pruned" in text
    assert "given back to TVM" in text


def test_tuples_are_passed_through() -> None:
    nodes = [
        Node("param", "x"),
        Node("op", "split", [0]),
        Node("tuple", "t"),
        Node("get", "second"),
        Node("op", "use", [1]),
        Node("const", "3", type="int32[]"),
        Node("output", "result"),
    ]
    edges = [
        Edge(0, 1),
        Edge(0, 2, 0),
        Edge(1, 2, 1, 4),
        Edge(2, 3, 0, 1),
        Edge(3, 4),
        Edge(5, 4, 1),
        Edge(4, 6),
    ]
    found = flows.drawn(Graph(nodes, edges))
    assert found.nodes == [0, 1, 4, 6]
    assert found.flows == [(0, 1, 0, 0), (1, 4, 0, 4), (4, 6, 0, 0)]
    assert found.constants == {4: ["3"]}


def test_a_tuple_with_many_readers_costs_no_square() -> None:
    size = 300
    nodes = [Node("op", "a", [0]) for _ in range(size)]
    nodes += [Node("tuple", "t"), *(Node("op", "b", [0]) for _ in range(size))]
    edges = [Edge(i, size, i) for i in range(size)]
    edges += [Edge(size, size + 1 + i) for i in range(size)]
    found = flows.drawn(Graph(nodes, edges))
    assert len(found.flows) == 2 * size


# -- that it holds


@pytest.mark.parametrize("theme", THEMES)
def test_the_same_recording_gives_the_same_text(theme: str, tmp_path: Path) -> None:
    recording = walkthrough()
    again = byocviz.load(recording.save(tmp_path / "again"))
    for step in recording.steps:
        text = dot.to_dot(recording, step.name, theme=theme)
        assert text == dot.to_dot(again, step.name, theme=theme)


def test_the_text_grows_with_the_graph() -> None:
    sizes = {n: len(dot.to_dot(built(n), "merge")) for n in (600, 1200, 3600)}
    one = (sizes[1200] - sizes[600]) / 600
    assert (sizes[3600] - sizes[1200]) / 2400 == pytest.approx(one, rel=0.05)


def hostile(name: str) -> Recording:
    """A recording in which every string is ``name``."""
    ops = {0: Operator(0, name, name, callee=name, out_types=[name], arg_types=[name])}
    nodes = [
        Node("param", name, type=name),
        Node("region", name, subgraph=0),
        Node("composite", name, parent=1, callee=name),
        Node("op", name, [0], 2),
        Node("call", name, callee=name),
        Node("call", name, callee=name, subgraph=0),
        Node("if", name),
        Node("branch", name, owner=6),
        Node(name or "other", name, parent=7),
        Node("const", name, type="int32[]"),
        Node("function", name),
        Node("output", name, type=name),
    ]
    edges = [Edge(0, 3), Edge(9, 3, 1), Edge(3, 4), Edge(4, 6), Edge(8, 6, 1), Edge(6, 11)]
    edges += [Edge(10, 5), Edge(5, 2), Edge(9, 4, 1)]
    return Recording(
        title=name,
        backend=BackendInfo(name),
        ops=ops,
        steps=[
            Step(
                name or "merge",
                functions=[
                    FunctionView(name, "entry", graph=Graph(nodes, edges)),
                    FunctionView("other", "function", graph=Graph(nodes[:1], [])),
                ],
                places={0: Place(name, name, 3, name, name, 0)},
                subgraphs=[Subgraph(name, name, name, name, [0], {name: 2})],
                reasons={0: Reason(name, name, name)},
            )
        ],
    )


@needs_dot
@pytest.mark.parametrize("number", range(len(NASTY)))
def test_hostile_names_stay_words(number: int) -> None:
    recording = hostile(NASTY[number])
    text = dot.to_dot(recording, recording.steps[0])
    assert len(text) < 20_000
    assert all(one.isprintable() for one in text.splitlines())
    svg = drawn_by_graphviz(text)
    # Params and results, an operator, two calls, the diamond and its join, what is unknown, and
    # the second function's parameter; nothing that a name brought in.
    assert sorted(titles(svg, "node")) == sorted(
        ["f0_0", "f0_3", "f0_4", "f0_5", "f0_6", "f0_6j", "f0_8", "f0_11", "f1_0"]
    )
    places = {e.tag.rpartition("}")[2] for e in svg.iter()}
    assert places <= {"svg", "g", "title", "text", "path", "polygon", "polyline", "ellipse"}


@needs_dot
@given(recordings(), st.sampled_from(THEMES), st.sampled_from(dot.DIRECTIONS))
@settings(max_examples=15)
def test_any_recording_is_drawn(recording: Recording, theme: str, direction: str) -> None:
    for step in recording.steps[-2:]:
        text = dot.to_dot(recording, step.name, theme=theme, direction=direction)
        svg = drawn_by_graphviz(text)
        assert titles(svg, "node")
        if step.error is not None:
            assert "This step failed" in text


KINDS = (
    *("op", "call", "const", "tuple", "get", "cast", "if", "param", "output", "what"),
    *("branch", "composite", "region", "function"),
)

graphs = st.integers(0, 9).flatmap(
    lambda size: st.builds(
        Graph,
        st.lists(
            st.builds(
                Node,
                st.sampled_from(KINDS),
                st.just("n"),
                st.lists(st.just(0), max_size=1),
                st.integers(-2, size),
                owner=st.integers(-2, size),
            ),
            min_size=size,
            max_size=size,
        ),
        st.lists(st.builds(Edge, *[st.integers(-1, size)] * 2, st.integers(0, 2)), max_size=14),
    )
)


@needs_dot
@given(graphs)
@settings(max_examples=40)
def test_graphs_that_no_module_has_are_drawn_as_far_as_it_goes(graph: Graph) -> None:
    recording = Recording(
        ops={0: Operator(0, "relax.add")},
        steps=[Step("merge", functions=[FunctionView("main", "entry", graph=graph)])],
    )
    text = dot.to_dot(recording, "merge")
    svg = drawn_by_graphviz(text)
    known = set(re.findall(r"^(f0_\d+j?) \[", text, re.MULTILINE))
    assert set(titles(svg, "node")) - {"nothing"} == known


def test_boxes_can_lie_deep() -> None:
    deep = 5000
    nodes = [Node("composite", "c", parent=i - 1) for i in range(deep)]
    nodes.append(Node("op", "n", [0], deep - 1))
    graph = Graph(nodes, [])
    recording = Recording(
        ops={0: Operator(0, "relax.add")},
        steps=[Step("merge", functions=[FunctionView("main", "entry", graph=graph)])],
    )
    text = dot.to_dot(recording, "merge")
    depth = most = 0
    for line in text.splitlines():
        depth += line.startswith("subgraph") - (line == "}")
        most = max(most, depth)
    assert most <= flows.MAX_DEPTH


# -- by Graphviz


@needs_dot
@pytest.mark.parametrize(
    "name", ["walkthrough", "local_function", "closure_over_a_result", "tutorial_bias_used_twice"]
)
def test_real_recordings_are_drawn(name: str) -> None:
    recording = walkthrough() if name == "walkthrough" else case(name)
    for step in recording.steps:
        for view in step.functions:
            if view.graph is None:
                continue
            text = dot.to_dot(recording, step.name, view.name)
            svg = drawn_by_graphviz(text)
            assert set(nodes_of(text)) <= set(titles(svg, "node"))
            clusters = re.findall(r"^subgraph (cluster_\S+) ", text, re.MULTILINE)
            assert sorted(titles(svg, "cluster")) == sorted(clusters)


@needs_dot
def test_svg_and_png(tmp_path: Path) -> None:
    pytest.importorskip("graphviz")
    recording = walkthrough()
    svg = recording.to_svg("merge")
    assert svg.startswith("<?xml")
    assert "conv2d_bias_relu" in svg
    png = recording.to_png("merge", "loop", dpi=50)
    assert png.startswith(b"\x89PNG")
    small = recording.to_png("merge", "loop", dpi=25, theme="dark", legend=False)
    assert len(small) < len(png)
    for path in (recording.to_svg("merge", path=tmp_path / "a.svg"),):
        assert path.read_text(encoding="utf-8") == svg
    assert recording.to_png("merge", "loop", path=tmp_path / "a.png", dpi=50).read_bytes() == png
    with pytest.raises(RecordingError, match="cannot be written"):
        recording.to_svg("merge", path=tmp_path / "no" / "a.svg")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.png", "a.svg"]


def test_what_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    recording = walkthrough()
    with pytest.raises(StepMissing, match="No step 'fuse'"):
        recording.to_dot("fuse")
    with pytest.raises(StepMissing, match=r"function 'nope' does not exist.*\n.*main, loop"):
        recording.to_dot("merge", "nope")
    with pytest.raises(StepMissing, match="is not drawn by itself"):
        recording.to_dot("merge", recording.step("merge").subgraphs[0].function)
    with pytest.raises(ValueError, match="theme"):
        recording.to_dot("merge", theme="neon")
    with pytest.raises(ValueError, match="direction"):
        recording.to_dot("merge", direction="up")
    with pytest.raises(ValueError, match="dpi"):
        recording.to_png("merge", dpi=0)
    pytest.importorskip("graphviz")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingPackage, match=r"dot is not installed[^$]*conda-forge graphviz"):
        recording.to_svg("merge")


def test_the_package_is_asked_for_by_its_extra() -> None:
    script = (
        "import sys; sys.modules['graphviz'] = None\n"
        "from byocviz.errors import MissingPackage\n"
        "from byocviz.recording import Recording, Step\n"
        "recording = Recording(steps=[Step('merge')])\n"
        "assert 'draws nothing' in recording.to_dot('merge')\n"
        "try: recording.to_png('merge')\n"
        "except MissingPackage as error: print(error)\n"
        "assert not {'tvm', 'numpy', 'onnx'} & set(sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert "[graphviz]" in done.stdout


@needs_dot
def test_what_dot_says_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("graphviz")
    broken = tmp_path / "dot"
    broken.write_text("#!/bin/sh\necho 'out of memory' >&2\nexit 3\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ByocvizError, match="out of memory"):
        walkthrough().to_svg("merge")
