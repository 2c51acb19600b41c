"""What TVM's ONNX importer leaves behind."""

from __future__ import annotations

from typing import Any

import tvm

from .case import array, case


def _import(
    nodes: list[Any],
    inputs: dict[str, list[int]],
    outputs: dict[str, list[int]],
    weights: dict[str, Any] | None = None,
) -> tvm.IRModule:
    from onnx import TensorProto, helper, numpy_helper
    from tvm.relax.frontend.onnx import from_onnx

    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in outputs.items()],
        [numpy_helper.from_array(value, name) for name, value in (weights or {}).items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 8
    return from_onnx(model, keep_params_in_input=False)


def _node(op: str, inputs: list[str], output: str, **attrs: Any) -> Any:
    from onnx import helper

    return helper.make_node(op, inputs, [output], **attrs)


_X = {"x": [1, 4, 8, 8]}


@case("onnx", "clip", subgraphs=2)
def onnx_clip() -> tvm.IRModule:
    weights = {"w": array((4, 4, 3, 3), 1), "lo": array((), 0) * 0, "hi": array((), 0) * 0 + 6}
    nodes = [
        _node("Conv", ["x", "w"], "a", pads=[1, 1, 1, 1]),
        _node("Clip", ["a", "lo", "hi"], "b"),
        _node("Conv", ["b", "w"], "c", pads=[1, 1, 1, 1]),
    ]
    return _import(nodes, _X, {"c": [1, 4, 8, 8]}, weights)


@case("onnx", "sum")
def onnx_sum_of_three() -> tvm.IRModule:
    return _import(
        [
            _node("Relu", ["x"], "a"),
            _node("Sum", ["a", "y", "z"], "b"),
            _node("Relu", ["b"], "c"),
        ],
        {**_X, "y": [1, 4, 8, 8], "z": [1, 4, 1, 1]},
        {"c": [1, 4, 8, 8]},
    )


@case("onnx", "sum")
def onnx_max_and_min_of_several() -> tvm.IRModule:
    return _import(
        [
            _node("Max", ["x", "y"], "a"),
            _node("Min", ["a", "z", "y"], "b"),
            _node("Relu", ["b"], "c"),
        ],
        {**_X, "y": [1, 4, 8, 8], "z": [1, 4, 1, 1]},
        {"c": [1, 4, 8, 8]},
    )


@case("onnx", "batch-norm")
def onnx_convolution_and_batch_norm() -> tvm.IRModule:
    weights = {
        "w": array((4, 4, 3, 3), 1),
        "b": array((4,), 2),
        "g": array((4,), 3),
        "h": array((4,), 4),
        "m": array((4,), 5),
        "v": abs(array((4,), 6)) + array((4,), 0) * 0 + 1,
    }
    nodes = [
        _node("Conv", ["x", "w", "b"], "a", pads=[1, 1, 1, 1]),
        _node("BatchNormalization", ["a", "g", "h", "m", "v"], "n"),
        _node("Relu", ["n"], "c"),
        _node("GlobalAveragePool", ["c"], "d"),
        _node("Flatten", ["d"], "e"),
    ]
    return _import(nodes, _X, {"e": [1, 4]}, weights)


@case("onnx", "gemm", subgraphs=1)
def onnx_gemm_and_softmax() -> tvm.IRModule:
    nodes = [
        _node("Gemm", ["x", "w", "b"], "a", transB=1),
        _node("Softmax", ["a"], "c", axis=-1),
    ]
    return _import(
        nodes, {"x": [2, 8]}, {"c": [2, 4]}, {"w": array((4, 8), 1), "b": array((4,), 2)}
    )
