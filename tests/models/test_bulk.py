"""Weights that step aside while a model is folded: what comes out is the same as with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from byocviz.models import _bulk, ssd
from byocviz.models._simplify import simplify

BIG = np.arange(2048, dtype="float32").reshape(32, 64) / 2048


def model(nodes: list[Any], weights: dict[str, np.ndarray], outputs: dict[str, Any]) -> Any:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [32, 64])],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in outputs.items()],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _branch(name: str, op: str) -> Any:
    made = helper.make_tensor_value_info(name, TensorProto.FLOAT, [32, 64])
    return helper.make_graph([helper.make_node(op, ["x", "w"], [name])], name, [], [made])


NODE = helper.make_node
CASES = {
    "read with what is not constant": model(
        [NODE("Add", ["x", "w"], ["y"])], {"w": BIG}, {"y": [32, 64]}
    ),
    "folded at once": model(
        [NODE("Transpose", ["w"], ["t"]), NODE("MatMul", ["x", "t"], ["y"])],
        {"w": BIG},
        {"y": [32, 32]},
    ),
    "both": model(
        [
            NODE("Transpose", ["w"], ["t"]),
            NODE("MatMul", ["x", "t"], ["u"]),
            NODE("MatMul", ["u", "w"], ["y"]),
        ],
        {"w": BIG},
        {"y": [32, 64]},
    ),
    "folded when a shape is": model(
        [
            NODE("Shape", ["x"], ["s"]),
            NODE("Reshape", ["w", "s"], ["r"]),
            NODE("Mul", ["r", "v"], ["m"]),
            NODE("Add", ["x", "m"], ["y"]),
        ],
        {"w": BIG.reshape(-1), "v": BIG},
        {"y": [32, 64]},
    ),
    "an output": model(
        [NODE("Add", ["x", "w"], ["y"]), NODE("Identity", ["w"], ["z"])],
        {"w": BIG},
        {"y": [32, 64], "z": [32, 64]},
    ),
    "in a branch": model(
        [
            NODE("ReduceSum", ["x"], ["sum"], keepdims=0),
            NODE("Greater", ["sum", "zero"], ["positive"]),
            NODE(
                "If",
                ["positive"],
                ["y"],
                then_branch=_branch("a", "Add"),
                else_branch=_branch("b", "Sub"),
            ),
        ],
        {"w": BIG, "zero": np.float32(0)},
        {"y": [32, 64]},
    ),
    "read by nobody": model([NODE("Neg", ["x"], ["y"])], {"w": BIG}, {"y": [32, 64]}),
}


def contents(made: Any) -> tuple[list[str], list[str], dict[str, bytes]]:
    """The nodes, the inputs, and the initializers with their bytes."""
    graph = made.graph
    held = {t.name: numpy_helper.to_array(t).tobytes() for t in graph.initializer}
    nodes = [str(node) for node in graph.node]
    return nodes, [value.name for value in graph.input], held


def run(made: Any) -> list[Any]:
    session = onnxruntime.InferenceSession(
        made.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    outputs: list[Any] = session.run(None, {"x": BIG[::-1] - 0.5})
    return outputs


def both_ways(given: Any, least: int, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """Simplified with the weights of so many bytes aside, and with none."""
    before = given.SerializeToString()
    made = []
    for bound in (least, 1 << 40):
        monkeypatch.setattr(_bulk, "_LEAST", bound)
        simplified, note = simplify(given)
        assert note == ""
        made.append(simplified)
    assert given.SerializeToString() == before
    return made[0], made[1]


@pytest.mark.parametrize("name", CASES)
def test_it_is_as_with_the_weights_in_place(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    aside, inside = both_ways(CASES[name], 1, monkeypatch)
    onnx.checker.check_model(aside)
    assert contents(aside) == contents(inside)
    for one, other in zip(run(aside), run(CASES[name]), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def test_so_is_the_ssd(monkeypatch: pytest.MonkeyPatch) -> None:
    aside, inside = both_ways(onnx.load_model(str(ssd.path())), _bulk._LEAST, monkeypatch)
    assert contents(aside) == contents(inside)
