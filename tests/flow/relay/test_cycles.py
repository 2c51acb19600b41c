"""Regions that feed themselves are found before TVM's PartitionGraph crashes on them."""

from __future__ import annotations

import ast
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.relay import needs_relay

needs_relay()

from tvm import relay  # noqa: E402

import byocviz  # noqa: E402
from byocviz.errors import StepMissing  # noqa: E402
from byocviz.recording import from_bytes, to_bytes  # noqa: E402
from tests.corpus_relay.case import main, x  # noqa: E402

from .properties import check_all  # noqa: E402

_ON = (relay.nn.relu, relay.tanh, relay.sigmoid, relay.exp)
_OFF = (relay.round, relay.sign)


def shared() -> Any:
    """A result that one branch uses, and what comes after it."""
    made = relay.sigmoid(x("a"))
    return relay.add(relay.If(x("c", (), "bool"), x("b"), relay.exp(made)), made)


def graph(seed: int) -> Any:
    """Branches that use any value that is there."""
    chance = random.Random(seed)
    values: list[Any] = [x("a"), x("b")]

    def branch() -> Any:
        value = chance.choice(values)
        for _ in range(chance.randint(0, 2)):
            kind = chance.random()
            one = chance.choice(_ON if kind < 0.6 else _OFF)
            value = one(value) if kind < 0.8 else relay.add(value, chance.choice(values))
        return value

    for index in range(chance.randint(2, 9)):
        pick, kind = chance.choice(values[-4:]), chance.random()
        if kind < 0.5:
            values.append(chance.choice(_ON if kind < 0.35 else _OFF)(pick))
        elif kind < 0.65:
            values.append(relay.add(pick, chance.choice(values)))
        else:
            values.append(relay.If(x(f"c{index}", (), "bool"), branch(), branch()))
    results = [values[-1], *chance.sample(values[2:], k=min(2, len(values) - 2))]
    return relay.Tuple(results) if chance.random() < 0.5 else results[0]


def record(make: Any, **how: Any) -> byocviz.Recording:
    return byocviz.record(main(make()), prune=False, progress=False, **how)


def test_it_fails_with_the_mend_and_keeps_what_was_recorded() -> None:
    recording = record(shared)
    check_all(recording)
    assert recording.failed is not None
    assert (recording.failed.name, recording.last.name) == ("partition", "merge")
    assert recording.last.subgraphs
    error = recording.failed.error
    assert error is not None
    assert error.type == "RegionCycle"
    assert "tensorrt.sigmoid" in error.message
    assert from_bytes(to_bytes(recording)) == recording
    assert "PartitionGraph" in recording.summary()
    with pytest.raises(StepMissing, match="RegionCycle"):
        recording.blockers()
    assert record(shared, rules={"tensorrt.sigmoid": False}).failed is None


def test_tvm_alone_crashes_there(tmp_path: Path) -> None:
    """If it no longer does, the check can go."""
    script = (
        "import tests.flow.relay.test_cycles as t\n"
        "from tests.corpus_relay.oracle import partitioned\n"
        "partitioned(t.main(t.shared()), 'tensorrt')"
    )
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", script], cwd=root, capture_output=True)
    assert done.returncode < 0, done.stderr


@pytest.mark.thinned(4)
@pytest.mark.parametrize("start", range(0, 400, 20))
def test_each_either_goes_through_or_its_mend_does(start: int) -> None:
    """A miss would end this process."""
    for seed in range(start, start + 20):
        recording = record(lambda seed=seed: graph(seed))
        if recording.failed is None:
            continue
        error = recording.failed.error
        assert error is not None
        assert error.type == "RegionCycle", error
        found = re.search(r"rules=(\{.*?\})", error.mend)
        assert found is not None, error.mend
        again = record(lambda seed=seed: graph(seed), rules=ast.literal_eval(found[1]))
        assert again.failed is None, (seed, again.failed.error)
