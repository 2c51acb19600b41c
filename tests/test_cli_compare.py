"""``byocviz compare`` on two saved recordings."""

from __future__ import annotations

import json

import pytest

from byocviz.cli import main
from byocviz.recording import Recording
from byocviz.recording.schema import FunctionView, Graph, Node, Operator, Place, Step


@pytest.fixture
def files(tmp_path):
    found = []
    for ir, names in (
        ("relay", ["nn.conv2d", "nn.relu"]),
        ("relax", ["relax.nn.conv2d", "relax.nn.gelu", "relax.add"]),
    ):
        ops = {i: Operator(i, name) for i, name in enumerate(names)}
        step = Step("import")
        nodes = [Node("op", "", [i]) for i in ops]
        step.functions = [FunctionView("main", "entry", graph=Graph(nodes))]
        step.places = {i: Place("main", "main", i) for i in ops}
        step.profile.total = len(ops)
        recording = Recording(title=f"by {ir}", ir=ir, ops=ops, steps=[step])
        found.append(str(recording.save(tmp_path / ir)))
    return found


def test_side_by_side(files, capsys):
    assert main(["compare", *files]) == 0
    shown = capsys.readouterr().out
    assert "by relay" in shown
    assert "by relax" in shown
    assert "nn.gelu" in shown
    assert "relax.nn.conv2d" not in shown


def test_as_json(files, capsys):
    assert main(["compare", *files, "--step", "import", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["total"] == [2, 3]
    assert set(found["counts"]) == {"nn.relu", "nn.gelu", "add"}


def test_a_step_that_is_not_there(files, capsys):
    assert main(["compare", *files, "--step", "merge"]) == 1
    assert "import" in capsys.readouterr().err
