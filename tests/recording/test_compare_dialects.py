"""The same model through Relay and through Relax, side by side."""

from __future__ import annotations

import pytest

from byocviz.recording import Recording
from byocviz.recording.compare import RELAX_NAMES, compare_recordings
from byocviz.recording.schema import Operator, Place, Step


def recording(ir: str, *names: str) -> Recording:
    ops = {i: Operator(i, name) for i, name in enumerate(names)}
    places = {i: Place("main", "main", i) for i in ops}
    return Recording(title=ir, ir=ir, ops=ops, steps=[Step("import", places=places)])


def test_operators_are_the_same_by_either_name():
    relay = recording("relay", "nn.conv2d", "nn.relu", "nn.batch_flatten")
    relax = recording("relax", "relax.nn.conv2d", "relax.nn.relu", "relax.flatten")
    found = compare_recordings(relay, "import", relax, "import")
    assert found.counts == {"flatten": (0, 1), "nn.batch_flatten": (1, 0)}
    assert found.total == (3, 3)


@pytest.mark.parametrize(("relay_name", "relax_name"), RELAX_NAMES.items())
def test_one_operator_of_two_names_counts_as_one(relay_name: str, relax_name: str):
    relay, relax = recording("relay", relay_name), recording("relax", f"relax.{relax_name}")
    for pair in ((relay, relax), (relax, relay)):
        assert compare_recordings(pair[0], "import", pair[1], "import").counts == {}
    # Within Relay it keeps its own name.
    none = recording("relay")
    assert set(compare_recordings(relay, "import", none, "import").counts) == {relay_name}


def test_what_is_left_out_is_to_be_had():
    relay, relax = recording("relay", *map(str, range(30))), recording("relax")
    said = str(compare_recordings(relay, "import", relax, "import"))
    assert "20 more kinds of operators (all with --json" in " ".join(said.split())


def test_within_one_dialect_names_stay():
    one, other = recording("relax", "relax.nn.relu"), recording("relax", "nn.relu")
    found = compare_recordings(one, "import", other, "import")
    assert set(found.counts) == {"relax.nn.relu", "nn.relu"}
