"""Stops of a talk: whatever they come from, they are bounded, and what is wrong is said by line."""

from __future__ import annotations

import contextlib
import math
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byocviz.errors import MissingPackage, RecordingError
from byocviz.recording import Recording, from_bytes, to_bytes
from byocviz.recording.printable import printable
from byocviz.recording.stops import (
    CARDS,
    LAYOUTS,
    LONGEST_NOTE,
    MOST,
    TABS,
    Stop,
    misfits,
    plain_stop,
    read_stop,
    read_stops,
    stops_of,
    with_stops,
)
from byocviz.recording.talk import LARGEST, load_talk, read_talk
from tests.recording.strategies import HOSTILE, built

SHORT = [text[:200] for text in HOSTILE]
names = st.text(max_size=20) | st.sampled_from(["import", "merge", "main", "fit", *SHORT])
figures = st.floats(allow_nan=True) | st.integers() | st.booleans() | st.none()
anything = st.recursive(
    names | figures | st.binary(max_size=4),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(names, inner, max_size=5),
    max_leaves=12,
)
KEYS = ("step", "note", "title", "select", "function", "zoom", "layout", "tab", "from", "card")
data = anything | st.fixed_dictionaries({}, optional=dict.fromkeys((*KEYS, "seconds"), anything))

sides = st.floats(-1e6, 1e6).map(lambda x: round(x, 2))
sizes = st.floats(0.01, 1e6).map(lambda x: round(x, 2))
stops = st.builds(
    Stop,
    step=names,
    note=st.text(max_size=200),
    title=names,
    op=st.none() | st.integers(0, 2**40),
    function=names,
    zoom=st.none() | st.tuples(sides, sides, sizes, sizes),
    layout=st.sampled_from(["", *LAYOUTS]),
    tab=st.sampled_from(["", *TABS]),
    left=names,
    card=st.sampled_from(["", *CARDS]),
    seconds=st.none() | st.floats(0.1, 3600),
) | st.builds(Stop, step=names, subgraph=st.integers(0, 999), fit=st.just(True))


@pytest.fixture(scope="module")
def recording() -> Recording:
    return built(60)


@given(data)
def test_anything_reads_as_a_stop_within_bounds(given_data: object) -> None:
    stop = read_stop(given_data)
    assert len(stop.note) <= LONGEST_NOTE
    assert stop.layout in ("", *LAYOUTS)
    assert stop.tab in ("", *TABS)
    assert stop.card in ("", *CARDS)
    assert stop.seconds is None or 0.1 <= stop.seconds <= 3600
    assert stop.zoom is None or (all(map(math.isfinite, stop.zoom)) and min(stop.zoom[2:]) > 0)
    assert read_stop(plain_stop(stop)) == msgspec.structs.replace(
        stop, zoom=read_stop(plain_stop(stop)).zoom
    )
    assert (
        read_stops(given_data) == [read_stop(one) for one in given_data]
        if isinstance(given_data, list)
        else read_stops(given_data) == []
    )


@given(stops)
def test_a_stop_survives_as_plain_data(stop: Stop) -> None:
    assert read_stop(plain_stop(stop)) == stop
    assert read_stop(msgspec.json.decode(msgspec.json.encode(plain_stop(stop)))) == stop


@given(st.lists(stops, max_size=4))
def test_stops_go_through_the_file_and_leave_the_recording_alone(talk: list[Stop]) -> None:
    before = built(9)
    before.extra["mine"] = 3
    made = with_stops(before, talk)
    assert isinstance(made, Recording)
    assert before.extra == {"mine": 3}
    assert stops_of(made) == talk
    assert stops_of(from_bytes(to_bytes(made))) == talk
    assert with_stops(made, []).extra == {"mine": 3}


def test_so_many_stops_and_no_more(recording: Recording) -> None:
    many = with_stops(recording, [Stop("merge")] * (MOST + 5))
    assert len(stops_of(many)) == MOST


@given(stops)
def test_what_a_recording_does_not_hold_is_named(stop: Stop) -> None:
    recording = built(9)
    steps = [one.name for one in recording.steps]
    keys = {one.key for one in misfits(recording, stop)}
    assert ("step" in keys) == (stop.step != "" and stop.step not in steps)
    assert ("from" in keys) == (stop.left != "" and stop.left not in steps)
    assert stop.op is None or ("select" in keys) == (stop.op not in recording.ops)
    for one in misfits(recording, stop):
        assert printable(one.text) == one.text
        assert len(one.text) < 600


# -- a file that people write

TALK = """\
seconds: 12
stops:
  - step: import
    note: "a **note**"
    seconds: 3.5
  - step: merg           # line 6
    note: kept
  - step: merge
    select: S1
    function: mian       # line 10
    zoom: fit
    tab: graf            # line 12
  - step: merge
    select: 4
    from: import
    layout: single
    zoom: [1, 2.5, 30, 40]
  - step: merge
    select: nn.conv2
    color: red           # line 20
    card: latency        # line 21
    seconds: soon        # line 22
  - Said without a step
  - step: prune
    select: {subgraph: 0}
"""


