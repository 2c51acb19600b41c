from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import relax

import byocviz
from byocviz.flow.relax.prepare import apply, apply_all, batch_norm, decompose

CONV: dict[str, dict[str, Any]] = {
    "conv2d": {"w": (4, 3, 3, 3), "op": "conv2d", "x": (1, 3, 6, 6)},
    "depthwise": {"w": (3, 1, 3, 3), "op": "conv2d", "x": (1, 3, 6, 6), "groups": 3},
    "nhwc": {
        "w": (3, 3, 3, 4),
        "op": "conv2d",
        "x": (1, 6, 6, 3),
        "axis": 3,
        "data_layout": "NHWC",
        "kernel_layout": "HWIO",
    },
    "conv1d": {"w": (4, 3, 3), "op": "conv1d", "x": (1, 3, 6)},
    "conv2d_transpose": {"w": (3, 4, 2, 2), "op": "conv2d_transpose", "x": (1, 3, 4, 4)},
}


def parameters(channels: int, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    gamma, beta, mean = rng.standard_normal((3, channels))
    return [np.float32(v) for v in (gamma, beta, mean, rng.uniform(0.2, 2, channels))]


def module(
    w: Any = None,
    op: str = "",
    x: Any = (1, 3, 6, 6),
    axis: int = 1,
    *,
    bias: Any = None,
    bias_first: bool = False,
    training: bool = False,
    also: str = "",
    constants: bool = True,
    seed: int = 0,
    center: bool = True,
    scale: bool = True,
    variance: float | None = None,
    **attrs: Any,
) -> Any:
    """x -> [convolution -> [+ bias]] -> batch_norm -> relu; ``also`` names a further output."""
    rng = np.random.default_rng(seed)
    bb = relax.BlockBuilder()
    data = relax.Var("x", relax.TensorType(x, "float32"))
    channels = x[axis]
    if w is not None:
        kernel = attrs.get("kernel_layout") or ("IO" if "transpose" in op else "OI")
        channels = w[kernel.index("O")]
    stats = parameters(channels, seed)
    if variance is not None:
        stats[3][:] = variance
    free = [
        relax.Var(n, relax.TensorType((channels,), "float32"))
        for n in (() if constants else ("gamma", "beta", "mean", "var"))
    ]
    with bb.function("main", [data, *free]):
        with bb.dataflow():
            conv = value = data
            if w is not None:
                weight = relax.const(rng.standard_normal(w).astype("float32"))
                conv = value = bb.emit(getattr(relax.op.nn, op)(data, weight, **attrs), "conv")
            if bias is not None:
                b = relax.const(np.asarray(bias, "float32"))
                value = bb.emit(relax.op.add(*((b, value) if bias_first else (value, b))), "sum")
            norm = bb.emit(
                relax.op.nn.batch_norm(
                    value,
                    *(free or [relax.const(p) for p in stats]),
                    axis=axis,
                    epsilon=1e-3,
                    center=center,
                    scale=scale,
                    training=training,
                )
            )
            y = bb.emit(relax.TupleGetItem(norm, 0), "y")
            out = bb.emit(relax.op.nn.relu(y))
            extra = {"conv": conv, "mean": None, "": None}[also]
            if also == "mean":
                extra = bb.emit(relax.TupleGetItem(norm, 1))
            else:
                bb.emit(relax.TupleGetItem(norm, 1))  # nothing reads it
            result = bb.emit_output(out if extra is None else relax.Tuple([out, extra]))
        bb.emit_func_output(result)
    return bb.get()


def check(lab: Any, mod: Any, expected: dict[str, int], x: Any, *more: np.ndarray) -> Any:
    mod = lab.tagged(mod)
    after, ctx = apply(mod, "fold-batch-norm")
    assert lab.ops(after) == expected
    assert lab.well_formed(after)
    lab.kept(mod, after)
    assert apply(after, "fold-batch-norm")[0] is after
    data = np.random.default_rng(7).standard_normal(x).astype("float32")
    for a, b in zip(lab.run(mod, data, *more), lab.run(after, data, *more), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-4)
    return ctx


@pytest.mark.parametrize("kind", CONV)
@pytest.mark.parametrize("bias", [False, True])
def test_into_the_convolution(lab: Any, kind: str, bias: bool) -> None:
    options = dict(CONV[kind])
    if bias:
        channels = {"conv2d_transpose": 4, "depthwise": 3}.get(kind, 4)
        shape = [1] * len(options["x"])
        shape[options.get("axis", 1)] = channels
        options["bias"] = np.arange(channels).reshape(shape)
    expected = {f"relax.nn.{options['op']}": 1, "relax.add": 1, "relax.nn.relu": 1}
    ctx = check(lab, module(**options), expected, options["x"])
    assert ctx.count == 1
    assert not ctx.left


def test_bias_that_is_one_number_and_stands_first(lab: Any) -> None:
    mod = module(**CONV["conv2d"], bias=2.0, bias_first=True)
    check(lab, mod, {"relax.nn.conv2d": 1, "relax.add": 1, "relax.nn.relu": 1}, (1, 3, 6, 6))


def test_flags(lab: Any) -> None:
    for flags in ({"center": False}, {"scale": False}, {"center": False, "scale": False}):
        mod = module(**CONV["conv2d"], **flags)
        check(lab, mod, {"relax.nn.conv2d": 1, "relax.add": 1, "relax.nn.relu": 1}, (1, 3, 6, 6))


SCALED = {"relax.multiply": 1, "relax.add": 1, "relax.nn.relu": 1}


def test_without_a_convolution(lab: Any) -> None:
    check(lab, module(), SCALED, (1, 3, 6, 6))
    check(lab, module(x=(2, 5), axis=-1), SCALED, (2, 5))


def test_convolution_read_elsewhere_keeps_its_weights(lab: Any) -> None:
    mod = module(**CONV["conv2d"], also="conv")
    check(lab, mod, SCALED | {"relax.nn.conv2d": 1}, (1, 3, 6, 6))


def test_bias_over_the_plane_keeps_the_weights(lab: Any) -> None:
    mod = module(**CONV["conv2d"], bias=np.ones((1, 1, 4, 4)))
    check(lab, mod, SCALED | {"relax.nn.conv2d": 1, "relax.add": 2}, (1, 3, 6, 6))


def test_grouped_transposed_convolution_keeps_its_weights(lab: Any) -> None:
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, 4, 4, 4), "float32"))
    weight = relax.const(np.ones((4, 1, 2, 2), "float32"))
    stats = [relax.const(p) for p in parameters(4)]
    with bb.function("main", [x]):
        with bb.dataflow():
            conv = bb.emit(relax.op.nn.conv2d_transpose(x, weight, groups=4))
            norm = bb.emit(relax.op.nn.batch_norm(conv, *stats, axis=1, training=False))
            out = bb.emit_output(relax.TupleGetItem(norm, 0))
        bb.emit_func_output(out)
    after, ctx = apply(bb.get(), "fold-batch-norm")
    expected = {"relax.nn.conv2d_transpose": 1, "relax.multiply": 1, "relax.add": 1}
    assert ctx.count == 1
    assert lab.ops(after) == expected


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        ({"training": True}, batch_norm.TRAINING),
        ({"also": "mean"}, batch_norm.STATISTICS_READ),
        ({"constants": False}, batch_norm.NOT_CONSTANT),
        ({"variance": -1.0}, batch_norm.NOT_FINITE),
    ],
)
def test_what_is_left(lab: Any, options: dict[str, Any], cause: str) -> None:
    mod = module(**CONV["conv2d"], **options)
    after, ctx = apply(mod, "fold-batch-norm")
    assert after is mod
    assert ctx.count == 0
    assert ctx.left == {cause: 1}


