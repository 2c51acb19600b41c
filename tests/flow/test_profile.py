"""Sums over operators, and what an unknown figure does to them."""

from __future__ import annotations

from byocviz.flow.profile import operators_by_name, parameters, profile, total
from byocviz.recording.schema import Operator, Subgraph

OPS = {
    0: Operator(0, "relax.nn.conv2d", macs=100),
    1: Operator(1, "relax.add", macs=0),
    2: Operator(2, "relax.add", macs=0),
    3: Operator(3, "helper", kind="call"),
    4: Operator(4, "relax.call_tir", macs=None),
}


def test_an_unknown_term_makes_the_sum_unknown() -> None:
    assert total([1, 2]) == 3
    assert total([]) == 0
    assert total([1, None]) is None


def test_calls_of_functions_are_no_operators() -> None:
    assert operators_by_name(OPS, OPS) == {
        "relax.add": 2,
        "relax.call_tir": 1,
        "relax.nn.conv2d": 1,
    }


def test_a_tensor_that_several_read_counts_once() -> None:
    read = {0: [("w", 10, 40)], 1: [("w", 10, 40), ("b", 1, 4)]}
    assert parameters([0, 1, 2], read) == (11, 44)


def test_a_profile() -> None:
    inside = Subgraph(
        "s", "chip", "s", op_ids=[0, 1], ops={"relax.nn.conv2d": 1, "relax.add": 1}, macs=100,
        bytes_in=8, bytes_out=4,
    )  # fmt: skip
    found = profile([0, 1, 2, 3], OPS, {}, [inside])
    assert (found.total, found.macs, found.subgraphs) == (3, 100, 1)
    assert (found.bytes_in, found.bytes_out) == (8, 4)
    assert found.coverage_ops == 2 / 3
    assert found.coverage_macs == 1.0
    unknown = profile(OPS, OPS, {}, [inside])
    assert unknown.macs is None
    assert unknown.coverage_macs is None
    inside.bytes_in = None
    assert profile([0], OPS, {}, [inside]).bytes_in is None
    assert profile([], OPS, {}).coverage_ops == 0
