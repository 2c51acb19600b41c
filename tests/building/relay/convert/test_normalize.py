"""Normalisations and reductions."""

from __future__ import annotations

import itertools

from tests.relay import needs_relay

needs_relay()

import pytest  # noqa: E402
from tvm import relay  # noqa: E402

from tests.building.relay.lab import C, Cases, T, V, faults  # noqa: E402

nn = relay.nn
CASES = Cases()

for center, scale, axis in itertools.product((True, False), (True, False), (1, -1)):
    shape = (2, 3, 4, 5)
    size = shape[axis]

    def norm(x, g, b, m, v, **kwargs):  # type: ignore[no-untyped-def]
        return nn.batch_norm(x, g, b, m, v, **kwargs)[0]

    CASES(norm, T(*shape), C(size), C(size), C(size), C(size, low=0.5, high=2.0), axis=axis,
          center=center, scale=scale, tol=1e-4)  # fmt: skip
    CASES(nn.layer_norm, T(*shape), C(size), C(size), axis=axis, center=center, scale=scale,
          epsilon=1e-3, tol=1e-4)  # fmt: skip
    CASES(nn.instance_norm, T(*shape), C(size), C(size), axis=axis, center=center, scale=scale,
          epsilon=1e-3, tol=1e-4)  # fmt: skip
for groups, (center, scale) in itertools.product((1, 2, 4), ((True, True), (False, False))):
    CASES(nn.group_norm, T(2, 4, 5, 3), C(4), C(4), num_groups=groups, center=center, scale=scale,
          epsilon=1e-3, tol=1e-4)  # fmt: skip
for axis in ([1], [1, 2], [3]):
    CASES(nn.l2_normalize, T(2, 3, 4, 5), eps=1e-3, axis=axis)
for axis, size in ((1, 3), (1, 5), (3, 3)):
    CASES(nn.lrn, T(1, 6, 4, 5), size=size, axis=axis, bias=1.5, alpha=1e-2, beta=0.7)

for make, axis, keep, exclude in itertools.product(
    (relay.sum, relay.max, relay.min, relay.mean, relay.prod),
    (None, 1, (0, 2), -1), (False, True), (False, True),
):  # fmt: skip
    if exclude and axis is None:
        continue
    CASES(make, T(2, 3, 4), axis=axis, keepdims=keep, exclude=exclude, tol=1e-4)
for make in (relay.sum, relay.max, relay.min):
    CASES(make, T(2, 3, dtype="int32"), axis=1)
for axis, keep, unbiased in itertools.product((1, (0, 2), None), (False, True), (False, True)):
    CASES(relay.variance, T(2, 3, 4), axis=axis, keepdims=keep, unbiased=unbiased, tol=1e-4)
CASES(relay.std, T(2, 3, 4), axis=1, tol=1e-4)
TIES = V([[1, 3, 3, 0], [2, 2, 1, 2]], "float32")
for make, axis, keep, last in itertools.product(
    (relay.argmax, relay.argmin), (None, 0, -1), (False, True), (False, True)
):
    CASES(make, TIES, axis=axis, keepdims=keep, select_last_index=last)
CASES(relay.argmax, T(2, 3, 4), axis=(0, 2), exclude=True)
for axis, exclusive in itertools.product((0, 1, -1), (False, True)):
    CASES(relay.cumsum, T(3, 4), axis=axis, exclusive=exclusive)
CASES(relay.cumsum, T(3, 4, dtype="int32"), axis=1, dtype="int64")


@pytest.mark.thinned(2)
@pytest.mark.parametrize("part", range(2))
def test_tvm_and_onnx_runtime_agree(part: int) -> None:
    assert faults(CASES[part::2]) == []
