"""Element by element: unary and binary operators, activations, clipping, casts."""

from __future__ import annotations

from tests.relay import needs_relay

needs_relay()

import pytest  # noqa: E402
from tvm import relay  # noqa: E402

from tests.building.relay.lab import C, Cases, T, V, faults  # noqa: E402

nn = relay.nn
CASES = Cases()

for make in (relay.sigmoid, relay.tanh, relay.exp, relay.sin, relay.cos, relay.tan, relay.sinh,
             relay.cosh, relay.asinh, relay.atan, relay.erf, relay.abs, relay.negative, relay.sign,
             relay.ceil, relay.floor, relay.trunc, nn.relu):  # fmt: skip
    CASES(make, T(2, 3, 4))
    CASES(make, T())
for make in (relay.log, relay.sqrt, relay.rsqrt):
    CASES(make, T(2, 3), tol=1e-4)
    CASES(make, T(40, low=0.1, high=9.0), tol=1e-4)
CASES(relay.acosh, T(7, low=1.1, high=4.0))
for make in (relay.asin, relay.acos, relay.atanh):
    CASES(make, T(9, low=-0.9, high=0.9))
CASES(relay.round, V([-2.7, -1.2, -0.4, 0.2, 1.7, 2.3], "float32"))
for make in (relay.isnan, relay.isinf, relay.isfinite):
    CASES(make, V([0.0, float("nan"), float("inf"), -float("inf")], "float32"))
CASES(relay.logical_not, T(4, dtype="bool"))
for make in (relay.abs, relay.negative, relay.sign, nn.relu):
    CASES(make, T(12, dtype="int32", low=-4, high=4))

for make in (relay.add, relay.subtract, relay.multiply, relay.maximum, relay.minimum):
    for a, b in (((2, 3), (2, 3)), ((2, 3, 4), (4,)), ((2, 1, 4), (3, 1)), ((), (2,))):
        CASES(make, T(*a), T(*b))
    CASES(make, T(2, 3), C(3))
    CASES(make, T(2, 3, dtype="int32"), T(2, 3, dtype="int32"))
CASES(relay.divide, T(2, 3), T(2, 3, low=1.0))
CASES(relay.divide, V([-7, 7, 8], "int32"), V([2, -2, 3], "int32"))
CASES(relay.floor_divide, T(5), T(5, low=1.0, high=3.0))
CASES(relay.mod, V([-7, 7, 8], "int32"), V([2, -2, 3], "int32"))
CASES(relay.floor_mod, T(5), T(5, low=1.0, high=3.0))
CASES(relay.power, T(2, 3, low=0.1), T(2, 3))
CASES(relay.power, T(2, 3), C(values=2.0))
for make in (relay.equal, relay.not_equal, relay.less, relay.less_equal, relay.greater,
             relay.greater_equal):  # fmt: skip
    CASES(make, T(3, 4, dtype="int32"), T(3, 4, dtype="int32"))
    CASES(make, T(3, 4), T(4))
for make in (relay.logical_and, relay.logical_or, relay.logical_xor):
    CASES(make, T(8, dtype="bool"), T(8, dtype="bool"))
CASES(relay.left_shift, T(4, dtype="int32"), C(values=2, dtype="int32"))
CASES(relay.right_shift, T(4, dtype="int32", low=-9, high=9), C(values=1, dtype="int32"))
CASES(relay.where, T(2, 3, dtype="bool"), T(2, 3), T(2, 3))
CASES(relay.where, T(3, dtype="bool"), T(2, 3), T(2, 3))

for alpha in (0.01, 0.3):
    CASES(nn.leaky_relu, T(2, 3), alpha=alpha)
for axis, shape in ((1, (2, 3, 4)), (2, (2, 3, 4))):
    CASES(nn.prelu, T(*shape), C(shape[axis]), axis=axis)
for axis in (-1, 0, 1, 2):
    CASES(nn.softmax, T(2, 3, 4), axis=axis)
for axis in (-1, 1):
    CASES(nn.log_softmax, T(3, 4), axis=axis)
for low, high in ((0.0, 6.0), (-1.0, 1.0), (-1e30, 0.5)):
    CASES(relay.clip, T(3, 5), a_min=low, a_max=high)
CASES(relay.clip, T(9, dtype="int32", low=-9, high=9), a_min=-2.0, a_max=5.0)
CASES(relay.clip, T(9, dtype="int8", low=-9, high=9), a_min=-3.0, a_max=5.0)
for source, goal in (("float32", "int32"), ("int32", "float32"), ("float32", "float64"),
                     ("bool", "float32"), ("int64", "int32"), ("float32", "float16")):  # fmt: skip
    CASES(relay.cast, T(6, dtype=source), dtype=goal)
CASES(relay.cast_like, T(6), T(2, dtype="int32"))
CASES(relay.copy, T(2, 3))
CASES(nn.bias_add, T(2, 3, 4), C(3))
CASES(nn.bias_add, T(2, 3, 4), C(4), axis=-1)
CASES(nn.bias_add, T(2, 3, 4), T(2), axis=0)
for shift in (1, 2):
    CASES(relay.add, T(2, 3, dtype="float16"), T(2, 3, dtype="float16"), tol=1e-2 * shift)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("part", range(2))
def test_tvm_and_onnx_runtime_agree(part: int) -> None:
    assert faults(CASES[part::2]) == []
