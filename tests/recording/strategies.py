"""Recordings that hold together, drawn by hypothesis or built to a size.

``recordings()`` draws small ones with everything that the schema allows, hostile names included;
``built(operators)`` makes one that looks like a detection model's, as large as asked. Both use
`built_step`, so that what they count is counted from what they place.
"""

from __future__ import annotations

import hashlib
from collections import Counter

from hypothesis import strategies as st

from byocviz.recording import (
    STEPS,
    BackendInfo,
    Blocker,
    Edge,
    FunctionView,
    Graph,
    Node,
    Operator,
    Place,
    Profile,
    Reason,
    Recording,
    Rewrite,
    RuleInfo,
    Separation,
    Step,
    StepError,
    Subgraph,
    Tensor,
    Weights,
)

BACKEND = "tensorrt"
OFF = -1
"""The group of an operator on TVM."""

HOSTILE = (
    "\x1b[31mred\x1b[0m",
    "[bold red]markup[/]",
    "[link=https://example.invalid]click[/link]",
    "\x1b]0;title\x07",
    "a\rb\nc\td",
    "\u202egnp.elif",
    "zero\u200bwidth\ufeff",
    "<script>alert(1)</script>",
    "\x9b2J\x00\x7f",
    ":boom:",
    "名前 ёж",
    "",
    "x" * 300,
)
"""Names that a terminal, rich or HTML would act on."""

names = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
)
op_names = st.one_of(
    st.sampled_from(
        ["relax.nn.conv2d", "relax.add", "relax.clip", "relax.reshape", "relax.call_tir"]
    ),
    names,
)
figure = st.one_of(st.none(), st.integers(0, 2**48))
seconds = st.floats(0, 1e5, allow_nan=False)


def built_step(
    name: str,
    ops: dict[int, Operator],
    groups: dict[int, int],
    texts: dict[str, str],
    *,
    text: str = "",
    composite: str = "",
) -> Step:
    """A step at which each id of ``groups`` stands in ``main``, on TVM (`OFF`) or in the region
    of that number (0 ...); its IR text goes into ``texts``. A chain, in order of id."""
    key = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    texts[key] = text
    count = max(groups.values(), default=OFF) + 1
    nodes = [Node("param", "data", type="float32[1, 3, 300, 300]")]
    region = {}
    for number in range(count):
        region[number] = len(nodes)
        nodes.append(Node("region", f"region {number}", subgraph=number))
    edges, places, last = [], {}, 0
    for key_, group in sorted(groups.items()):
        nodes.append(Node("op", ops[key_].name, [key_], region.get(group, -1)))
        here = len(nodes) - 1
        edges.append(Edge(last, here))
        last = here
        on = "tvm" if group == OFF else BACKEND
        places[key_] = Place(
            "main", "main", here, on, composite if group != OFF else "", subgraph=group
        )
    nodes.append(Node("output", "out"))
    edges.append(Edge(last, len(nodes) - 1))
    subgraphs = [_subgraph(number, ops, groups, composite) for number in range(count)]
    return Step(
        name,
        call=f"mod = {name}(mod)",
        functions=[FunctionView("main", "entry", key, Graph(nodes, edges))],
        places=places,
        subgraphs=subgraphs,
        profile=_profile(ops, groups, subgraphs),
        tvm_seconds=0.25,
        capture_seconds=0.05,
    )


def _sum(figures: list[int | None]) -> int | None:
    return None if None in figures else sum(one for one in figures if one is not None)


def _subgraph(
    number: int, ops: dict[int, Operator], groups: dict[int, int], composite: str
) -> Subgraph:
    ids = sorted(key for key, group in groups.items() if group == number)
    return Subgraph(
        f"{BACKEND}_{number}",
        BACKEND,
        f"{BACKEND}_{number}",
        "main",
        ids,
        dict(Counter(ops[key].name for key in ids if ops[key].kind == "operator")),
        {composite: len(ids)} if composite and ids else {},
        _sum([ops[key].macs for key in ids]),
        sum(ops[key].param_count for key in ids),
        sum(ops[key].param_bytes for key in ids),
        4096,
        8192,
        [Tensor("lv0", "float32[1, 1024]", 4096)],
        [Tensor("gv", "float32[1, 2048]", 8192, ids[-1])] if ids else [],
    )


