"""Properties of recordings, over the corpus of Relay modules."""

from __future__ import annotations

from tests.relay import needs_relay

needs_relay()

import re  # noqa: E402

import pytest  # noqa: E402
import tvm  # noqa: E402

import byocviz  # noqa: E402
from byocviz.recording import from_bytes, to_bytes  # noqa: E402
from tests.corpus_relay import CASES, Case  # noqa: E402
from tests.corpus_relay.oracle import external, operators, partitioned  # noqa: E402

from .properties import check_all, check_calls  # noqa: E402


def record(case: Case, **options):
    params = case.params() if case.params and options.get("prepare", True) else None
    return byocviz.record(
        case.build(),
        case.backend,
        entry=case.entry,
        params=params,
        title=case.name,
        progress=False,
        **options,
    )


def check_failed(case: Case, recording) -> None:
    """A step fails just where TVM's own pass does, and says what to do."""
    failed = recording.failed
    assert (failed.name if failed else "") == case.fails, failed and failed.error
    if failed:
        assert failed.error.mend
        assert recording.steps[-1] is failed


@pytest.mark.thinned(5)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_properties_hold(case):
    recording = record(case)
    check_failed(case, recording)
    check_all(recording)
    check_calls(recording, case.params() if case.params else None)
    assert from_bytes(to_bytes(recording)) == recording


@pytest.mark.thinned(5)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_unprepared_it_is_what_tvm_makes(case):
    recording = record(case, prepare=False, prune=False)
    check_failed(case, recording)
    check_all(recording)
    if case.fails:
        with pytest.raises((tvm.TVMError, ValueError)):
            partitioned(case.build(), case.backend)  # without byocviz as well
        return
    if case.entry == "main":
        # byocviz's own names are those of TVM's passes, function by function.
        wanted = external(partitioned(case.build(), case.backend), case.backend)
        ours = external(recording.module("partition"), case.backend)
        assert ours == wanted
        drawn = {s.function for s in recording.step("partition").subgraphs}
        assert {s for s in drawn if s in wanted} == set(wanted)
    own = [s for s in recording.last.subgraphs if s.backend == case.backend]
    if case.subgraphs is not None:
        assert len(own) == case.subgraphs
    if case.operators is not None:
        assert recording.step("import").profile.total == case.operators


@pytest.mark.thinned(5)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_no_step_changes_a_result(case):
    recording = record(case, verify=True)
    if "no-vm" in case.tags:  # TVM's virtual machine does not have it, and that is said
        assert recording.steps[0].verify_error
        return
    for step in recording.steps:
        if step.error is not None:
            continue
        assert step.verify_error == "", (step.name, step.verify_error)
        assert step.max_difference is not None
        assert step.max_difference <= (1e-5 if step.name != "import" else 0.0), step.name


@pytest.mark.thinned(5)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_module_is_left_as_it_was(case):
    """But for the types, which TVM's InferType writes into the very module that it is given."""
    module = case.build()

    def text() -> str:
        return re.sub(r" /\*.*?\*/", "", module.astext(show_meta_data=False))

    before = text()
    byocviz.record(module, case.backend, entry=case.entry, progress=False)
    assert text() == before
    assert "span=byocviz" not in module.astext(show_meta_data=False)


@pytest.mark.parametrize(
    "case", [c for c in CASES if c.tags & {"random", "if", "loop"} and not c.fails], ids=str
)
def test_everything_pruned_is_as_before(case):
    recording = record(case, prune=byocviz.PrunePolicy(min_ops=10**6))
    assert not [s for s in recording.last.subgraphs if s.backend == case.backend]
    check_all(recording)
    prepared, last = recording.module("prepare"), recording.module("prune")
    assert operators(prepared["main"]) == operators(last["main"])


def test_there_are_enough_cases():
    assert len(CASES) >= 40
    assert len({case.name for case in CASES}) == len(CASES)
