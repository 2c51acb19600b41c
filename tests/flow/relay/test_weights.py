"""What a recording says of a model's weights is of the model, not of how it was prepared."""

from __future__ import annotations

from tests.relay import needs_relay

needs_relay()

import numpy as np  # noqa: E402
from tvm import relay  # noqa: E402

import byocviz  # noqa: E402
from tests.corpus_relay.case import main, x  # noqa: E402


def record(**how):
    # Scaling the kernel is folded where its values are known.
    kernel = relay.multiply(relay.var("w", shape=(4, 4, 3, 3)), relay.const(2.0))
    body = relay.nn.conv2d(x(), kernel, padding=(1, 1), channels=4, kernel_size=(3, 3))
    plain = relay.nn.conv2d(body, relay.var("v", shape=(4, 4, 1, 1)), channels=4, kernel_size=1)
    return byocviz.record(main(plain), progress=False, **how)


def test_weights_that_are_given_count_as_they_were_given():
    params = {
        "w": np.ones((4, 4, 3, 3), "float32"),
        "v": np.ones((4, 4, 1, 1), "float32"),
        "left over": np.ones(7, "float32"),
    }
    prepared, bare = record(params=params), record(params=params, prepare=False)
    assert prepared.weights == bare.weights
    assert (bare.weights.tensors, bare.weights.elements) == (3, 4 * 4 * 9 + 4 * 4 + 1)
    assert "3 tensors, 161 elements" in prepared.summary()
    assert "no values" not in prepared.step("import").note
    other = record(params={**params, "v": np.zeros((4, 4, 1, 1), "float32")})
    assert other.weights.digest != prepared.weights.digest


def test_weights_that_are_not_given_are_said():
    recording = record()
    assert recording.weights.tensors == 1
    assert "1 of its parameters are weights" in recording.step("import").note