def test_a_talk_is_read_and_what_is_unknown_is_named_by_line(recording: Recording) -> None:
    talk = read_talk(TALK.encode(), recording, "/some/where/talk.yaml")
    assert [one.step for one in talk.stops] == [
        *("import", "", "merge", "merge", "merge", "", "prune")
    ]
    first, second, third, fourth, fifth, sixth, last = talk.stops
    assert first == Stop("import", "a **note**", seconds=3.5)
    assert second == Stop("", "kept", seconds=12)
    assert third == Stop("merge", subgraph=0, fit=True, seconds=12)
    assert fourth == Stop(
        *("merge", "", "", 4, None, "", (1, 2.5, 30, 40), False, "single"),
        left="import",
        seconds=12,
    )
    assert fifth == Stop("merge", seconds=12)
    assert sixth == Stop(note="Said without a step", seconds=12)
    assert last == Stop("prune", subgraph=0, seconds=12)
    said = "\n".join(talk.problems)
    for line, words in (
        (6, "no step 'merg'; the nearest is 'merge'"),
        (10, "'mian'; the nearest is 'main'"),
        (12, "no tab 'graf'; the nearest is 'graph'"),
        (19, "'nn.conv2'; the nearest is 'nn.conv2d'"),
        (20, "no key of a stop 'color'"),
        (21, "no results of latency"),
        (22, "seconds is a number"),
    ):
        found = [one for one in talk.problems if f"talk.yaml, line {line}:" in one]
        assert len(found) == 1, (line, said)
        assert words in found[0]
    assert len(talk.problems) == 7
    assert "/some" not in said


def test_operators_go_by_tvms_name_and_by_the_models_own(recording: Recording) -> None:
    step = recording.step("merge")
    for op_id in sorted(step.places)[:20]:
        op = recording.ops[op_id]
        for name in filter(None, (op.name, op.source)):
            talk = read_talk(msgspec.json.encode([{"step": "merge", "select": name}]), recording)
            assert talk.problems == []
            chosen = talk.stops[0].op
            assert chosen is not None
            found = recording.ops[chosen]
            assert name in (found.name, found.name.partition(".")[2], found.source, found.var)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("stops:\n  - step: a\n   note: b\n", "line 3"),
        ("stops: [", "no YAML"),
        ("a: !!python/object/apply:os.system [x", "no YAML"),
        ("\ta: b", "line 1"),
        ("[" * 100_000, "no YAML"),
        ("- " * 2000 + "a", "deeper than"),
        ("a: *nothing", "line 1"),
        ("\x00", "no YAML"),
    ],
)
def test_what_is_no_yaml_is_said_with_its_line(recording: Recording, text: str, word: str) -> None:
    with pytest.raises(RecordingError, match="no YAML") as error:
        read_talk(text.encode(), recording, "talk.yaml")
    assert word in str(error.value)
    assert len(str(error.value)) < 1000


@pytest.mark.parametrize(
    "text",
    [
        "", "# only a comment", "3", "text", "{}", "a: b", "stops:", "stops: 3", "stops: {a: b}",
        "- - a\n- {}\n- 3\n- null\n- [1, [2]]\n- ? [a]\n  : b",
        "stops: !!python/object/apply:os.system [touch hurt]",
        "- step: !!python/name:os.system ''",
        "- note: !!binary aGVsbG8=",
        "- &a {step: merge, note: x}\n- *a\n- {<<: *a}",
        "- {step: merge, step: import}",
        "- {step: [merge], zoom: big, select: [1], seconds: -3}",
        "- {zoom: [1, 2, .inf, 4]}\n- {zoom: [a, b, c, d]}\n- {zoom: [1, 2, 3, -4]}",
        "- {select: 99999999999999999999999999}\n- {select: {op: a}}\n- {select: S0}",
    ],
)  # fmt: skip
def test_odd_yaml_is_named_and_never_run(
    recording: Recording, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    talk = read_talk(text.encode(), recording, "talk.yaml")
    assert all(isinstance(one, Stop) for one in talk.stops)
    assert all(one.isprintable() and len(one) < 600 for one in talk.problems)
    assert talk.problems or "*a" in text or "binary" in text or "name:" in text or "apply" in text
    assert list(tmp_path.iterdir()) == []


def test_references_do_not_multiply(recording: Recording) -> None:
    lines = ["- &a0 {note: x}"]
    lines += [f"- &a{i + 1} [{', '.join([f'*a{i}'] * 10)}]" for i in range(9)]
    talk = read_talk("\n".join(lines).encode(), recording)
    assert len(talk.stops) == 10


@given(st.text(max_size=300) | st.sampled_from(HOSTILE))
def test_any_text_is_read_or_refused(text: str) -> None:
    recording = built(9)
    with contextlib.suppress(RecordingError):
        talk = read_talk(text.encode("utf-8", "surrogatepass"), recording, "talk.yaml")
        assert all(one.isprintable() for one in talk.problems)


def test_files_that_cannot_be_read(
    recording: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "talk.yaml"
    with pytest.raises(RecordingError, match="no such file"):
        load_talk(path, recording)
    with pytest.raises(RecordingError, match="cannot be read"):
        load_talk(tmp_path, recording)
    path.write_bytes(b"#" * (LARGEST + 1))
    with pytest.raises(RecordingError, match="larger than"):
        load_talk(path, recording)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(RecordingError, match="no YAML"):
        load_talk(path, recording)
    path.write_bytes(b"\xef\xbb\xbfstops:\r\n- step: merge\r\n")
    assert [one.step for one in load_talk(path, recording).stops] == ["merge"]
    path.write_text("- note: " + "x" * (LONGEST_NOTE + 1))
    talk = load_talk(path, recording)
    assert len(talk.stops[0].note) == LONGEST_NOTE
    assert "20,001 characters" in talk.problems[0]
    monkeypatch.setitem(__import__("sys").modules, "yaml", None)
    with pytest.raises(MissingPackage, match=r"\[replay\]"):
        load_talk(path, recording)
