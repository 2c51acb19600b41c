"""A detector with the bundled SSD's inputs and outputs and one layer: it takes no time."""

from __future__ import annotations

from pathlib import Path

import numpy as np

CELLS = 3
CLASSES = 90


def write(path: Path) -> Path:
    """Writes it as ONNX: image [1, 3, 300, 300] to boxes [1, 9, 4], scores [1, 90, 9], selected.

    Each cell of the picture has one box; the brighter it is, the surer is the cell of class 16.
    """
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    weights = np.zeros((4 + CLASSES, 3, 1, 1), np.float32)
    bias = np.full(4 + CLASSES, -8, np.float32)
    bias[:4] = [-1, -1, 1, 1]
    weights[4 + 16] = 2
    bias[4 + 16] = 0
    shapes = {"as_boxes": [1, 4, CELLS * CELLS], "as_scores": [1, CLASSES, CELLS * CELLS]}
    constants = {
        "weights": weights,
        "bias": bias,
        "parts": np.array([4, CLASSES], np.int64),
        "most": np.array([5], np.int64),
        "overlap": np.array([0.5], np.float32),
        "least": np.array([0.3], np.float32),
        **{name: np.array(shape, np.int64) for name, shape in shapes.items()},
    }
    side = [300 // CELLS] * 2
    nodes = [
        helper.make_node("AveragePool", ["image"], ["cells"], kernel_shape=side, strides=side),
        helper.make_node("Conv", ["cells", "weights", "bias"], ["found"]),
        helper.make_node("Sigmoid", ["found"], ["shares"]),
        helper.make_node("Split", ["shares", "parts"], ["corners", "sure"], axis=1),
        helper.make_node("Reshape", ["corners", "as_boxes"], ["flat"]),
        helper.make_node("Transpose", ["flat"], ["boxes"], perm=[0, 2, 1]),
        helper.make_node("Reshape", ["sure", "as_scores"], ["scores"]),
        helper.make_node(
            "NonMaxSuppression", ["boxes", "scores", "most", "overlap", "least"], ["selected"]
        ),
    ]
    graph = helper.make_graph(
        nodes,
        "small-ssd",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 300, 300])],
        [
            helper.make_tensor_value_info("boxes", TensorProto.FLOAT, [1, 9, 4]),
            helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, CLASSES, 9]),
            helper.make_tensor_value_info("selected", TensorProto.INT64, ["n", 3]),
        ],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, path)
    return path
