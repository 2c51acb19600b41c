"""A recording as rows."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given

from byocviz.errors import MissingPackage, StepMissing
from byocviz.recording import Recording, Tables, tables
from byocviz.recording.tables import reason_groups
from tests.recording.strategies import built, recordings


@given(recordings())
def test_rows_are_flat_and_alike(recording: Recording) -> None:
    every = tables(recording)
    for name in Tables.names:
        rows = every.rows(name)
        assert all(list(row) == list(rows[0]) for row in rows)
        for row in rows:
            assert all(isinstance(cell, (str, int, float, type(None))) for cell in row.values())
    assert [row["step"] for row in every.steps] == [step.name for step in recording.steps]
    assert len(every.operators) == len(recording.ops)
    assert len(every.subgraphs) == sum(len(step.subgraphs) for step in recording.steps)


@given(recordings())
def test_groups_of_reasons_hold_each_operator_once(recording: Recording) -> None:
    for step in recording.steps:
        groups = reason_groups(recording, step)
        ids = [key for group in groups for key in group.op_ids]
        assert sorted(ids) == sorted(step.reasons)
        for group in groups:
            assert sum(group.texts.values()) == len(group.op_ids) == sum(group.mends.values())
        sizes = [len(group.op_ids) for group in groups]
        assert sizes == sorted(sizes, reverse=True)


@given(recordings())
def test_subgraphs_have_the_same_number_in_every_table(recording: Recording) -> None:
    every = recording.tables
    numbers = {(row["step"], row["subgraph"]): row["name"] for row in every.subgraphs}
    for step in recording.steps:
        for index, sub in enumerate(step.subgraphs):
            assert numbers[step.name, f"S{index + 1}"] == sub.name
    for row in every.separations:
        assert (row["step"], row["a"]) in numbers
        assert (row["step"], row["b"]) in numbers
    good = [step for step in recording.steps if step.error is None]
    for row in every.operators:
        if row["subgraph"]:
            sub = good[-1].subgraphs[int(row["subgraph"][1:]) - 1]
            assert row["id"] in sub.op_ids


def test_frames() -> None:
    pandas = pytest.importorskip("pandas")
    every = tables(built(30))
    for name in Tables.names:
        frame = every.frame(name)
        assert isinstance(frame, pandas.DataFrame)
        assert len(frame) == len(every.rows(name))
    assert every.frame("operators").groupby("on")["macs"].sum()["tensorrt"] > 0


def test_without_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingPackage, match="pandas is not installed"):
        tables(built(9)).frame("steps")


def test_an_unknown_table() -> None:
    with pytest.raises(StepMissing, match=r"No table 'x'(.|\n)*blockers"):
        tables(built(9)).rows("x")
