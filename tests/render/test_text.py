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

from byocviz.recording import (
    Blocker,
    Operator,
    Recording,
    Rewrite,
    Step,
    StepError,
    Subgraph,
    Tensor,
    compare_recordings,
)
from byocviz.render import text
from byocviz.render.prose import whole_code
from byocviz.render.unknown import unknown
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
        assert cell_len(line) <= width or whole_code(line) != line
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
    out = io.StringIO()
    console = Console(file=out, width=100, force_terminal=True, color_system="truecolor")
    console.print(recording)
    console.print(recording.compare("merge", "prune"))
    console.print(compare_recordings(recording, "merge", recording, "prune"))
    recording.steps.append(Step("again", error=StepError(name, name, name)))
    console.print(recording)
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


def test_a_failed_recording_does_not_say_what_a_rule_would_change() -> None:
    recording = built(30)
    recording.what_if = []
    assert "nothing: no operator is left on TVM" in recording.summary(100)
    recording.steps[4:] = [Step("merge", error=StepError("TVMError", "no"))]
    said = recording.summary(100)
    assert "What one more rule would change" not in said
    assert "no operator is left" not in said


def test_unknown_figures_are_question_marks() -> None:
    recording = built(30)
    step = recording.steps[-1]
    step.profile.macs = step.profile.bytes_in = None
    step.subgraphs = [Subgraph("t_0", "t", "t_0", macs=None, bytes_in=None, bytes_out=None)]
    step.separations = []
    row = next(line for line in recording.summary(120).splitlines() if line.startswith("prune"))
    assert row.split()[5:7] == ["?", "?"]
    row = next(line for line in recording.summary(120).splitlines() if " t_0 " in line)
    assert row.split() == ["S1", "t_0", "0", "?", "0", "B", "?", "?"]


def _unknown(*ops: Operator, tensor: str = "") -> str:
    """The note below a recording in which these operators cannot be counted."""
    recording = built(30)
    for step in recording.steps:
        step.profile.macs = None if ops else step.profile.macs
    recording.ops |= {op.id: op for op in ops}
    if tensor:
        last = recording.steps[-1]
        last.profile.bytes_in = last.subgraphs[0].bytes_in = None
        last.subgraphs[0].inputs = [Tensor("x", tensor, None)]
    assert (unknown(recording) is None) == ("?:" not in recording.summary(200))
    note = unknown(recording)
    return "" if note is None else text.to_text(note, 200)


def _op(name: str, *types: str, kind: str = "operator", callee: str = "") -> Operator:
    return Operator(3, name, macs=None, arg_types=list(types), kind=kind, callee=callee)


def test_why_figures_are_unknown_is_said_once_and_to_the_cause() -> None:
    symbolic = (
        "?: not known, the shapes are symbolic; fix them (models.load(..., shapes={...}), "
        "on the command line --shape NAME=...)\n"
    )
    assert _unknown() == ""
    assert (
        _unknown(_op("relax.nn.conv2d", "float32[n, 3, 8, 8]", "float32[4, 3, 1, 1]")) == symbolic
    )
    assert _unknown(_op("relax.matmul", "float32[4, n * 2]"), tensor="float32[n, 4]") == symbolic
    assert _unknown(tensor="(float32[3], shape[1, m])") == symbolic
    for static in ("float32[]", "float32[1, 3]", "shape[2, 4]", "int32", "(float32[2], int64[])"):
        said = _unknown(_op("relax.call_tir", static, callee="fused_7"))
        assert said == "?: not known, the work of 1 call cannot be counted: call_tir fused\n"
    # Opaque code stays opaque, whatever the shapes.
    for op in (
        _op("relax.call_dps_packed", "float32[n]", callee="f"),
        _op("vm.builtin.copy", "float32[n]", kind="call"),
    ):
        assert "symbolic" not in _unknown(op)
        assert "cannot be counted" in _unknown(op)
    for type_ in ("float32[?, 4]", "float32[*]", "object"):
        assert _unknown(tensor=type_) == (
            "?: not known, a shape depends on values that only a run gives\n"
        )
    both = _unknown(_op("relax.call_dps_packed", "float32[1]"), tensor="float32[n]")
    assert both.startswith(symbolic)
    assert both.endswith("the work of 1 call cannot be counted: call_dps_packed\n")


def _rows(recording: Recording, width: int) -> list[str]:
    part = text.subgraphs(recording)
    assert part is not None
    said = text.to_text(part, width).splitlines()
    return [line for line in said if line.startswith("S")]


def test_subgraphs_are_told_by_number_and_by_what_they_hold() -> None:
    recording = built(60)
    last = recording.steps[-1]
    name = "fused_relax_nn_conv2d_relax_add_relax_clip_relax_nn_conv2d1_relax_add1_tensorrt"
    for number, sub in enumerate(last.subgraphs):
        sub.name = f"{name}#{number}"
    for width in (80, 120):
        rows = _rows(recording, width)
        assert [row.split()[0] for row in rows] == [
            f"S{last.subgraphs.index(sub) + 1}"
            for sub in sorted(last.subgraphs, key=lambda sub: -(sub.macs or 0))
        ]
        # What computes stands first, whatever is more frequent.
        assert all("nn.conv2d 3, add 3" in row for row in rows[:-1])
        assert all(("fused" in row) == (width == 120) for row in rows)
    assert all(name in row for row in _rows(recording, 200))


@pytest.mark.parametrize("width", [60, 70, 80, 100, 120])
def test_names_go_before_what_a_subgraph_mostly_holds(width: int) -> None:
    for row in _rows(built(9), width):
        assert ("tensorrt_0" not in row) or ("nn.conv2d" in row)
    assert any("nn.conv2d" in row for row in _rows(built(9), 80))


def test_what_keeps_subgraphs_apart_names_them_by_number() -> None:
    recording = built(30)
    last = recording.steps[-1]
    last.separations[0].text = "Between tensorrt_0 and tensorrt_1 lies my_tensorrt_0."
    last.separations[0].path = [0]
    del last.separations[1:]
    said = recording.summary(120)
    assert "Between S1 and S2 lies my_tensorrt_0." in said
    assert "S1 | S2: nn.conv2d (lv0)" in said
    assert "#" not in said


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


def test_two_recordings_print_side_by_side() -> None:
    one, other = built(30), built(60)
    other.backend.rules[0].enabled = False
    said = str(compare_recordings(one, "prune", other, "prune"))
    assert said == text.to_text(
        text.recording_comparison(compare_recordings(one, "prune", other, "prune"))
    ).rstrip("\n")
    for part in ("built: prune | built: prune", "operators 30 | 60", "subgraphs 4 | 7"):
        assert part in said
    assert "rules that only built: prune had on: tensorrt.conv2d" in said


def test_what_is_piped_has_no_trailing_blanks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    recording = _whole()
    out = io.StringIO()
    text.print_to(recording, out)
    assert out.getvalue() == recording.summary(100)
    assert not any(line != line.rstrip() for line in out.getvalue().splitlines())
    narrow = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    text.print_to(recording, narrow)
    assert narrow.buffer.getvalue().isascii()


def test_a_terminal_keeps_its_styles(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for name in ("NO_COLOR", "TTY_COMPATIBLE", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    out = Terminal()
    text.print_to(_whole(), out)
    assert "\x1b[1m" in out.getvalue()


def test_a_narrow_encoding_gets_its_own_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr("sys.stdout", out)
    said = built(30).summary(80)
    assert said.isascii()
    out.write(said)
    out.flush()


def test_an_empty_recording() -> None:
    assert "untitled" in Recording().summary(80)
