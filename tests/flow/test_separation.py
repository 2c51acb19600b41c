"""Each cause that keeps two subgraphs apart, on modules that show it alone."""

from __future__ import annotations

import pytest

import byocviz
from byocviz.recording.schema import Separation
from tests.corpus import by_name


def apart(name: str, **how: object) -> tuple[byocviz.Recording, list[Separation]]:
    case = by_name(name)
    recording = byocviz.record(
        case.build(),
        case.backend,
        entry=case.entry,
        prune=False,
        progress=False,
        **how,  # type: ignore[arg-type]
    )
    return recording, recording.step("merge").separations


def test_operators_on_tvm_lie_between() -> None:
    recording, (found,) = apart("chain_cut_once")
    assert found.code == "path"
    names = [recording.ops[i].name.removeprefix("relax.") for i in found.path]
    assert names
    assert " -> ".join(names) in found.text


def test_joined_they_would_close_a_loop() -> None:
    recording, found = apart("diamond_that_would_be_a_cycle")
    (cycle,) = [s for s in found if s.code == "cycle"]
    assert cycle.path
    assert all(recording.step("merge").places[i].subgraph < 0 for i in cycle.path)


def test_two_levels_close_a_loop_through_a_third() -> None:
    _, found = apart("diamond_two_levels")
    assert any(s.code == "cycle" and "through" in s.text for s in found)
    assert not any("with nothing between" in s.text for s in found)


def test_blocks_and_branches() -> None:
    _, found = apart("if_between_blocks_with_a_computed_condition")
    assert {s.code for s in found} >= {"block"}


@pytest.mark.parametrize(
    ("name", "word"),
    [("match_cast_in_the_block", "match_cast"), ("tuple_made_and_taken_apart", "a tuple")],
)
def test_what_the_pass_does_not_see_through(name: str, word: str) -> None:
    _, found = apart(name, prepare={"aliases": False})
    assert any(s.code == "unjoined" and word in s.text for s in found)


def test_no_tensor_flows_between() -> None:
    _, (found,) = apart("two_chains_apart")
    assert found.code == "unjoined"
    assert "No tensor flows" in found.text


def test_every_pair_that_is_named_is_really_apart_and_has_a_cause() -> None:
    for name in ("walkthrough", "random_06", "random_12", "chain_of_200_cut_often"):
        recording, found = apart(name)
        step = recording.step("merge")
        pairs = [(s.a, s.b) for s in found]
        assert len(pairs) == len(set(pairs))
        for separation in found:
            assert step.subgraphs[separation.a].name in separation.text
            assert step.subgraphs[separation.b].name in separation.text
