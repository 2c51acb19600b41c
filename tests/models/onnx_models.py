"""Small ONNX models that the tests share: each a real graph, most with shape arithmetic."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17


def initializer(name: str, value: object) -> onnx.TensorProto:
    return numpy_helper.from_array(np.asarray(value), name)


def model(nodes, inputs, outputs, initializers=()) -> onnx.ModelProto:
    """``inputs`` and ``outputs``: (name, shape) or (name, shape, element type)."""

    def info(entry):
        name, shape, *rest = entry
        kind = rest[0] if rest else TensorProto.FLOAT
        return helper.make_tensor_value_info(name, kind, shape)

    graph = helper.make_graph(
        nodes, "g", [info(i) for i in inputs], [info(o) for o in outputs], list(initializers)
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)


def node(op, inputs, outputs, **attributes) -> onnx.NodeProto:
    return helper.make_node(op, inputs, outputs, **attributes)


def weights(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype("float32")


def flatten() -> onnx.ModelProto:
    """Shape -> Gather -> Unsqueeze -> Concat -> Reshape, as PyTorch exports a flatten."""
    return model(
        [
            node("Relu", ["x"], ["r"], name="relu"),
            node("Shape", ["r"], ["s"]),
            node("Gather", ["s", "zero"], ["b"], axis=0),
            node("Unsqueeze", ["b", "axes"], ["bu"]),
            node("Concat", ["bu", "minus"], ["shape"], axis=0),
            node("Reshape", ["r", "shape"], ["y"], name="flat"),
        ],
        [("x", ["N", 3, 8, 8])],
        [("y", ["N", "K"])],
        [
            initializer("zero", np.int64(0)),
            initializer("axes", np.array([0])),
            initializer("minus", np.array([-1])),
        ],
    )


def pad() -> onnx.ModelProto:
    """Pads to 16 x 16 by arithmetic on the shape: TVM alone cannot import it."""
    return model(
        [
            node("Shape", ["x"], ["s"]),
            node("Slice", ["s", "two", "four"], ["hw"]),
            node("Sub", ["full", "hw"], ["d"]),
            node("Concat", ["none", "none", "none", "d"], ["pads"], axis=0),
            node("Pad", ["x", "pads"], ["p"], name="pad"),
            node("Relu", ["p"], ["y"], name="relu"),
        ],
        [("x", ["N", 3, "H", "W"])],
        [("y", ["N", 3, "H2", "W2"])],
        [
            initializer("two", np.array([2])),
            initializer("four", np.array([4])),
            initializer("full", np.array([16, 16])),
            initializer("none", np.array([0, 0])),
        ],
    )


def resize() -> onnx.ModelProto:
    """Twice as large, by arithmetic on the shape."""
    return model(
        [
            node("Shape", ["x"], ["s"]),
            node("Slice", ["s", "a0", "a2"], ["nc"]),
            node("Slice", ["s", "a2", "a4"], ["hw"]),
            node("Mul", ["hw", "twice"], ["hw2"]),
            node("Concat", ["nc", "hw2"], ["sizes"], axis=0),
            node(
                "Resize",
                ["x", "", "", "sizes"],
                ["y"],
                name="up",
                mode="nearest",
                coordinate_transformation_mode="asymmetric",
                nearest_mode="floor",
            ),
        ],
        [("x", ["N", 3, "H", "W"])],
        [("y", ["N", 3, "H2", "W2"])],
        [
            initializer("a0", np.array([0])),
            initializer("a2", np.array([2])),
            initializer("a4", np.array([4])),
            initializer("twice", np.array([2, 2])),
        ],
    )


def expand() -> onnx.ModelProto:
    """ConstantOfShape, Equal, Where, Expand, as PyTorch exports expand(-1, ...)."""
    return model(
        [
            node("ConstantOfShape", ["rank"], ["ones"], value=helper.make_tensor("v", 7, [1], [1])),
            node("Mul", ["ones", "minus"], ["all"]),
            node("Shape", ["x"], ["s"]),
            node("Equal", ["s", "all"], ["e"]),
            node("Where", ["e", "ones", "s"], ["target"]),
            node("Expand", ["bias", "target"], ["bx"], name="expand"),
            node("Add", ["x", "bx"], ["y"], name="add"),
        ],
        [("x", ["N", 3, 4, 4])],
        [("y", ["N", 3, 4, 4])],
        [
            initializer("rank", np.array([4])),
            initializer("minus", np.int64(-1)),
            initializer("bias", weights(1, 3, 1, 1)),
        ],
    )


def conv_bn(batch: int | str = "N") -> onnx.ModelProto:
    return model(
        [
            node("Conv", ["x", "w"], ["c"], name="conv", pads=[1] * 4),
            node("BatchNormalization", ["c", "g", "b", "m", "v"], ["d"], name="bn"),
            node("Relu", ["d"], ["y"], name="relu"),
        ],
        [("x", [batch, 3, 8, 8])],
        [("y", [batch, 8, 8, 8])],
        [initializer("w", weights(8, 3, 3, 3))]
        + [initializer(k, np.abs(weights(8)) + 0.5) for k in "gbmv"],
    )


def constant_if() -> onnx.ModelProto:
    """An If whose condition is constant once the batch is known."""
    return model(
        [
            node("Shape", ["x"], ["s"]),
            node("Gather", ["s", "zero"], ["n"], axis=0),
            node("Equal", ["n", "one"], ["q"]),
            node("If", ["q"], ["y"], name="if", **branches("x", "Relu", "Sigmoid")),
        ],
        [("x", ["N", 3])],
        [("y", ["N", 3])],
        [initializer("zero", np.int64(0)), initializer("one", np.int64(1))],
    )


def true_if() -> onnx.ModelProto:
    """An If that stays: its condition is an input."""
    return model(
        [
            node("Relu", ["x"], ["r"], name="before"),
            node("If", ["q"], ["i"], name="if", **branches("r", "Tanh", "Sigmoid")),
            node("Neg", ["i"], ["y"], name="after"),
        ],
        [("x", [2, 3]), ("q", [], TensorProto.BOOL)],
        [("y", [2, 3])],
    )


def branches(value: str, then: str, other: str) -> dict[str, onnx.GraphProto]:
    def branch(op: str) -> onnx.GraphProto:
        out = helper.make_tensor_value_info(f"o_{op}", TensorProto.FLOAT, None)
        return helper.make_graph([node(op, [value], [f"o_{op}"], name=f"in_{op}")], op, [], [out])

    return {"then_branch": branch(then), "else_branch": branch(other)}


def broadcast_shape() -> onnx.ModelProto:
    """Reads the batch of x, which is broadcast with a fixed 4: N may be 1, and is not 4."""
    return model(
        [
            node("Add", ["x", "four"], ["a"], name="add"),
            node("Shape", ["x"], ["s"]),
            node("Cast", ["s"], ["f"], to=TensorProto.FLOAT),
            node("ReduceSum", ["a"], ["r"], keepdims=1),
            node("Add", ["r", "f"], ["y"]),
        ],
        [("x", ["N", 3])],
        [("y", [1, 2])],
        [initializer("four", weights(4, 3))],
    )


def split() -> onnx.ModelProto:
    """Outputs of one node used apart; a node without a name; a nested expression (Clip)."""
    return model(
        [
            node("Split", ["x"], ["a", "b"], axis=1, name="split"),
            node("Clip", ["a", "low", "high"], ["ca"], name="clip"),
            node("Sigmoid", ["b"], ["sb"]),
            node("Mul", ["ca", "sb"], ["y"], name="mul"),
        ],
        [("x", [1, 6, 4])],
        [("y", [1, 3, 4])],
        [initializer("low", np.float32(0)), initializer("high", np.float32(6))],
    )


FIXED: dict[str, tuple[Callable[[], onnx.ModelProto], dict[str, tuple[int, ...]]]] = {
    "flatten": (flatten, {"x": (2, 3, 8, 8)}),
    "pad": (pad, {"x": (1, 3, 10, 12)}),
    "resize": (resize, {"x": (1, 3, 5, 7)}),
    "expand": (expand, {"x": (2, 3, 4, 4)}),
    "conv_bn": (conv_bn, {"x": (1, 3, 8, 8)}),
    "if_taken": (constant_if, {"x": (1, 3)}),
    "if_not_taken": (constant_if, {"x": (2, 3)}),
    "broadcast": (broadcast_shape, {"x": (1, 3)}),
    "split": (split, {"x": (1, 6, 4)}),
}
