"""`Recording`: asking, and what it says where it has no answer."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given

from byocviz.errors import StepMissing
from byocviz.recording import Blocker, Blockers, Operator, Recording, Step, StepError, Tables
from tests.recording.strategies import built, recordings


def _failed() -> Recording:
    recording = built(30)
    del recording.steps[4:]
    recording.steps.append(
        Step("merge", error=StepError("TVMError", "\x1b[2JVariable gv could not be found\nat ..."))
    )
    return recording


@given(recordings())
def test_every_step_is_found_by_its_name(recording: Recording) -> None:
    assert [recording.step(step.name) for step in recording.steps] == recording.steps
    with pytest.raises(StepMissing) as caught:
        recording.step("no such step")
    for step in recording.steps:
        assert step.name in str(caught.value)


def test_a_step_after_the_failed_one_says_which_failed_and_why() -> None:
    recording = _failed()
    assert recording.step("merge").error is not None
    assert recording.last.name == "annotate"
    with pytest.raises(StepMissing, match="stops at 'merge', which failed: TVMError") as caught:
        recording.step("prune")
    assert "Variable gv" in str(caught.value)
    assert "\x1b" not in str(caught.value)


def test_no_step_at_all() -> None:
    with pytest.raises(StepMissing, match="no step that succeeded"):
        _ = Recording(title="empty").last
    assert Recording().why_apart == []


@given(recordings())
def test_successors_live_and_end(recording: Recording) -> None:
    for key, op in recording.ops.items():
        found = recording.successors_of(key)
        assert len(set(found)) == len(found)
        assert all(not recording.ops[one].fate for one in found)
        if not op.replaced_by:
            assert found == ([] if op.fate else [key])


def test_successors_follow_chains_and_survive_cycles() -> None:
    def op(key: int, *into: int, fate: str = "") -> Operator:
        return Operator(key, "relax.add", replaced_by=list(into), fate=fate)

    ops = [op(0, 1, 2, fate="replaced"), op(1, 3, fate="replaced"), op(2), op(3)]
    ops += [op(4, 5), op(5, 4), op(6, fate="dead")]
    recording = Recording(ops={one.id: one for one in ops})
    assert recording.successors_of(0) == [3, 2]
    assert recording.successors_of(4) == []
    assert recording.successors_of(6) == []
    with pytest.raises(StepMissing, match="No operator 99"):
        recording.successors_of(99)


def test_operators_leaves_out_calls_and_on_wish_what_prepare_made() -> None:
    ops = [
        Operator(2, "relax.add"),
        Operator(0, "relax.clip", created_by="fold"),
        Operator(1, "helper", kind="call"),
    ]
    recording = Recording(ops={one.id: one for one in ops})
    assert [one.id for one in recording.operators()] == [2]
    assert [one.id for one in recording.operators(imported_only=False)] == [0, 2]


def test_blockers_are_worked_out_once_and_travel_with_the_file(tmp_path) -> None:
    from byocviz.recording import load

    recording = built(9)
    path = recording.save(tmp_path / "without")
    with pytest.raises(StepMissing, match=r"before `save\(\)`"):
        load(path).blockers()
    asked = []
    found = [Blocker("relax.reshape", 1, 1, 1, 1.0, 0.9, 1.0, 1.0, 0, 0)]

    def live() -> list[Blocker]:
        asked.append(1)
        return found

    recording._live = live
    assert recording.blockers() == recording.blockers() == found
    assert asked == [1]
    again = load(recording.save(tmp_path / "with"))
    assert again == recording
    assert again.blockers() == found


def test_blockers_print_as_a_table() -> None:
    recording = built(9)
    recording.what_if = [
        Blocker("relax.reshape", 6, 1, 7, 1.0, 0.889, None, 1.0, 4096, 8192),
        Blocker("relax.sort", 1, 0, 7, 0.0, 0.889, 0.0, 1.0, 0, 0, error="TVMError: no"),
    ]
    found = recording.blockers()
    assert isinstance(found, Blockers)
    assert isinstance(found, list)
    assert "a rule for" in str(found)
    assert str(found) in recording.summary()
    assert repr(found) == "<Blockers: 2, first relax.reshape: 7 -> 1 subgraphs>"
    recording.what_if = []
    assert repr(recording.blockers()) == "<Blockers: none>"
    assert "nothing" in str(recording.blockers())


def test_a_failed_recording_has_no_blockers() -> None:
    recording = _failed()

    def live() -> list[Blocker]:
        raise AssertionError("nothing was there to partition")

    recording._live = live
    for what_if in (None, []):
        recording.what_if = what_if
        with pytest.raises(StepMissing, match="stops at 'merge', which failed: TVMError") as caught:
            recording.blockers()
        assert "Variable gv" in str(caught.value)
        assert caught.value.mend
    recording.steps[-1].error = StepError("TVMError", "no", mend="Leave it out.")
    with pytest.raises(StepMissing, match="Leave it out"):
        recording.blockers()


def test_tables_are_at_hand() -> None:
    recording = built(30)
    assert isinstance(recording.tables, Tables)
    assert [row["step"] for row in recording.tables.steps] == [s.name for s in recording.steps]


def test_the_live_hook_is_no_part_of_the_record() -> None:
    one, other = built(9), built(9)
    one._live = list
    assert one == other
    assert other._live is None


@given(recordings())
def test_repr_is_one_short_line(recording: Recording) -> None:
    text = repr(recording)
    assert text.isprintable()
    assert len(text) < 1500
    assert text.startswith("<Recording ")


_WITHOUT_TVM = """
import sys
for name in ("tvm", "onnx", "numpy", "pandas", "torch"):
    sys.modules[name] = None
import byocviz.recording, byocviz.render.text, byocviz.progress
from byocviz.recording import load
recording = load(sys.argv[1])
print(recording.summary(80))
print(recording.compare("annotate", "merge").changed)
"""


def test_a_recording_opens_where_there_is_no_tvm(tmp_path) -> None:
    path = built(60).save(tmp_path / "r")
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_TVM, str(path)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert "partition" in done.stdout
    assert done.stdout.rstrip().endswith("True")
