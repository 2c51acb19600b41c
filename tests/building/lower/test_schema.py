"""Nodes that are none of ONNX's are refused as they are added, by ONNX's own schemas."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("tvm")
pytest.importorskip("onnx")

import onnx
from onnx import helper
from tvm import relax

import byocviz
from byocviz.building.lower import Graph, LoweringError
from byocviz.building.lower.graph import onnx_type
from byocviz.building.lower.schema import nothing_there, wrong_types

TYPES = ("float16", "bfloat16", "float32", "float64", "bool", "int8", "int32", "int64", "uint8")
ONE = ("Relu", "Neg", "Sin", "Erf", "Sign", "IsNaN", "Not", "Identity", "Transpose", "Softmax")
TWO = ("Add", "Mul", "Max", "Pow", "Mod", "And", "Equal", "Less", "MatMul", "PRelu", "Concat")


def valid(operator: str, opset: int, inputs: tuple[str, ...]) -> bool:
    """Whether ONNX's checker infers a type for the node alone."""
    fixed: dict[str, Any] = {"axis": 0} if operator == "Concat" else {}
    names = [f"x{i}" for i in range(len(inputs))]
    node = helper.make_node(operator, names, ["y"], **fixed)
    given = [
        helper.make_tensor_value_info(name, onnx_type(dtype), [2, 2])
        for name, dtype in zip(names, inputs, strict=True)
    ]
    graph = helper.make_graph([node], "g", given, [onnx.ValueInfoProto(name="y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    try:
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    except onnx.shape_inference.InferenceError:
        return False
    return True


@pytest.mark.parametrize("opset", [17, 21])
def test_it_says_what_onnx_s_own_check_says(opset: int) -> None:
    cases = [(operator, (dtype,)) for operator in ONE for dtype in TYPES]
    cases += [(operator, (a, b)) for operator in TWO for a in TYPES for b in TYPES]
    for operator, inputs in cases:
        said = wrong_types(operator, opset, inputs, ())
        assert (said == "") == valid(operator, opset, inputs), (operator, inputs, said)


def test_what_no_opset_of_ours_has_and_too_many_inputs() -> None:
    assert "no BitwiseAnd at opset 17" in wrong_types("BitwiseAnd", 17, ("int8", "int8"), ())
    assert wrong_types("BitwiseAnd", 18, ("int8", "int8"), ("int8",)) == ""
    assert wrong_types("Relu", 17, ("float32", "float32"), ())
    assert wrong_types("Max", 17, ("float32",) * 9, ("float32",)) == ""
    assert wrong_types("Resize", 17, ("float32", None, None, "int64"), ("float32",)) == ""


def test_empty_tensors() -> None:
    assert nothing_there("Conv", [(1, 2, 3), (1, 2, 0)])
    assert nothing_there("Conv", [(0, 2, 3), (0, 2, 1)]) == ""
    assert nothing_there("Add", [(0, 0)]) == ""


def test_a_converter_of_someone_s_own_is_refused_by_name() -> None:
    graph = Graph(17)
    graph.begin(7, "relax.mine", "lv3")
    x = graph.input("x", "bfloat16", (2,))
    with pytest.raises(LoweringError, match=r"relax\.mine in 'lv3' \(operator 7\).*Sin") as caught:
        graph.add("Sin", x)
    assert caught.value.attribute == "dtype"
    assert graph.nodes == []


def test_a_bfloat16_convolution_is_no_match_where_what_lowers_is_asked_for() -> None:
    x = relax.Var("x", relax.TensorType((1, 4, 6, 6), "bfloat16"))
    w = relax.Var("w", relax.TensorType((4, 4, 3, 3), "bfloat16"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x, w]):
        with builder.dataflow():
            y = builder.emit_output(relax.op.nn.conv2d(x, w))
        builder.emit_func_output(y)
    for backend, count in (("tensorrt", 1), (byocviz.backends.get("tensorrt").lowerable(), 0)):
        recording = byocviz.record(builder.get(), backend, prune=False, verify=False,
                                   progress=False)  # fmt: skip
        assert len(recording.step("partition").subgraphs) == count
