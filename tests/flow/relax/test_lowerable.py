"""Recording what can be lowered: every subgraph lowers, and nothing that would is left."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("tvm")

from tvm import relax

import byocviz
from byocviz.building.lower import LoweringError, check, lower
from byocviz.flow.relax.compat import attribute
from byocviz.recording import Recording
from tests.corpus import CASES, Case
from tests.flow.relax.properties import check_all, check_calls


def parts(recording: Recording, step: str) -> list[tuple[str, Any]]:
    """The external functions of a step that are the backend's, by name."""
    module = recording.__dict__["modules"][step]
    return [
        (var.name_hint, function)
        for var, function in module.functions_items()
        if attribute(function, "Codegen") == recording.backend.name
    ]


def walks(case: Case) -> tuple[Recording, Recording]:
    how: dict[str, Any] = {"entry": case.entry, "prune": False, "progress": False}
    return (
        byocviz.record(case.build(), case.backend, **how),
        byocviz.record(case.build(), case.backend, lowerable=True, **how),
    )


@pytest.mark.thinned(3)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_each_subgraph_lowers_and_what_is_refused_does_not(case: Case) -> None:
    plain, asked = walks(case)
    check_all(asked)
    check_calls(asked)
    assert (asked.failed is None) == (plain.failed is None)
    if asked.failed is not None:
        return
    for step in ("annotate", "partition"):
        for name, function in parts(asked, step):
            assert check(function) == [], name
    # What the table takes by itself, one match a function, is what was taken and what was not.
    sites = {i: s for s in plain.step("annotate").subgraphs for i in s.op_ids}
    functions = dict(parts(plain, "annotate"))
    places = asked.step("composite").places
    for identity, subgraph in sites.items():
        reason = asked.step("composite").reasons.get(identity)
        if subgraph.function not in functions:
            continue  # another backend's, in the module from the start
        function = functions[subgraph.function]
        refused = check(function)
        assert bool(refused) == (not places[identity].composite)
        if refused:
            assert reason is not None
            assert reason.code == "not-lowerable"
            assert refused[0].why in reason.text
            with pytest.raises(LoweringError):
                lower(function)


def test_the_ssd_lowers_whole() -> None:
    model = byocviz.models.ssd.load()
    asked = byocviz.record(model, lowerable=True, progress=False)
    plain = byocviz.record(model, progress=False)
    assert all(check(f) == [] for _, f in parts(asked, "prune"))
    assert asked.last.profile == plain.last.profile
    assert not [r for r in asked.last.reasons.values() if r.code == "not-lowerable"]


def test_fixing_the_shapes_as_it_says_mends_it() -> None:
    case = next(c for c in CASES if c.name == "dynamic_batch")
    _, asked = walks(case)
    (reason, *_) = [r for r in asked.last.reasons.values() if r.code == "not-lowerable"]
    assert "BindSymbolicVars" in reason.mend
    fixed = relax.transform.BindSymbolicVars({"n": 2})(case.build())
    again = byocviz.record(fixed, case.backend, lowerable=True, prune=False, progress=False)
    assert not [r for r in again.last.reasons.values() if r.code == "not-lowerable"]
    assert again.last.profile.offloaded_ops > asked.last.profile.offloaded_ops
