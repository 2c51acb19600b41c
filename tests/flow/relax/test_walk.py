"""The properties of a recording, over the corpus."""

from __future__ import annotations

import pytest

import byocviz
from tests.corpus import CASES
from tests.corpus.case import Case

from . import properties

TOLERANCE = {"half_precision": 2e-2}
"""Absolute; 1e-4 where not named. Prepare folds in float32 and may round otherwise."""


def record(case: Case, **how: object) -> byocviz.Recording:
    return byocviz.record(
        case.build(),
        case.backend,
        entry=case.entry,
        progress=False,
        **how,  # type: ignore[arg-type]
    )


ways = pytest.mark.parametrize("prepare", [False, True], ids=["raw", "prepared"])


@ways
@pytest.mark.parametrize("case", CASES, ids=str)
def test_properties(case: Case, prepare: bool) -> None:
    params = case.params() if case.params and prepare else None
    recording = record(case, params=params, prepare=prepare)
    assert recording.failed is None, recording.failed
    properties.check_all(recording)
    for step in recording.steps:
        for rewrite in step.rewrites:
            assert not [cause for cause in rewrite.left if cause.startswith("failed")]
    again = byocviz.recording.from_bytes(byocviz.recording.to_bytes(recording))
    assert again == recording


# An odd number, so that of both ways some are run.
@pytest.mark.thinned(3)
@ways
@pytest.mark.parametrize("case", CASES, ids=str)
def test_no_step_changes_a_result(case: Case, prepare: bool) -> None:
    params = case.params() if case.params and prepare else None
    recording = record(case, params=params, prepare=prepare, verify=True)
    for step in recording.steps:
        assert not step.verify_error, (step.name, step.verify_error)
        assert step.max_difference is not None
        assert step.max_difference <= TOLERANCE.get(case.name, 1e-4), step.name
    again = byocviz.recording.from_bytes(byocviz.recording.to_bytes(recording))
    assert again == recording


# What nobody calls is partitioned too unless the prepare step removed it: it is left out here.
COUNTED = [c for c in CASES if c.subgraphs is not None and "dead" not in c.tags]


@pytest.mark.parametrize("case", COUNTED, ids=str)
def test_subgraphs_found_by_reasoning(case: Case) -> None:
    recording = record(case, prepare=False, prune=False)
    assert recording.last.profile.subgraphs == case.subgraphs


CALLS = [c for c in CASES if not c.name.startswith("random") and c.params is None]


@pytest.mark.parametrize("case", CALLS[::2], ids=str)
def test_the_calls_run_when_pasted(case: Case) -> None:
    if case.entry != "main":
        pytest.skip("the calls of the prepare step name their entry; see test_record")
    properties.check_calls(record(case))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_all_pruned_is_as_before(case: Case) -> None:
    """With every subgraph given back, who feeds whom is as in the prepared module."""
    recording = record(case, prune=byocviz.PrunePolicy(min_ops=10**9))
    assert recording.failed is None
    last = recording.last
    assert not [s for s in last.subgraphs if s.backend == case.backend]
    assert last.profile.ops == recording.step("partition").profile.ops
    if any(f.kind == "composite" for f in recording.step("prepare").functions):
        return  # a composite function that was given comes out of its subgraph as one of its own
    lost = {i for i, o in recording.ops.items() if o.fate_by in ("composite", "merge")}
    wanted = properties.connections(recording.step("prepare"))
    assert properties.connections(last) == {
        pair: n for pair, n in wanted.items() if not lost.intersection(pair)
    }