def _profile(
    ops: dict[int, Operator], groups: dict[int, int], subgraphs: list[Subgraph]
) -> Profile:
    real = [key for key in groups if ops[key].kind == "operator"]
    counts = Counter(ops[key].name for key in real)
    away = [key for key in real if groups[key] != OFF]
    return Profile(
        ops=dict(counts.most_common()),
        total=len(real),
        macs=_sum([ops[key].macs for key in real]),
        param_count=sum(ops[key].param_count for key in real),
        param_bytes=sum(ops[key].param_bytes for key in real),
        bytes_in=_sum([sub.bytes_in for sub in subgraphs]),
        bytes_out=_sum([sub.bytes_out for sub in subgraphs]),
        offloaded_ops=len(away),
        offloaded_macs=_sum([ops[key].macs for key in away]),
        subgraphs=len(subgraphs),
    )


@st.composite
def recordings(draw: st.DrawFn, max_ops: int = 7) -> Recording:
    """Any consistent recording, whole or cut short by a step that failed."""
    imported = draw(st.integers(0, max_ops))
    made = draw(st.integers(0, 3))
    ops = {
        key: Operator(
            key,
            draw(op_names),
            "main",
            draw(st.sampled_from(["operator", "operator", "call"])),
            draw(names),
            draw(names),
            attrs=draw(st.dictionaries(names, names, max_size=1)),
            out_types=["float32[n, 4]"],
            macs=draw(figure),
            param_bytes=draw(st.integers(0, 2**40)),
            created_by="" if key < imported else "fold",
        )
        for key in range(imported + made)
    }
    new = list(range(imported, imported + made))
    replaced = draw(st.sets(st.integers(0, imported - 1))) if imported else set()
    for key in replaced:
        ops[key].replaced_by = draw(st.lists(st.sampled_from(new), max_size=2)) if new else []
        ops[key].fate, ops[key].fate_by = ("replaced" if ops[key].replaced_by else "dead"), "fold"
    texts: dict[str, str] = {}
    steps = []
    for name in STEPS[: draw(st.integers(0, len(STEPS)))]:
        early = name == "import"
        alive = [key for key in ops if (key < imported if early else key not in replaced)]
        steps.append(draw(_steps(name, ops, alive, texts)))
    if steps and draw(st.booleans()):
        steps[-1] = Step(
            steps[-1].name,
            error=StepError(draw(names), draw(names), draw(names), "Traceback ..."),
        )
    return Recording(
        title=draw(names),
        created="2025-01-01T00:00:00Z",
        made_with={"byocviz": "0.1.0", "tvm": draw(names)},
        backend=BackendInfo(BACKEND, [RuleInfo(draw(names), enabled=draw(st.booleans()))]),
        weights=Weights(draw(st.integers(0, 9)), 10, 40, "0" * 64),
        ops=ops,
        steps=steps,
        texts=texts,
        what_if=draw(st.none() | st.lists(_blockers, max_size=2)),
        extra=draw(
            st.dictionaries(
                names, st.recursive(st.none() | st.integers(0, 9) | names, st.lists), max_size=2
            )
        ),
    )


_blockers = st.builds(
    Blocker,
    op=op_names,
    count=st.integers(0, 9),
    subgraphs=st.integers(0, 9),
    subgraphs_now=st.integers(0, 9),
    coverage_ops=st.floats(0, 1),
    coverage_ops_now=st.floats(0, 1),
    coverage_macs=st.none() | st.floats(0, 1),
    coverage_macs_now=st.none() | st.floats(0, 1),
    boundary_bytes=figure,
    boundary_bytes_now=figure,
    error=names,
)


@st.composite
def _steps(
    draw: st.DrawFn, name: str, ops: dict[int, Operator], alive: list[int], texts: dict[str, str]
) -> Step:
    count = 0 if name in ("import", "prepare", "composite") else draw(st.integers(0, 3))
    groups = {key: draw(st.integers(OFF, count - 1)) for key in alive}
    # Every region holds something: numbers without operators are closed up.
    used = sorted({group for group in groups.values() if group != OFF})
    groups = {key: used.index(group) if group != OFF else OFF for key, group in groups.items()}
    step = built_step(
        name, ops, groups, texts, text=draw(names), composite=draw(st.sampled_from(["", "t.conv"]))
    )
    step.tvm_seconds, step.capture_seconds = draw(seconds), draw(seconds)
    step.changed = draw(st.booleans())
    step.max_difference = draw(st.none() | st.floats(0, 1))
    step.verify_error = draw(st.sampled_from(["", "could not compile"]))
    if name == "prepare":
        step.rewrites = draw(st.lists(_rewrites, max_size=2))
    if name not in ("import", "prepare"):
        step.reasons = {
            key: Reason(draw(st.sampled_from(["no-rule", "other-form"])), draw(names), draw(names))
            for key, group in groups.items()
            if group == OFF
        }
    if len(step.subgraphs) > 1:
        path = sorted(key for key, group in groups.items() if group == OFF)
        step.separations = [Separation(0, 1, "path", draw(names), path)]
    return step


