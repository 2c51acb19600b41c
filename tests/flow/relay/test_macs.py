"""Multiply-accumulates of Relay's operators, against a count of products by hand."""

from __future__ import annotations

from tests.relay import needs_relay

needs_relay()

import pytest  # noqa: E402
from tvm import relay  # noqa: E402

import byocviz  # noqa: E402
from tests.corpus_relay.case import const, main, x  # noqa: E402


def count(result):
    recording = byocviz.record(main(result), "tutorial", prepare=False, progress=False)
    return recording.step("import").profile.macs


CASES = {
    # N * Cout * out * Cin/groups * window
    "conv2d": (
        lambda: relay.nn.conv2d(
            x(), const((6, 4, 3, 3)), channels=6, kernel_size=(3, 3), padding=(1, 1)
        ),
        1 * 6 * 8 * 8 * 4 * 3 * 3,
    ),
    "strided": (
        lambda: relay.nn.conv2d(
            x(), const((6, 4, 3, 3)), channels=6, kernel_size=(3, 3), strides=(2, 2)
        ),
        1 * 6 * 3 * 3 * 4 * 3 * 3,
    ),
    "grouped": (
        lambda: relay.nn.conv2d(x(), const((8, 2, 1, 1)), channels=8, kernel_size=(1, 1), groups=2),
        1 * 8 * 8 * 8 * 2,
    ),
    "depthwise nhwc": (
        lambda: relay.nn.conv2d(
            x(shape=(1, 8, 8, 4)),
            const((3, 3, 4, 1)),
            channels=4,
            kernel_size=(3, 3),
            groups=4,
            padding=(1, 1),
            data_layout="NHWC",
            kernel_layout="HWOI",
        ),
        1 * 4 * 8 * 8 * 3 * 3,
    ),
    "conv1d": (
        lambda: relay.nn.conv1d(x(shape=(2, 4, 9)), const((6, 4, 3)), channels=6, kernel_size=3),
        2 * 6 * 7 * 4 * 3,
    ),
    "conv3d": (
        lambda: relay.nn.conv3d(
            x(shape=(1, 2, 4, 4, 4)), const((3, 2, 3, 3, 3)), channels=3, kernel_size=(3, 3, 3)
        ),
        3 * 2 * 2 * 2 * 2 * 27,
    ),
    # N * in * Cin * Cout/groups * window
    "transposed": (
        lambda: relay.nn.conv2d_transpose(
            x(), const((4, 5, 2, 2)), channels=5, kernel_size=(2, 2), strides=(2, 2)
        ),
        8 * 8 * 4 * 5 * 2 * 2,
    ),
    "dense": (lambda: relay.nn.dense(x(shape=(2, 8)), const((5, 8))), 2 * 5 * 8),
    "batch_matmul": (
        lambda: relay.nn.batch_matmul(x("a", (2, 3, 4)), x("b", (2, 5, 4))),
        2 * 3 * 5 * 4,
    ),
    "matmul, transposed": (
        lambda: relay.nn.matmul(x("a", (4, 3)), x("b", (4, 5)), transpose_a=True),
        3 * 5 * 4,
    ),
    "none": (lambda: relay.nn.max_pool2d(relay.nn.relu(x()), pool_size=(2, 2)), 0),
    "no shape": (
        lambda: relay.nn.dense(relay.var("x", shape=(relay.Any(), 8)), const((5, 8))),
        None,
    ),
    "hidden": (lambda: relay.einsum([x("a", (2, 3)), x("b", (3, 4))], "ij,jk->ik"), None),
}


@pytest.mark.parametrize("name", CASES)
def test_macs(name):
    build, wanted = CASES[name]
    assert count(build()) == wanted
