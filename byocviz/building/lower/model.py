"""Writes the ONNX model of a graph that is done."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from byocviz.building.lower.call import plain
from byocviz.building.lower.graph import Graph, Tensor, onnx_type
from byocviz.building.lower.lowered import Lowered, Port

OPSETS = range(17, 22)
"""The opsets that the converters write."""

IR_VERSION = 9
"""The file format: read by every runtime that reads opset 17 to 21."""


def written(
    symbol: str,
    g: Graph,
    inputs: list[Port],
    results: Sequence[tuple[Port, Tensor]],
    tuple_output: bool,
) -> Lowered:
    """The model of a graph; ``results`` are the outputs with the values that they give."""
    import onnx
    from onnx import helper, numpy_helper

    from byocviz.version import __version__

    outputs = _name_outputs(g, results)
    nodes = [
        helper.make_node(op, ins, outs, name=name, **attributes)
        for name, op, ins, outs, attributes in g.nodes
    ]
    used = {name for _, _, ins, _, _ in g.nodes for name in ins}
    weights = [
        numpy_helper.from_array(constant.value(), name)
        for name, constant in g.constants.items()
        if name in used
    ]
    graph = helper.make_graph(
        nodes,
        clean(symbol),
        [_info(port) for port in inputs],
        [_info(port) for port in outputs],
        weights,
    )
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", g.opset)],
        ir_version=min(IR_VERSION if g.opset < 21 else 10, onnx.IR_VERSION),
        producer_name="byocviz",
        producer_version=__version__,
    )
    lowered = Lowered(symbol, model, g.opset, inputs, outputs, tuple_output)
    by_operator: dict[int, list[str]] = {}
    for name, *_ in g.nodes:
        identity, operator = g.owners[name]
        lowered.nodes[name] = (identity,) if identity >= 0 else ()
        lowered.calls[name] = operator
        if identity >= 0:
            by_operator.setdefault(identity, []).append(name)
    lowered.operators = {i: tuple(names) for i, names in by_operator.items()}
    return lowered


def _name_outputs(g: Graph, outputs: Sequence[tuple[Port, Tensor]]) -> list[Port]:
    """Give each output its name, by renaming the value or by a node that hands it on.

    An output's name is its own: an input, a constant or another output is copied.
    """
    made = {out for _, _, _, outs, _ in g.nodes for out in outs}
    renamed: dict[str, str] = {}
    for port, value in outputs:
        if value.name in made and value.name not in renamed:
            renamed[value.name] = port.name
        else:
            source = Tensor(renamed.get(value.name, value.name), value.dtype, value.shape)
            g.begin(-1, "identity")
            node = g.add("Identity", source, shape=value.shape)
            renamed[node.name] = port.name
    for _, _, inputs, outs, _ in g.nodes:
        inputs[:] = [renamed.get(name, name) for name in inputs]
        outs[:] = [renamed.get(name, name) for name in outs]
    return [port for port, _ in outputs]


def _info(port: Port) -> Any:
    from onnx import helper

    return helper.make_tensor_value_info(port.name, onnx_type(port.dtype), list(port.shape))


def clean(name: Any) -> str:
    """A name that every runtime takes."""
    return re.sub(r"[^A-Za-z0-9_.]", "_", plain(name)) or "value"
