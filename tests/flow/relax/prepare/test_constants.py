from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tvm import relax

from byocviz.flow.relax import surgery as s
from byocviz.flow.relax.prepare import apply, constants

W = np.arange(24, dtype="float32").reshape(2, 3, 4)
MOVES: dict[str, Any] = {
    "reshape": lambda c: relax.op.reshape(c, (4, 6)),
    "reshape with -1": lambda c: relax.op.reshape(c, (-1, 2)),
    "permute_dims": lambda c: relax.op.permute_dims(c, [2, 0, 1]),
    "permute_dims reversed": relax.op.permute_dims,
    "permute_dims negative": lambda c: relax.op.permute_dims(c, [-1, 0, 1]),
    "expand_dims": lambda c: relax.op.expand_dims(c, [0, -1]),
    "flatten": relax.op.flatten,
    "broadcast_to": lambda c: relax.op.broadcast_to(c, (5, 2, 3, 4)),
    "chain": lambda c: relax.op.squeeze(relax.op.expand_dims(relax.op.permute_dims(c), 1), [1]),
}


def module(build: Any, weight: Any = W, private: bool = False, name: str = "main") -> Any:
    """``x + build(weight)``, and the moved weight itself."""
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1,), str(weight.dtype)))
    with bb.function(name, [x], private=private):
        with bb.dataflow():
            m = bb.emit(build(relax.const(weight, str(weight.dtype))))
            out = bb.emit_output(relax.Tuple([bb.emit(relax.op.add(m, x)), m]))
        bb.emit_func_output(out)
    return bb.get()


@pytest.mark.parametrize("name", MOVES)
@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "float16", "int64", "float64"])
def test_moves_keep_every_bit(lab: Any, name: str, dtype: str) -> None:
    if dtype == "bool":
        mod = lab.tagged(only(MOVES[name], W.astype(dtype)))
        arrays = []
    else:
        mod = lab.tagged(module(MOVES[name], W.astype(dtype)))
        arrays = [np.ones(1, dtype)]
    after, ctx = apply(mod, "layout-of-constants")
    assert ctx.count == (3 if name == "chain" else 1)
    assert not ctx.left
    assert set(lab.ops(after)) <= {"relax.add"}
    lab.kept(mod, after)
    assert lab.well_formed(after)
    assert apply(after, "layout-of-constants")[0] is after
    if dtype == "float32":
        for a, b in zip(lab.run(mod, *arrays), lab.run(after, *arrays), strict=True):
            np.testing.assert_array_equal(a, b)


def only(build: Any, weight: np.ndarray) -> Any:
    """A function that returns the moved weight: its output variable is a constant then."""
    bb = relax.BlockBuilder()
    with bb.function("main", []):
        with bb.dataflow():
            out = bb.emit_output(build(relax.const(weight, str(weight.dtype))))
        bb.emit_func_output(out)
    return bb.get()


def test_nan_payloads_and_signed_zeros_survive(lab: Any) -> None:
    bits = np.array([[0x7FC00001, 0x80000000], [0xFFFFFFFF, 1]], "uint32")
    mod = only(relax.op.permute_dims, bits.view("float32"))
    after, _ = apply(mod, "layout-of-constants")
    view = s.View(after["main"])
    moved = s.to_numpy(view.value(after["main"].body.body))
    np.testing.assert_array_equal(moved.view("uint32"), bits.T)


def test_shared_constant_and_private_function(lab: Any) -> None:
    mod = module(MOVES["reshape"], private=True, name="helper")
    after, ctx = apply(mod, "layout-of-constants", entry="elsewhere")
    assert ctx.count == 1
    assert lab.ops(after) == {"relax.add": 1}


def test_symbolic_and_huge_are_left(lab: Any) -> None:
    from tvm import tirx

    bb = relax.BlockBuilder()
    n = tirx.Var("n", "int64")
    x = relax.Var("x", relax.TensorType((n, 3), "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            wide = bb.emit(relax.op.broadcast_to(relax.const(np.ones(3, "float32")), (n, 3)))
            out = bb.emit_output(relax.op.add(x, wide))
        bb.emit_func_output(out)
    mod = bb.get()
    after, ctx = apply(mod, "layout-of-constants")
    assert after is mod
    assert ctx.left == {constants.SYMBOLIC: 1}
    mod = only(lambda c: relax.op.broadcast_to(c, (1100, 1000)), np.ones(1, "float32"))
    after, ctx = apply(mod, "layout-of-constants")
    assert after is mod
    assert ctx.left == {constants.TOO_LARGE: 1}


def test_moves_of_values_are_no_target(lab: Any) -> None:
    mod = lab.onnx([("Transpose", ["x"], {"perm": [1, 0]})], {"x": [2, 3]})
    after, ctx = apply(mod, "layout-of-constants")
    assert after is mod
    assert not ctx.left


def test_bias_of_an_imported_convolution(lab: Any) -> None:
    weights = {"w": np.ones((4, 3, 3, 3), "float32"), "b": np.ones(4, "float32")}
    mod = lab.tagged(lab.onnx([("Conv", ["x", "w", "b"], {})], {"x": [1, 3, 5, 5]}, weights))
    after, ctx = apply(mod, "layout-of-constants")
    assert ctx.count == 1
    assert lab.ops(after) == {"relax.nn.conv2d": 1, "relax.add": 1}
    lab.kept(mod, after)
    assert len(lab.marks(after)) == 2
