"""The forms of a function, names that lead back to operators, and the model's edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

pytest.importorskip("tvm")
pytest.importorskip("onnxruntime")

import tvm
from tvm import relax

import byocviz
from byocviz.building.lower import (
    Call,
    Graph,
    LoweringError,
    Tensor,
    check,
    converter,
    converters,
    examine,
    lower,
    registry,
)
from byocviz.flow.relax.compat import attribute
from byocviz.flow.relax.tag import tag_of
from byocviz.flow.relax.verify import run_module
from tests.building.lower.lab import run_onnx
from tests.corpus import by_name

op, nn = relax.op, relax.op.nn


def recorded(name: str, step: str) -> tvm.IRModule:
    case = by_name(name)
    recording = byocviz.record(case.build(), case.backend, prune=False, progress=False)
    return recording.__dict__["modules"][step]  # type: ignore[no-any-return]


def external(module: tvm.IRModule) -> dict[str, Any]:
    return {
        str(var.name_hint): function
        for var, function in module.functions_items()
        if attribute(function, "Codegen")
    }


@pytest.mark.parametrize("step", ["partition", "annotate"])
def test_nodes_lead_back_to_the_operators(step: str) -> None:
    for name, function in external(recorded("walkthrough", step)).items():
        lowered = lower(function, name=name)
        tags: set[int] = set()

        def visit(expr: Any, tags: set[int] = tags) -> None:
            if isinstance(expr, relax.Call) and isinstance(expr.op, tvm.ir.Op):
                tags.add(tag_of(expr))

        relax.analysis.post_order_visit(function, visit)
        assert set(lowered.operators) == tags
        assert -1 not in tags
        names = {node.name for node in lowered.model.graph.node}
        assert names == set(lowered.nodes)
        for identity, nodes in lowered.operators.items():
            assert nodes
            for node in nodes:
                assert lowered.nodes[node] == (identity,)
                assert f"_{identity}" in node
                assert lowered.calls[node].startswith("relax.")


def test_a_composite_and_the_whole_function_with_its_module() -> None:
    module = recorded("chain", "composite")
    whole = lower(module["main"], module=module)
    value = np.random.default_rng(0).standard_normal((1, 4, 8, 8)).astype("float32")
    (given,) = run_onnx(whole, [value])
    (wanted,) = run_module(module, "main", [value])
    np.testing.assert_allclose(given, wanted, rtol=1e-4, atol=1e-4)
    composites = [f for _, f in module.functions_items() if attribute(f, "Composite")]
    assert composites
    for function in composites:
        assert lower(function).outputs
    with pytest.raises(byocviz.ByocvizError, match="module=module"):
        lower(module["main"])


def function(params: list[Any], make: Any) -> Any:
    builder = relax.BlockBuilder()
    with builder.function("main", params):
        with builder.dataflow():
            result = builder.emit_output(make(builder))
        builder.emit_func_output(result)
    return builder.get()["main"]


def var(name: str, *shape: int, dtype: str = "float32") -> Any:
    return relax.Var(name, relax.TensorType(shape, dtype))


def test_outputs_that_are_inputs_constants_or_the_same_twice() -> None:
    x = var("x", 2)
    constant = relax.const(np.array([1, 2], "float32"))

    def make(builder: Any) -> Any:
        y = builder.emit(nn.relu(x))
        return relax.Tuple([y, x, constant, y, y])

    lowered = lower(function([x], make))
    onnx.checker.check_model(lowered.model, full_check=True)
    assert lowered.tuple_output
    assert [p.name for p in lowered.outputs] == [f"output_{i}" for i in range(5)]
    value = np.array([-1, 3], "float32")
    y = np.maximum(value, 0)
    for given, wanted in zip(run_onnx(lowered, [value]), [y, value, [1, 2], y, y], strict=True):
        np.testing.assert_array_equal(given, wanted)


def test_an_input_that_nothing_reads_stays_an_input() -> None:
    x, y = var("x", 2), var("y", 3)
    lowered = lower(function([x, y], lambda b: b.emit(nn.relu(x))))
    assert [(p.name, p.shape, p.parameter) for p in lowered.inputs] == [
        ("x", (2,), 0), ("y", (3,), 1)
    ]  # fmt: skip
    assert not lowered.tuple_output


def test_tuples_are_taken_apart_in_order() -> None:
    pair = relax.Var(
        "p", relax.TupleType([relax.TensorType((2,), "float32"), relax.TensorType((3,), "float32")])
    )

    def make(builder: Any) -> Any:
        a = builder.emit(relax.TupleGetItem(pair, 0))
        b = builder.emit(relax.TupleGetItem(pair, 1))
        return relax.Tuple([builder.emit(op.negative(b)), relax.Tuple([a, b])])

    lowered = lower(function([pair], make))
    assert [(p.parameter, p.path) for p in lowered.inputs] == [(0, (0,)), (0, (1,))]
    assert [p.path for p in lowered.outputs] == [(0,), (1, 0), (1, 1)]
    a, b = np.array([1, 2], "float32"), np.array([3, 4, 5], "float32")
    for given, wanted in zip(run_onnx(lowered, [a, b]), [-b, a, b], strict=True):
        np.testing.assert_array_equal(given, wanted)


def test_odd_names_and_the_same_name_twice() -> None:
    x, y = var("in put/ä", 2), var("in put/ä", 2)
    lowered = lower(function([x, y], lambda b: b.emit(op.add(x, y))), name="a b\n<c>")
    names = [p.name for p in lowered.inputs]
    assert len(set(names)) == 2
    for text in (*names, lowered.model.graph.name):
        assert text.isascii()
        assert not set(text) & set(" /<>\n")
    onnx.checker.check_model(lowered.model, full_check=True)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int64", "bool"])
def test_constants_keep_their_type_and_values(dtype: str) -> None:
    values = np.array([0, 1, 1, 0]).astype(dtype)
    x = var("x", 4, dtype=dtype)
    constant = relax.const(values, dtype)
    condition = relax.const(np.array([True, False, True, False]))
    lowered = lower(function([x], lambda b: b.emit(op.where(condition, x, constant))))
    kinds = {str(onnx.numpy_helper.to_array(c).dtype) for c in lowered.model.graph.initializer}
    assert dtype in kinds
    (given,) = run_onnx(lowered, [np.ones(4, dtype)])
    np.testing.assert_array_equal(given, np.where([1, 0, 1, 0], np.ones(4, dtype), values))


def test_a_constant_that_is_read_often_is_one_initialiser() -> None:
    x = var("x", 64, 64)
    weight = relax.const(np.eye(64, dtype="float32"))

    def make(builder: Any) -> Any:
        value = x
        for _ in range(3):
            value = builder.emit(op.matmul(value, weight))
        return value

    model = lower(function([x], make)).model
    assert len(model.graph.initializer) == 1
    assert model.ByteSize() < 2 * 64 * 64 * 4


def test_the_text_leaves_weights_out() -> None:
    x = var("x", 64, 64)
    weight = relax.const(np.eye(64, dtype="float32"))
    text = lower(function([x], lambda b: b.emit(op.matmul(x, weight)))).text()
    assert "MatMul" in text
    assert len(text) < 1000


def test_a_converter_of_one_s_own_wins() -> None:
    kept = converters()["relax.nn.relu"]

    @converter("relax.nn.relu")
    def relu(g: Graph, call: Call) -> Tensor:
        return g.add("Max", call.tensor(0), g.scalar(0, call.dtype))

    try:
        x = var("x", 2)
        lowered = lower(function([x], lambda b: b.emit(nn.relu(x))))
    finally:
        registry.REGISTRY._converters["relax.nn.relu"] = kept
    assert [n.op_type for n in lowered.model.graph.node] == ["Max"]


def test_a_converter_that_gives_another_type_is_found_out() -> None:
    kept = converters()["relax.nn.relu"]
    converter("relax.nn.relu")(lambda g, call: g.cast(call.tensor(0), "float16"))
    try:
        x = var("x", 2)
        with pytest.raises(byocviz.ByocvizError, match="the converter is wrong"):
            lower(function([x], lambda b: b.emit(nn.relu(x))))
    finally:
        registry.REGISTRY._converters["relax.nn.relu"] = kept


def test_a_converter_that_fails_is_a_refusal() -> None:
    kept = converters()["relax.nn.relu"]
    converter("relax.nn.relu")(lambda g, call: call.args[7])
    try:
        x = var("x", 2)
        made = function([x], lambda b: b.emit(nn.relu(x)))
        with pytest.raises(LoweringError, match="IndexError"):
            lower(made)
        assert [error.operator for error in check(made)] == ["relax.nn.relu"]
    finally:
        registry.REGISTRY._converters["relax.nn.relu"] = kept


def test_what_the_nodes_read_and_give_is_known() -> None:
    x = var("x", 2)
    errors, graph = examine(function([x], lambda b: b.emit(op.matmul(x, b.emit(nn.relu(x))))))
    assert errors == []
    for _, _, inputs, outputs, _ in graph.nodes:
        assert all(graph.values[name].dtype == "float32" for name in (*inputs, *outputs))