_rewrites = st.builds(
    Rewrite,
    name=names,
    text=names,
    count=st.integers(0, 9),
    before=st.integers(0, 99),
    after=st.integers(0, 99),
    assumes=names,
    enabled=st.booleans(),
    left=st.dictionaries(names, st.integers(1, 9), max_size=1),
)

_CHAIN = ("nn.conv2d", "add", "clip", "nn.conv2d", "add", "clip", "nn.conv2d", "add", "reshape")


def built(operators: int = 705) -> Recording:
    """A whole recording of a chain of that many operators, with IR text as TVM prints it: blocks
    of convolutions on the backend, a reshape on TVM after each."""
    ops = {
        key: Operator(
            key,
            f"relax.{_CHAIN[key % 9]}",
            "main",
            var=f"lv{key}",
            source=f"FeatureExtractor/MobilenetV2/layer_{key}",
            attrs={"strides": "[1, 1]", "padding": "[1, 1, 1, 1]", "data_layout": "NCHW"},
            arg_types=[f"float32[1, {16 + key % 7}, 150, 150]", "float32[32, 16, 3, 3] const"],
            out_types=[f"float32[1, {16 + key % 5}, 150, 150]"],
            macs=10_838_016 + key if key % 3 == 0 else 0,
            param_count=864,
            param_bytes=3456,
        )
        for key in range(operators)
    }
    texts: dict[str, str] = {}
    steps = []
    for number, name in enumerate(STEPS):
        away = number >= STEPS.index("annotate")
        alone = name == "annotate"
        groups, regions = {}, 0
        for key in ops:
            offload = away and key % 9 != 8
            if offload and (alone or key % 9 == 0):
                regions += 1
            groups[key] = regions - 1 if offload else OFF
        text = _ir(ops, groups, name)
        step = built_step(
            name, ops, groups, texts, text=text, composite="tensorrt.conv2d" if away else ""
        )
        if away:
            step.reasons = {
                key: Reason(
                    "no-rule",
                    f"No rule of {BACKEND} names {ops[key].name}.",
                    "Add a rule for it, or rewrite it.",
                )
                for key, group in groups.items()
                if group == OFF
            }
            step.separations = [
                Separation(
                    one,
                    one + 1,
                    "path",
                    "Operators on TVM lie between them.",
                    [] if alone else [9 * one + 8],
                )
                for one in range(regions - 1)
            ]
        steps.append(step)
    return Recording(
        title="built",
        created="2025-01-01T00:00:00Z",
        made_with={"byocviz": "0.1.0", "python": "3.11.9", "tvm": "0.27.0"},
        backend=BackendInfo(BACKEND, [RuleInfo("tensorrt.conv2d", ["relax.nn.conv2d"])]),
        weights=Weights(180, 864 * operators, 3456 * operators, "0" * 64),
        ops=ops,
        steps=steps,
        texts=texts,
    )


def _ir(ops: dict[int, Operator], groups: dict[int, int], step: str) -> str:
    lines = [f"# {step}", "@R.function", "def main(data: R.Tensor):", "    with R.dataflow():"]
    for key, group in groups.items():
        callee = f"cls.fused_{BACKEND}_{group}" if group != OFF else f"R.{ops[key].name[6:]}"
        lines.append(
            f'        lv{key}: R.Tensor((1, {16 + key % 5}, 150, 150), dtype="float32") = '
            f'{callee}(lv{key - 1}, metadata["relax.expr.Constant"][{key}], strides=[1, 1], '
            f'padding=[1, 1, 1, 1], groups=1, data_layout="NCHW", kernel_layout="OIHW")'
        )
    return "\n".join(lines)
