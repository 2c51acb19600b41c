"""A Relay function as one ONNX model: its edges, its parts, what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from tests.relay import needs_relay

needs_relay()

import tvm  # noqa: E402
from tvm import relay  # noqa: E402

import byocviz  # noqa: E402
from byocviz.building.errors import LoweringError  # noqa: E402
from byocviz.building.relay.lower import check, converter, converters, lower  # noqa: E402
from byocviz.building.relay.lower.registry import REGISTRY  # noqa: E402
from byocviz.errors import ModuleError  # noqa: E402
from byocviz.flow.relay.verify import run_module  # noqa: E402
from tests.building.relay.lab import run_onnx  # noqa: E402
from tests.corpus_relay.case import const, conv, main, x  # noqa: E402


def typed(result: Any) -> tvm.IRModule:
    return relay.transform.InferType()(main(result))


def agree(module: tvm.IRModule, function: Any = None, seed: int = 0) -> None:
    """The entry in TVM and its model in ONNX Runtime give the same."""
    lowered = lower(function or module["main"], module=module)
    onnx.checker.check_model(lowered.model, full_check=True)
    rng = np.random.default_rng(seed)
    values = {p.name: rng.standard_normal(p.shape).astype(p.dtype) for p in lowered.inputs}
    given = run_onnx(lowered, list(values.values()))
    names = [str(p.name_hint) for p in module["main"].params]
    inputs = dict(zip(names, values.values(), strict=True))
    (wanted,) = run_module(module, "main", [inputs])
    for one, other in zip(given, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_tuples_come_apart_at_the_edges() -> None:
    kind = relay.TupleType([relay.TensorType((2, 3)), relay.TensorType((4,))])
    pair = relay.var("pair", type_annotation=kind)
    inner = relay.Tuple([relay.nn.relu(relay.TupleGetItem(pair, 0)), relay.TupleGetItem(pair, 1)])
    module = typed(relay.Tuple([inner, relay.tanh(relay.TupleGetItem(inner, 1))]))
    lowered = lower(module["main"])
    assert [(p.name, p.parameter, p.path) for p in lowered.inputs] == [
        ("pair_0", 0, (0,)),
        ("pair_1", 0, (1,)),
    ]
    assert [p.path for p in lowered.outputs] == [(0, 0), (0, 1), (1,)]
    assert lowered.tuple_output


@pytest.mark.parametrize(
    "make",
    [
        lambda: x(),
        lambda: relay.Tuple([x("b"), x("a"), const((2,), 1)]),
        lambda: relay.Tuple([relay.nn.relu(x()), relay.nn.relu(x("y"))]),
        lambda: conv(conv(x("p0"), 1), 2),
        lambda: relay.add(relay.nn.relu(x("a/b:c")), x("a b c")),
    ],
)
def test_any_result_and_any_name(make: Any) -> None:
    agree(typed(make()))


def test_lets_and_functions_are_followed() -> None:
    a, b = relay.var("a"), relay.var("b")
    agree(typed(relay.Let(a, conv(x()), relay.Let(b, relay.nn.relu(a), relay.add(b, a)))))
    module, y = tvm.IRModule(), x("y")
    helper = relay.GlobalVar("helper")
    module[helper] = relay.Function([y], relay.nn.relu(conv(y)), relay.TensorType((1, 4, 8, 8)))
    data = x()
    module["main"] = relay.Function([data], relay.tanh(relay.Call(helper, [data])))
    agree(relay.transform.InferType()(module))


def test_each_call_of_a_composite_function_is_written() -> None:
    y = x("y")
    function = relay.Function([y], relay.nn.relu(conv(y))).with_attr("Composite", "tensorrt.mine")
    data = x()
    module = typed(relay.Call(function, [relay.Call(function, [data])]))
    agree(module)
    assert [n.op_type for n in lower(module["main"]).model.graph.node].count("Conv") == 2


def test_a_constant_is_written_once() -> None:
    bias = const((1, 4, 1, 1), 1)
    module = typed(relay.add(relay.add(x(), bias), bias))
    assert len(lower(module["main"]).model.graph.initializer) == 1


def test_a_deep_function_is_no_trouble() -> None:
    value: Any = x(shape=(1, 4))
    for _ in range(1500):  # more than Python's own limit; TVM's passes recurse in C++
        value = relay.nn.relu(value)
    assert len(lower(typed(value)["main"]).model.graph.node) == 1500


def test_ids_lead_back() -> None:
    recording = byocviz.record(main(relay.nn.relu(conv(x()))), prune=False, progress=False)
    (subgraph,) = recording.last.subgraphs
    function = recording.module("prune")[subgraph.function]
    lowered = lower(function, operators=subgraph.op_ids)
    assert list(lowered.operators) == subgraph.op_ids == list(lower(function).operators)
    assert {lowered.calls[n] for n in lowered.operators[subgraph.op_ids[0]]} == {"nn.conv2d"}
    with pytest.raises(ModuleError, match="ids are given"):
        lower(function, operators=[1])


def _branches() -> Any:
    return relay.If(x("c", (), "bool"), relay.nn.relu(x()), x())


def _closure() -> Any:
    y = x("y")
    return relay.Call(relay.Function([y], relay.nn.relu(y)), [x()])


REFUSED = {
    "If": _branches,
    "local function": _closure,
    "no converter": lambda: relay.vision.multibox_prior(x()),
    "fixed shapes": lambda: relay.nn.relu(relay.var("x", shape=(relay.Any(), 3))),
    "batch_dims": lambda: relay.take(
        x(shape=(2, 3)), x("i", (2, 1), "int32"), axis=1, batch_dims=1
    ),
    "output_size": lambda: relay.nn.adaptive_max_pool2d(x(), output_size=(3, 3)),
    "float": lambda: relay.nn.conv2d(
        x(dtype="int8"), relay.var("w", shape=(4, 4, 1, 1), dtype="int8"), out_dtype="int32"
    ),
}


@pytest.mark.parametrize("said", REFUSED)
def test_what_has_no_equal_is_refused_with_the_cause(said: str) -> None:
    function = typed(REFUSED[said]())["main"]
    errors = check(function)
    assert errors
    assert any(said in str(error) for error in errors), [str(e) for e in errors]
    assert all(error.mend for error in errors)
    with pytest.raises(LoweringError):
        lower(function)


def test_all_that_is_refused_is_told() -> None:
    made = relay.vision.multibox_prior(relay.nn.relu(x()))
    errors = check(typed(relay.Tuple([made, relay.vision.multibox_prior(x("y"))]))["main"])
    assert [e.operator for e in errors] == ["vision.multibox_prior"] * 2


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(ModuleError, match="Relay function"):
        lower(relay.const(1.0))
    with pytest.raises(ModuleError, match="opset"):
        lower(typed(x())["main"], opset=3)


def test_a_converter_of_one_s_own_wins() -> None:
    before = converters()["nn.relu"]

    @converter("nn.relu")
    def mine(g: Any, call: Any) -> Any:
        return g.add("Abs", call.tensor(0))

    try:
        (node,) = lower(typed(relay.nn.relu(x()))["main"]).model.graph.node
        assert node.op_type == "Abs"
    finally:
        REGISTRY._converters["nn.relu"] = before


def test_a_converter_that_fails_or_lies_is_named() -> None:
    before = converters()["nn.relu"]
    try:
        for made, said in (
            (lambda g, call: 1 / 0, "It failed"),
            (lambda g, call: g.ints([1]), "wrong"),
        ):
            made.__name__ = "odd"
            REGISTRY._converters["nn.relu"] = made
            with pytest.raises(LoweringError, match=said):
                lower(typed(relay.nn.relu(x()))["main"])
    finally:
        REGISTRY._converters["nn.relu"] = before
