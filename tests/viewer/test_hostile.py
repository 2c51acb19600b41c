"""Recordings that are odd, broken or hostile: shown as far as it goes, never a blank page."""

from __future__ import annotations

import base64
import gzip
import re

import msgspec
import pytest

from byocviz.recording import Recording
from byocviz.recording.schema import (
    Edge,
    FunctionView,
    Graph,
    Node,
    Operator,
    Place,
    Reason,
    Step,
    StepError,
    Subgraph,
)
from byocviz.render.html import to_html

from .conftest import Open
from .synthetic import large

NASTY = [
    "</script><script>window.hurt = 1</script>",
    "<img src=x onerror='window.hurt = 1'>",
    "\"'><svg onload=window.hurt=1>",
    "<!--<script>",
    "javascript:window.hurt=1",
    "{{constructor.constructor('window.hurt=1')()}}",
    "\u202egnp.exe\u202c\u2066x\u2069\u200f",
    "\x00\x07\x1b[31m",
    "__proto__",
    "constructor",
    "x" * 1_000_000,
    "名前 🙂 ñ",
    "",
]


def nasty() -> Recording:
    """Every string of it is one of the above."""
    ops = {
        i: Operator(
            i,
            text,
            function=text,
            var=text,
            source=text,
            callee=text,
            attrs={text[:1000]: text},
            arg_types=[text],
            out_types=[text],
        )
        for i, text in enumerate(NASTY)
    }
    nodes = [Node("param", NASTY[0], type=NASTY[1])]
    nodes += [Node("op", text, [i], callee=text, type=text) for i, text in enumerate(NASTY)]
    nodes += [Node("output", NASTY[2])]
    edges = [Edge(i, i + 1) for i in range(len(nodes) - 1)]
    text = NASTY[0]

    def step(name: str, on: str) -> Step:
        return Step(
            name,
            call=text,
            note=text,
            functions=[
                FunctionView("main", "entry", text="t", graph=Graph(nodes, edges)),
                FunctionView(text, "subgraph", text=NASTY[10][:9], graph=Graph(nodes, edges)),
            ],
            places={
                i: Place(text, "main", i + 1, on, NASTY[i], 0 if on != "tvm" else -1) for i in ops
            },
            subgraphs=[Subgraph(text, text, text, caller=text, op_ids=list(ops), ops={text: 3})],
            reasons={
                i: Reason(text[:20], text, text, rule=text, evidence={text: text}) for i in ops
            },
        )

    return Recording(
        title=text,
        made_with={text: text},
        entry="main",
        ops=ops,
        steps=[step("import", "tvm"), step(text, NASTY[1]), step("merge", NASTY[1])],
        texts={"t": "\n".join(NASTY)},
    )


@pytest.mark.parametrize("tab", ["graph", "tables", "ir"])
def test_every_string_is_data(view: Open, tab: str) -> None:
    page = view(nasty(), f"step=merge&tab={tab}&node=o1", drawn=tab == "graph")
    page.page.wait_for_timeout(700)
    assert page.page.evaluate("window.hurt") is None
    assert page.page.locator("img, iframe, object, embed").count() == 0
    assert page.page.locator("script").count() == 6
    assert page.page.inner_text("#byocviz-root").strip()
    for _ in range(2):
        page.key("ArrowLeft")
    page.page.wait_for_timeout(300)
    assert page.page.evaluate("window.hurt") is None


def test_no_string_turns_the_text_round(view: Open) -> None:
    page = view(nasty(), "step=merge")
    drawn = "".join(page.page.locator(".node text").all_text_contents())
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x00]", drawn)


def test_a_long_title_and_one_node(view: Open) -> None:
    graph = Graph([Node("op", "x", [0])], [])
    one = Recording(
        title="t" * 100_000,
        ops={0: Operator(0, "relax.add")},
        steps=[
            Step(
                "import",
                functions=[FunctionView("main", graph=graph)],
                places={0: Place("main", "main", 0)},
            )
        ],
    )
    page = view(one)
    assert page.titles() == ["add"]


