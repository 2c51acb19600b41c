"""Matrix products, and attention."""

from __future__ import annotations

import pytest

pytest.importorskip("tvm")
pytest.importorskip("onnxruntime")

from tvm import relax

from tests.building.lower.lab import C, Cases, T, faults

op = relax.op
CASES = Cases()

for a, b in (
    ((3, 4), (4, 5)), ((4,), (4,)), ((4,), (4, 5)), ((3, 4), (4,)), ((2, 3, 4), (2, 4, 5)),
    ((2, 3, 4), (4, 5)), ((4, 5), (2, 5, 3)), ((2, 1, 3, 4), (6, 4, 5)), ((4,), (2, 4, 5)),
    ((2, 3, 4), (4,)), ((1, 3, 4), (7, 4, 2)),
):  # fmt: skip
    CASES(op.matmul, T(*a), T(*b))
    CASES(op.matmul, T(*a), C(*b))
CASES(op.matmul, T(3, 4, dtype="float16"), T(4, 5, dtype="float16"))
CASES(op.matmul, T(3, 4, dtype="float16"), C(4, 5, dtype="float16"), out_dtype="float32")
CASES(op.matmul, T(3, 4, dtype="int32"), T(4, 5, dtype="int32"))
CASES(op.matmul, T(3, 4, dtype="int8"), T(4, 5, dtype="int8"), out_dtype="int32")
CASES(op.einsum, [T(2, 3), T(3, 4)], "ij,jk->ik")
CASES(op.einsum, [T(2, 3, 4), T(2, 4, 5)], "bij, bjk -> bik")
CASES(op.einsum, [T(2, 3)], "ij->ji")
attention = op.nn.attention
QUERY, KEY, VALUE = T(2, 4, 3, 8), T(2, 5, 3, 8), T(2, 5, 3, 6)
CASES(attention, QUERY, KEY, VALUE)
CASES(attention, QUERY, KEY, VALUE, scale=0.3)
CASES(attention, QUERY, KEY, VALUE, T(2, 3, 4, 5))


@pytest.mark.parametrize("part", range(2))
def test_it_computes_what_tvm_computes(part: int) -> None:
    assert faults(CASES[part::2]) == []
