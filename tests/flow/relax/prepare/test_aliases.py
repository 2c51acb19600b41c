"""Tuples that are made to be taken apart keep no subgraphs apart."""

from __future__ import annotations

import pytest

import byocviz
from byocviz.flow.relax.prepare import apply
from tests.corpus import by_name

CASES = ("tuple_made_and_taken_apart", "batch_norm_of_parameters", "variables_bound_to_variables")


@pytest.mark.parametrize("name", CASES)
def test_it_repeats_without_change(name: str) -> None:
    module, first = apply(by_name(name).build(), "decompose-batch-norm")
    module, first = apply(module, "aliases")
    assert first.count
    again, second = apply(module, "aliases")
    assert again is module
    assert not second.count


@pytest.mark.parametrize("name", CASES[:2])
def test_subgraphs_are_joined_through_the_tuple(name: str) -> None:
    case = by_name(name)
    apart = byocviz.record(case.build(), prepare={"aliases": False}, prune=False, progress=False)
    joined = byocviz.record(case.build(), prune=False, progress=False)
    assert joined.last.profile.subgraphs < apart.last.profile.subgraphs
    assert any("a tuple" in s.text for s in apart.last.separations)
    assert not any("a tuple" in s.text for s in joined.last.separations)
