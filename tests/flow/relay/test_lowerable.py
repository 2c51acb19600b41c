"""Recording what can be lowered: every subgraph lowers, and nothing that would is left."""

from __future__ import annotations

from typing import Any

import pytest

from tests.relay import needs_relay

needs_relay()

from tvm import relay  # noqa: E402
from tvm.relay.dataflow_pattern import is_op, is_tuple_get_item, wildcard  # noqa: E402

import byocviz  # noqa: E402
from byocviz import Backend  # noqa: E402
from byocviz.building.relay.codegen import external  # noqa: E402
from byocviz.building.relay.lower import check  # noqa: E402
from tests.corpus_relay import CASES, Case  # noqa: E402
from tests.corpus_relay.case import conv, main, x  # noqa: E402

from .properties import check_all, check_calls  # noqa: E402


def walks(case: Case) -> list[byocviz.Recording]:
    params = case.params() if case.params else None
    how: dict[str, Any] = {"entry": case.entry, "params": params, "progress": False}
    return [
        byocviz.record(case.build(), case.backend, prune=False, lowerable=asked, **how)
        for asked in (False, True)
    ]


@pytest.mark.thinned(5)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_each_subgraph_lowers(case: Case) -> None:
    plain, asked = walks(case)
    check_all(asked)
    check_calls(asked, case.params() if case.params else None)
    assert (asked.failed is None) == (plain.failed is None)
    if asked.failed is not None:
        return
    module = asked.module("partition")
    own = {s.function for s in asked.last.subgraphs if s.backend == case.backend}
    for symbol, function in external(module).items():
        if symbol in own and case.name != "subgraph_given":
            assert check(function, module=module) == [], symbol
    refused = [r for r in asked.last.reasons.values() if r.code == "not-lowerable"]
    if not refused:
        assert asked.last.profile.offloaded_ops == plain.last.profile.offloaded_ops
    assert all(r.mend and "cannot be lowered" in r.text for r in refused)


def open_shape() -> Any:
    """An operator of no fixed shape, and one of a fixed shape."""
    data = relay.var("x", shape=(relay.Any(), 4))
    return main(relay.nn.relu(relay.sum(relay.sigmoid(data), axis=[0])))


def test_what_is_refused_is_said_with_the_lowering_s_own_words() -> None:
    patterns = [(f"mine.{n}", is_op(n)(wildcard())) for n in ("sigmoid", "nn.relu")]
    recording = byocviz.record(open_shape(), Backend("mine", patterns), lowerable=True)
    by_name = {recording.ops[i].name: r for i, r in recording.last.reasons.items()}
    assert "nn.relu" not in by_name
    reason = by_name["sigmoid"]
    assert (reason.code, reason.rule) == ("not-lowerable", "mine.sigmoid")
    assert "cannot be lowered to ONNX" in reason.text
    assert "fixed shapes" in reason.mend
    check_calls(recording)


def test_operator_rules_are_asked_too() -> None:
    backend = Backend("mine", [("mine.sigmoid", "sigmoid"), ("mine.relu", "nn.relu")])
    for given, how in ((backend, {"lowerable": True}), (backend.lowerable(), {})):
        recording = byocviz.record(open_shape(), given, progress=False, **how)
        places = {recording.ops[i].name: p.on for i, p in recording.last.places.items()}
        assert places == {"sigmoid": "tvm", "sum": "tvm", "nn.relu": "mine"}
        codes = {recording.ops[i].name: r.code for i, r in recording.last.reasons.items()}
        assert codes == {"sigmoid": "not-lowerable", "sum": "no-rule"}


def test_a_pattern_sees_as_much_as_it_matches() -> None:
    """A chain in which matches overlap, one that ends in an element, and one without a bound."""
    add = is_op("add")(wildcard(), wildcard())
    two = is_op("add")(add, wildcard())
    norm = is_tuple_get_item(is_op("nn.batch_norm")(*[wildcard() for _ in range(5)]), 0)
    reach = is_op("nn.relu")(wildcard()) | norm.dominates(is_op("nn.relu")(wildcard()))
    value: Any = x()
    for _ in range(5):
        value = relay.add(value, relay.const(1.0))
    scales = [relay.var(n, shape=(4,)) for n in "abcd"]
    value = relay.nn.batch_norm(value, *scales)[0]
    module = main(relay.nn.relu(value))
    patterns = [("mine.two", two), ("mine.norm", norm), ("mine.relu", reach)]
    for lowerable in (False, True):
        recording = byocviz.record(
            module, Backend("mine", patterns), lowerable=lowerable, prepare=False, progress=False
        )
        names = sorted(p.composite for p in recording.step("composite").places.values())
        assert names == ["", "mine.norm", "mine.relu", *["mine.two"] * 4], lowerable


def test_what_if_asks_too() -> None:
    backend = Backend("mine", [("mine.relu", is_op("nn.relu")(wildcard()))])
    recording = byocviz.record(open_shape(), backend, lowerable=True, progress=False)
    gain = {b.op: b.coverage_ops > b.coverage_ops_now for b in recording.blockers()}
    assert gain == {"sigmoid": False, "sum": False}


def test_the_build_of_it_runs() -> None:
    module = main(relay.nn.relu(conv(relay.round(conv(x())))))
    recording = byocviz.record(module, lowerable=True, prune=False, progress=False)
    build = byocviz.build(recording, isolate=False, cache=False, progress=False)
    assert len(build.engines) == len(recording.last.subgraphs) == 2