@pytest.mark.parametrize(
    ("graph", "nodes"),
    [
        (Graph([], []), 0),
        (Graph([Node("op", "a", [0]), Node("op", "b", [1])], [Edge(0, 1), Edge(1, 0)]), 2),
        (Graph([Node("op", "a", [0])], [Edge(0, 0), Edge(0, 9), Edge(-3, 0)]), 1),
        (Graph([Node("composite", "c", parent=1), Node("composite", "d", parent=0)], []), 1),
        (Graph([Node("what", "odd"), Node("op", "a", [99], parent=50)], [Edge(0, 1)]), 2),
        (Graph([Node("region", "r", subgraph=7), Node("op", "a", [0], 0)], []), 1),
        (Graph([Node("call", "f", [0], callee="main"), Node("call", "g", callee="no")], []), 2),
    ],
    ids=["none", "cycle", "dangling", "boxes", "kinds", "subgraph", "recursion"],
)
def test_odd_graphs(view: Open, graph: Graph, nodes: int) -> None:
    recording = Recording(
        title="odd",
        ops={0: Operator(0, "relax.add"), 1: Operator(1, "relax.exp")},
        steps=[
            Step(
                "import",
                functions=[FunctionView("main", "entry", graph=graph)],
                places={0: Place("main", "main", 0), 77: Place("x", "y", 88, subgraph=3)},
            )
        ],
    )
    page = view(recording, drawn=nodes > 0)
    assert page.nodes() == nodes
    assert page.page.locator(".rail .step").count() == 1


def test_a_failed_step_says_what_and_the_mend(view: Open, walkthrough: Recording) -> None:
    steps = list(walkthrough.steps[:4])
    error = StepError(
        "TVMError", "Variable gv could not be found", "Prepare the module.", "at line 1"
    )
    steps.append(Step("merge", error=error))
    recording = msgspec.structs.replace(walkthrough, steps=steps)
    page = view(recording, "step=merge", drawn=False)
    card = page.page.inner_text(".error-card")
    assert "Variable gv could not be found" in card
    assert "Prepare the module." in card
    assert page.page.locator(".step.failed").count() == 1
    page.key("ArrowLeft")
    page.drawn(3)
    assert page.nodes() > 0


def test_no_steps_and_no_functions(view: Open) -> None:
    page = view(Recording(title="nothing"), drawn=False)
    assert "holds no steps" in page.page.inner_text("#byocviz-root")
    page = view(Recording(steps=[Step("import"), Step("merge")]), drawn=False)
    assert "Nothing to draw" in page.page.inner_text("#byocviz-root")
    page.key("ArrowLeft", "t", "i", "g", "j", "Enter", "/")


def swapped(html: str, data: str) -> str:
    """The page with other data in place of the recording."""
    return re.sub(r'(id="byocviz-recording">)[^<]*', lambda m: m.group(1) + data, html, count=1)


def packed(value: object) -> str:
    return base64.b64encode(gzip.compress(msgspec.json.encode(value))).decode()


def test_damaged_data_and_a_newer_schema(view: Open, walkthrough: Recording) -> None:
    html = to_html(walkthrough)
    for data in ("", "!!!!", "AAAA", packed("text"), packed([1, 2]), packed(None)):
        page = view(swapped(html, data), drawn=False)
        page.page.wait_for_selector("[role=alert]")
        assert page.page.inner_text("[role=alert]").strip()
    plain = msgspec.to_builtins(walkthrough, str_keys=True)
    page = view(swapped(html, packed({**plain, "schema": 99, "new": {"a": 1}})))
    assert "schema 99" in page.page.inner_text(".messages")
    assert page.nodes() > 0


def test_a_recording_as_plain_json_is_read_too(view: Open, walkthrough: Recording) -> None:
    html = to_html(walkthrough)
    data = base64.b64encode(gzip.compress(msgspec.json.encode(walkthrough))).decode()
    compact, plain = view(html), view(swapped(html, data))
    assert plain.titles() == compact.titles()


def test_nothing_may_be_loaded_or_run(view: Open, walkthrough: Recording) -> None:
    page = view(walkthrough)
    page.errors.clear()
    blocked = page.page.evaluate(
        """async () => {
            const seen = [];
            document.addEventListener(
                'securitypolicyviolation', event => seen.push(event.effectiveDirective)
            );
            const script = document.createElement('script');
            script.textContent = 'window.hurt = 1';
            document.body.append(script);
            const image = new Image();
            image.src = 'https://example.invalid/x.png';
            document.body.append(image);
            await fetch('https://example.invalid/').catch(() => 0);
            await new Promise(r => setTimeout(r, 100));
            return [window.hurt, seen];
        }"""
    )
    page.errors.clear()
    page.requests.clear()
    assert blocked[0] is None
    assert {"connect-src", "img-src", "script-src-elem"} <= set(blocked[1])


def test_ten_thousand_operators_are_usable(view: Open) -> None:
    recording = large()
    page = view(recording)
    assert 20 < page.nodes() < 400
    page.key("ArrowRight")
    page.drawn(5)
    page.key("/")
    page.page.keyboard.type("reason:no-rule")
    count = len(recording.step("partition").reasons)
    page.until("n => document.querySelector('.search .count').textContent === String(n)", count)
    page.page.keyboard.press("Enter")
    page.page.wait_for_selector(".pane-after .node.hit-now")
