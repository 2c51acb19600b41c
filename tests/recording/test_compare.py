"""Comparison of steps and of recordings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byocviz.errors import StepMissing
from byocviz.recording import (
    Operator,
    Recording,
    Step,
    StepError,
    compare,
    compare_recordings,
)
from byocviz.recording.compare import recolouring
from tests.recording.strategies import BACKEND, OFF, built, built_step, recordings


def _two(before: dict[int, int], after: dict[int, int]) -> Recording:
    names = ("relax.nn.conv2d", "relax.add", "relax.clip", "relax.reshape")
    ops = {key: Operator(key, names[key % 4]) for key in before.keys() | after.keys()}
    texts: dict[str, str] = {}
    steps = [
        built_step("annotate", ops, before, texts, text="same"),
        built_step("merge", ops, after, texts, text="same"),
    ]
    return Recording(title="two", ops=ops, steps=steps, texts=texts)


def _pairs(recording: Recording) -> list[tuple[Step, Step]]:
    good = [step for step in recording.steps if step.error is None]
    return [(a, b) for a in good for b in good]


@given(recordings())
def test_a_step_does_not_differ_from_itself(recording: Recording) -> None:
    for step in recording.steps:
        if step.error is None:
            found = recording.compare(step.name, step)
            assert not found.changed
            assert found == compare(recording, step, step.name)


@given(recordings())
def test_counts_follow_from_what_was_added_and_gone(recording: Recording) -> None:
    def real(ids: list[int]) -> int:
        return sum(recording.ops[key].kind == "operator" for key in ids)

    for a, b in _pairs(recording):
        found = compare(recording, a, b)
        change = sum(after - before for before, after in found.counts.values())
        assert change == real(found.added) - real(found.gone)
        assert found.total == (a.profile.total, b.profile.total)
        assert found.total[1] - found.total[0] == change
        assert not set(found.added) & set(found.gone)
        assert set(found.recoloured) <= a.places.keys() & b.places.keys()


@given(recordings())
def test_there_and_back(recording: Recording) -> None:
    for a, b in _pairs(recording):
        there, back = compare(recording, a, b), compare(recording, b, a)
        assert (there.added, there.gone) == (back.gone, back.added)
        assert there.changed == back.changed
        assert {key: move.what for key, move in there.moved.items()} == {
            key: move.what for key, move in back.moved.items()
        }
        assert there.counts == {key: pair[::-1] for key, pair in back.counts.items()} or (
            sorted(there.counts) == sorted(back.counts)
        )
        assert there.text_changed == back.text_changed


@given(recordings())
def test_it_prints_as_text_and_is_short_as_repr(recording: Recording) -> None:
    for a, b in _pairs(recording)[:4]:
        for found in (compare(recording, a, b), compare_recordings(recording, a, recording, b)):
            assert len(repr(found)) < 500
            assert repr(found).isprintable()
            assert a.name in str(found).splitlines()[0] or len(recording.title) > 20
            assert "Place(" not in str(found)


@given(st.dictionaries(st.integers(0, 9), st.integers(0, 2), min_size=1))
def test_numbering_subgraphs_anew_moves_nothing(groups: dict[int, int]) -> None:
    used = sorted(set(groups.values()))
    before = {key: used.index(group) for key, group in groups.items()}
    after = {key: len(used) - 1 - group for key, group in before.items()}
    found = _two(before, after).compare("annotate", "merge")
    assert not found.moved
    assert not found.joined
    assert not found.dropped


def test_joining_moves_and_names_the_origins() -> None:
    found = _two({0: 0, 1: 1, 2: OFF, 3: 2}, {0: 0, 1: 0, 2: OFF, 3: OFF}).compare(
        "annotate", "merge"
    )
    assert found.joined == {f"{BACKEND}_0": [f"{BACKEND}_0", f"{BACKEND}_1"]}
    assert found.dropped == [f"{BACKEND}_2"]
    assert {key: move.what for key, move in found.moved.items()} == dict.fromkeys(
        (0, 1, 3), ("subgraph",)
    )
    assert found.recoloured == {3: (BACKEND, "tvm")}
    assert found.subgraphs == (3, 1)
    assert found.changed


def test_where_operators_run_now_is_said_either_way() -> None:
    there = _two({0: OFF, 1: OFF, 2: 0}, {0: 0, 1: 0, 2: OFF})
    found = there.compare("annotate", "merge")
    assert recolouring(found) == [f"2 to {BACKEND}", "1 back to TVM"]
    assert f"2 to {BACKEND}, 1 back to TVM" in str(found)
    assert f"2 to {BACKEND}, 1 back to TVM" in repr(found)
    assert "none to another backend" in str(_two({0: 0}, {1: 0}).compare("annotate", "merge"))


def test_added_and_gone() -> None:
    found = _two({0: OFF, 1: OFF}, {1: OFF, 2: OFF, 6: OFF}).compare("annotate", "merge")
    assert (found.added, found.gone) == ([2, 6], [0])
    assert found.counts == {"relax.clip": (0, 2), "relax.nn.conv2d": (1, 0)}
    assert next(iter(found.counts)) == "relax.clip"
    assert not found.text_changed


def test_a_change_of_text_alone_is_a_change() -> None:
    recording = _two({0: OFF}, {0: OFF})
    recording.texts["other"] = "another attribute"
    recording.steps[1].functions[0].text = "other"
    found = recording.compare("annotate", "merge")
    assert found.text_changed
    assert found.changed


def test_a_failed_step_cannot_be_compared() -> None:
    recording = built(9)
    recording.steps[4] = Step("merge", error=StepError("TVMError", "no", mend="Leave it out."))
    with pytest.raises(StepMissing, match=r"'merge' of 'built' failed.*\n.*Leave it out"):
        recording.compare("annotate", "merge")
    with pytest.raises(StepMissing, match="No step 'x'"):
        recording.compare("annotate", "x")


@given(recordings(), recordings())
def test_two_recordings_by_figures(one: Recording, other: Recording) -> None:
    for a in one.steps:
        for b in other.steps:
            if a.error or b.error:
                continue
            found = compare_recordings(one, a, other, b.name)
            assert found.total == (a.profile.total, b.profile.total)
            assert found.subgraphs == (len(a.subgraphs), len(b.subgraphs))
            for name, (before, after) in found.counts.items():
                assert before == a.profile.ops.get(name, 0)
                assert after == b.profile.ops.get(name, 0)
                assert before != after


def test_rules_that_differ_are_named() -> None:
    one, other = built(9), built(9)
    other.backend.rules[0].enabled = False
    found = compare_recordings(one, "prune", other, "prune")
    assert found.rules_on == (["tensorrt.conv2d"], [])
    assert found.counts == found.reasons == {}