def test_decomposes_what_was_not_folded(lab: Any) -> None:
    mod = lab.tagged(module(constants=False))
    after, ctx = apply(mod, "decompose-batch-norm")
    assert ctx.count == 1
    assert "relax.nn.batch_norm" not in lab.ops(after)
    lab.kept(mod, after)
    assert apply(after, "decompose-batch-norm")[0] is after
    x = np.random.default_rng(1).standard_normal((1, 3, 6, 6)).astype("float32")
    for a, b in zip(
        lab.run(mod, x, *parameters(3)), lab.run(after, x, *parameters(3)), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
    mod = module(training=True)
    after, ctx = apply(mod, "decompose-batch-norm")
    assert after is mod
    assert ctx.left == {batch_norm.TRAINING: 1}


def test_decomposes_no_shape_along_the_way(lab: Any) -> None:
    bb = relax.BlockBuilder()
    ty = relax.TensorType((1, 3, 2, 2), "float32")
    x = relax.Var("x", ty)
    dims = relax.Var("dims", relax.TensorType((2,), "int64"))
    stats = [relax.Var(n, relax.TensorType((3,), "float32")) for n in "gbmv"]
    with bb.function("main", [x, dims, *stats]):
        with bb.dataflow():
            norm = bb.emit(relax.op.nn.batch_norm(x, *stats, axis=1, training=False))
            y = bb.emit(relax.TupleGetItem(norm, 0))
            shape = bb.emit(relax.op.tensor_to_shape(dims))
            out = bb.emit_output(relax.op.reshape(y, shape))
        bb.emit_func_output(out)
    mod = bb.get()
    after, ctx = apply(mod, "decompose-batch-norm")
    assert after is mod
    assert ctx.left == {decompose.LOWERS_SHAPES: 1}


def test_imported_network(lab: Any) -> None:
    rng = np.random.default_rng(0)
    constants = {
        "w": rng.standard_normal((4, 3, 3, 3)).astype("float32"),
        "b": rng.standard_normal(4).astype("float32"),
        **dict(zip(("g", "o", "m", "v"), parameters(4), strict=True)),
    }
    nodes = [
        ("Conv", ["x", "w", "b"], {}),
        ("BatchNormalization", ["t0", "g", "o", "m", "v"], {}),
        ("Relu", ["t1"], {}),
    ]
    mod = lab.tagged(lab.onnx(nodes, {"x": [1, 3, 6, 6]}, constants))
    after = apply_all(mod)
    assert lab.ops(after) == {"relax.nn.conv2d": 1, "relax.add": 1, "relax.nn.relu": 1}
    x = rng.standard_normal((1, 3, 6, 6)).astype("float32")
    for a, b in zip(lab.run(mod, x), lab.run(after, x), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


@settings(max_examples=8, deadline=None)
@given(
    kind=st.sampled_from([*CONV, ""]),
    flags=st.tuples(st.booleans(), st.booleans()),
    seed=st.integers(0, 99),
)
def test_values_stay(lab: Any, kind: str, flags: tuple[bool, bool], seed: int) -> None:
    options: dict[str, Any] = CONV.get(kind, {"x": (1, 3, 6, 6)})
    mod = module(**options, center=flags[0], scale=flags[1], seed=seed)
    after, ctx = apply(mod, "fold-batch-norm")
    assert ctx.count == 1
    x = np.random.default_rng(seed).standard_normal(options["x"]).astype("float32")
    for a, b in zip(lab.run(mod, x), lab.run(after, x), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3)


def test_float64_stays_float64() -> None:
    kind = relax.TensorType((1, 3, 4, 4), "float64")
    x = relax.Var("x", kind)
    rng = np.random.default_rng(0)
    gamma, beta, mean, variance = (
        relax.const(rng.uniform(0.5, 1.5, 3), "float64") for _ in range(4)
    )
    weight = relax.const(rng.standard_normal((3, 3, 1, 1)), "float64")
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            conv = builder.emit(relax.op.nn.conv2d(x, weight))
            norm = relax.op.nn.batch_norm(conv, gamma, beta, mean, variance, 1, training=False)
            out = builder.emit_output(builder.emit(norm)[0])
        builder.emit_func_output(out)
    recording = byocviz.record(builder.get(), verify=True, progress=False)
    assert recording.failed is None
    assert not [s.verify_error for s in recording.steps if s.verify_error]
    assert max(s.max_difference or 0.0 for s in recording.steps) < 1e-12
