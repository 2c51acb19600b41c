"""Recordings as text: complete, safe and within the width."""

from __future__ import annotations

import io
import itertools
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from byocviz.recording import Blocker, Recording, Rewrite, Step, StepError, Subgraph
from byocviz.render import text
from tests.recording.strategies import HOSTILE, built, recordings


def _whole() -> Recording:
    recording = built(60)
    recording.steps[1].rewrites = [
        Rewrite("clip", "NaN guards back to clip", 35, 790, 705, assumes="no NaN reaches it"),
        Rewrite("batch-norm", "folded", 0, 705, 705),
        Rewrite("sum", "sums", 0, 705, 705, enabled=False),
    ]
    recording.what_if = [
        Blocker("relax.reshape", 6, 1, 7, 1.0, 0.889, None, 1.0, 4096, 8192),
        Blocker("relax.sort", 1, 0, 7, 0.0, 0.889, 0.0, 1.0, 0, 0, error="TVMError: no"),
    ]
    return recording


def test_the_summary_tells_all_of_it() -> None:
    said = _whole().summary(120)
    for part in (
        "built", "tensorrt", "import", "prune", "90.0%", "Subgraphs", "tensorrt_0",
        "35", "790 -> 705", "Assumes: no NaN reaches it", "found nothing: batch-norm",
        "switched off: sum", "[no-rule]", "-> Add a rule for it", "[path]",
        "reshape (lv8)", "now: 7 subgraphs, 88.9% of operators and 100% of MACs", "4.00 KiB",
        "sort: partitioning failed: TVMError: no", "250 ms", "50 ms",
    ):  # fmt: skip
        assert part in said, part


@given(recordings(), st.sampled_from([20, 40, 80, 120, 200]))
def test_any_recording_prints_within_any_width(recording: Recording, width: int) -> None:
    said = recording.summary(width)
    for line in said.splitlines():
        assert cell_len(line) <= width
        assert line == line.rstrip()
        assert all(unicodedata.category(char)[0] != "C" for char in line)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_text(name: str) -> None:
    recording = _whole()
    recording.title = recording.entry = recording.backend.name = name
    recording.ops[8].name = recording.ops[8].var = name
    last = recording.steps[-1]
    last.subgraphs[0].name = name
    last.reasons[8].text = last.reasons[8].mend = last.reasons[8].code = name
    last.separations[0].text = name
    recording.steps[1].rewrites[0].name = name
    recording.steps[1].rewrites[0].left = {name: 3}
    recording.what_if = [Blocker(name, 1, 0, 0, 0, 0, 0, 0, 0, 0, error=name)]
    recording.steps.append(Step("again", error=StepError(name, name, name)))
    out = io.StringIO()
    Console(file=out, width=100, force_terminal=True, color_system="truecolor").print(recording)
    escapes = {piece.split("m")[0] for piece in out.getvalue().split("\x1b")[1:]}
    # Only what rich itself writes for bold and dim.
    assert escapes <= {"[1", "[2", "[0"}
    plain = recording.summary(100)
    for char in "\x1b\x07\x9b\u202e\u200b\ufeff\r\x7f\x00":
        assert char not in plain
    if name.startswith("["):
        assert name.split("]")[0] in plain


def test_eighty_columns_show_every_figure_of_a_verified_recording() -> None:
    recording = built(705)
    for step in recording.steps:
        step.max_difference = 1.2e-6
    recording.steps[-1].verify_error = "did not compile"
    said = recording.summary(80)
    assert "annotate" in said
    assert "max difference" in said
    assert "1.2e-06" in said
    assert "prune could not be verified: did not compile" in said
    for name in ("partition", "composite"):
        assert sum(line.startswith(name) for line in said.splitlines()) == 2
    assert sum(line.startswith("partition") for line in recording.summary(120).splitlines()) == 1


def test_a_failed_step_shows_its_error_and_mend() -> None:
    recording = built(30)
    recording.steps[4:] = [
        Step("merge", error=StepError("TVMError", "Variable gv\ntrace", "Partition each branch."))
    ]
    said = recording.summary(100)
    assert "merge failed: TVMError: Variable gv" in said
    assert "Partition each branch." in said
    assert "trace" not in said


def test_unknown_figures_are_question_marks() -> None:
    recording = built(30)
    step = recording.steps[-1]
    step.profile.macs = step.profile.bytes_in = None
    step.subgraphs = [Subgraph("t_0", "t", "t_0", macs=None, bytes_in=None, bytes_out=None)]
    step.separations = []
    row = next(line for line in recording.summary(120).splitlines() if line.startswith("prune"))
    assert row.split()[5:7] == ["?", "?"]
    row = next(line for line in recording.summary(120).splitlines() if " t_0 " in line)
    assert row.split() == ["#0", "t_0", "0", "?", "0", "B", "?", "?"]


def test_composites_count_once_wherever_they_are_drawn() -> None:
    recording = built(33)
    counts = [text.composites(step) for step in recording.steps]
    assert counts == [0, 0, 0, 30, 30, 30, 30]


@given(recordings())
def test_a_comparison_prints(recording: Recording) -> None:
    good = [step for step in recording.steps if step.error is None]
    for a, b in itertools.pairwise(good):
        found = recording.compare(a, b)
        said = text.to_text(text.comparison(found), width=80)
        assert ("nothing changed" in said) == (not found.changed)


def test_a_narrow_encoding_gets_its_own_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr("sys.stdout", out)
    said = built(30).summary(80)
    assert said.isascii()
    out.write(said)
    out.flush()


def test_an_empty_recording() -> None:
    assert "untitled" in Recording().summary(80)
