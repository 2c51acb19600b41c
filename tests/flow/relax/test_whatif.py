"""What a rule for each operator left on TVM would gain."""

from __future__ import annotations

import pytest

pytest.importorskip("tvm")

import byocviz
from tests.corpus.case import flow


@pytest.mark.parametrize("name", ["multiply", "divide", "subtract", "exp"])
def test_every_kind_of_operator_is_tried(name: str) -> None:
    """FuseOpsByPattern looks at the arguments of multiply and divide by itself."""
    call = "R.exp(x)" if name == "exp" else f"R.{name}(x, B)"
    mod = flow("x: X", f"a = {call}\nb = R.nn.relu(a)\nR.output(b)\nreturn b")
    recording = byocviz.record(mod, "tutorial", progress=False)
    found = {blocker.op: blocker for blocker in recording.blockers()}
    blocker = found[f"relax.{name}"]
    assert not blocker.error
    assert blocker.coverage_ops > blocker.coverage_ops_now
