"""Which ONNX nodes ONNX Runtime's CPU provider has kernels for: it is asked, node by node.

Its list of kernels does not tell: float16 nodes without one run between casts, and a kernel may
refuse an attribute. So a model of one node is made and a session with it, a fifth of a millisecond
for each combination of operator, attributes, element types and ranks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from byocviz.building.lower.graph import Graph, Tensor, onnx_type
from byocviz.errors import last_line, missing

PROVIDER = "CPUExecutionProvider"

_MOST_KEPT = 4096

_known: dict[tuple[Any, ...], str] = {}
"""What ONNX Runtime said of a kind of node, as long as the process lives; "" where it has one."""


def needed() -> None:
    """Raises `MissingPackage` where ONNX Runtime is not installed."""
    try:
        import onnxruntime  # noqa: F401
    except ImportError as error:
        raise missing("onnxruntime", "relax", "to ask what it runs on the CPU") from error


def without_kernel(graph: Graph) -> Iterator[tuple[str, str, str]]:
    """The nodes that ONNX Runtime cannot run: the Relax operator, the ONNX node with its element
    types, as ``Conv of float64, float64``, and what ONNX Runtime says."""
    for name, operator, inputs, outputs, attributes in graph.nodes:
        given = [graph.values[i] if i else None for i in inputs]
        made = [graph.values[o] for o in outputs]
        said = _said(operator, graph.opset, given, made, attributes)
        if said:
            types = ", ".join(i.dtype for i in given if i is not None)
            yield graph.owners[name][1], f"{operator} of {types}" if types else operator, said


def _said(
    operator: str,
    opset: int,
    inputs: list[Tensor | None],
    outputs: list[Tensor],
    attributes: dict[str, Any],
) -> str:
    kinds = tuple((i.dtype, None if i.shape is None else len(i.shape)) if i else None
                  for i in inputs)  # fmt: skip
    key = (
        operator, opset, kinds, tuple(o.dtype for o in outputs), repr(sorted(attributes.items()))
    )  # fmt: skip
    known = _known.get(key)
    if known is None:
        if len(_known) >= _MOST_KEPT:
            _known.clear()
        known = _late(operator, inputs, attributes)
        known = _known[key] = known or _ask(operator, opset, inputs, outputs, attributes)
    return known


def _late(operator: str, inputs: list[Tensor | None], attributes: dict[str, Any]) -> str:
    """What ONNX Runtime builds and refuses only when it runs (found by running every converter's
    test with every element type in 1.32)."""
    dtype = inputs[0].dtype if inputs and inputs[0] is not None else ""
    if (
        operator in ("ScatterElements", "ScatterND")
        and attributes.get("reduction", "none") != "none"
        and dtype in ("float16", "bfloat16")
    ):
        return f"{dtype} is not supported with a reduction"
    return ""


def _ask(
    operator: str,
    opset: int,
    inputs: list[Tensor | None],
    outputs: list[Tensor],
    attributes: dict[str, Any],
) -> str:
    import onnxruntime as ort

    settings = ort.SessionOptions()
    settings.log_severity_level = 4  # what fails is raised, and said once
    settings.intra_op_num_threads = 1
    settings.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    model = _model(operator, opset, inputs, outputs, attributes)
    try:
        ort.InferenceSession(model.SerializeToString(), settings, providers=[PROVIDER])
    except Exception as error:
        return last_line(error)
    return ""


def _model(
    operator: str,
    opset: int,
    inputs: list[Tensor | None],
    outputs: list[Tensor],
    attributes: dict[str, Any],
) -> Any:
    """A model of one node. Constants are inputs of it: their values choose no kernel."""
    from onnx import helper

    def info(tensor: Tensor, shape: Any) -> Any:
        return helper.make_tensor_value_info(tensor.name, onnx_type(tensor.dtype), shape)

    entering = {i.name: info(i, i.shape) for i in inputs if i is not None}
    names = [i.name if i is not None else "" for i in inputs]
    while names and not names[-1]:
        names.pop()
    node = helper.make_node(operator, names, [o.name for o in outputs], name="n", **attributes)
    graph = helper.make_graph(
        [node], "node", list(entering.values()), [info(o, None) for o in outputs]
    )
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9 if opset < 21 else 10
    )
