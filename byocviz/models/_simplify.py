"""An ONNX model made ready for TVM's importer: input shapes fixed, constant arithmetic folded.

Why onnxslim: it is plain Python with wheels for every Python that TVM has (onnxsim 0.8 needs
3.11), keeps node names, and its fusions can be switched off, so that what is drawn is the
person's model and not an optimiser's. Its symbolic shape inference is not used: it merges a
symbolic dimension with the fixed one that it is broadcast with, which is wrong where the symbolic
one is 1. ONNX's own inference, run between the rounds, does not.
"""

from __future__ import annotations

import heapq
import importlib
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from byocviz.errors import ModelError, missing
from byocviz.models._bulk import Weights
from byocviz.models._graph import all_nodes, reads

Shape = Sequence["int | str | None"]

_ROUNDS = 10
_SKIP = ["graph_fusion", "subexpression_elimination", "weight_tying"]
_TOO_LARGE = 1 << 31  # protobuf's own limit, in bytes


def real_inputs(graph: Any) -> list[Any]:
    """The inputs that a caller gives: before ONNX IR 4, initializers are listed there too."""
    held = {tensor.name for tensor in graph.initializer}
    return [value for value in graph.input if value.name not in held]


def dims(value: Any) -> list[int | str | None] | None:
    """Shape of a ``ValueInfoProto``: a size, a symbol's name or None each; None: rank unknown."""
    tensor = value.type.tensor_type
    if not tensor.HasField("shape"):
        return None
    return [d.dim_value if d.dim_value > 0 else (d.dim_param or None) for d in tensor.shape.dim]


def shape_text(shape: Shape | None) -> str:
    if shape is None:
        return "(rank unknown)"
    return "(" + ", ".join("?" if d is None else str(d) for d in shape) + ")"


def symbolic_inputs(graph: Any) -> dict[str, str]:
    """Inputs with a dimension that is not fixed, with their shapes as text."""
    found = {}
    for value in real_inputs(graph):
        shape = dims(value)
        if shape is None or any(not isinstance(d, int) for d in shape):
            found[value.name] = shape_text(shape)
    return found


def fix_shapes(model: Any, shapes: Mapping[str, Shape] | None) -> None:
    """Write the caller's input shapes into ``model``, in place.

    A dimension given as a string or None stays symbolic. The same symbol in another input gets
    the same size. Raises `ModelError` for an unknown input, another rank, a size that the model
    has fixed otherwise, or an input of unknown rank that stays so.
    """
    graph = model.graph
    inputs = {value.name: value for value in real_inputs(graph)}
    sizes: dict[str, int] = {}
    changed = False
    for name, wanted in (shapes or {}).items():
        if name not in inputs:
            raise ModelError(
                f"The model has no input {name!r}.", f"Its inputs: {', '.join(inputs) or 'none'}."
            )
        changed |= _fix_one(inputs[name], list(wanted), sizes)
    for value in inputs.values():
        if not value.type.HasField("tensor_type"):
            continue
        if not value.type.tensor_type.HasField("shape"):
            raise ModelError(
                f"Input {value.name!r} has no shape, not even a rank.",
                f"Say it: shapes={{{value.name!r}: (1, 3, 224, 224)}} with your own sizes; a "
                "dimension may stay symbolic: ('N', 3, 224, 224).",
            )
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if dim.dim_param in sizes:
                dim.dim_value = sizes[dim.dim_param]
                changed = True
            elif dim.dim_value <= 0 and not dim.dim_param:
                # TVM would warn of each and treat all as one; a name of its own is exact.
                dim.dim_param = f"{value.name}_d{axis}"
    if changed:
        # What was inferred for the symbolic shape says too little now.
        del graph.value_info[:]
        for value in graph.output:
            for dim in value.type.tensor_type.shape.dim:
                if dim.dim_param in sizes:
                    dim.dim_value = sizes[dim.dim_param]


def _fix_one(value: Any, wanted: list[int | str | None], sizes: dict[str, int]) -> bool:
    for d in wanted:
        # bool is an int, and numpy's integers are welcome.
        if isinstance(d, bool) or not (d is None or isinstance(d, str) or _is_size(d)):
            raise ModelError(
                f"The shape given for input {value.name!r} holds {d!r}.",
                "Each dimension is a positive whole number, or a name or None to stay symbolic.",
            )
    present = dims(value)
    tensor = value.type.tensor_type
    if present is None:
        for d in wanted:
            entry = tensor.shape.dim.add()
            if isinstance(d, str):
                entry.dim_param = d
            elif d is not None:
                entry.dim_value = int(d)
        tensor.shape.SetInParent()  # a rank of 0 is a shape too
        return True
    if len(present) != len(wanted):
        raise ModelError(
            f"Input {value.name!r} has {len(present)} dimensions, {shape_text(present)}; "
            f"the shape given has {len(wanted)}, {shape_text(wanted)}.",
            "Give one size a dimension.",
        )
    for axis, (old, new, entry) in enumerate(zip(present, wanted, tensor.shape.dim, strict=True)):
        if new is None or isinstance(new, str):
            continue
        size = int(new)
        if isinstance(old, int) and old != size:
            raise ModelError(
                f"Dimension {axis} of input {value.name!r} is {old} in the model, not {size}.",
                "Only a symbolic dimension can be fixed; export the model again for another size.",
            )
        if isinstance(old, str) and sizes.setdefault(old, size) != size:
            raise ModelError(
                f"The symbolic dimension {old!r} is given as {sizes[old]} and as {size}.",
                "Give the inputs that share it the same size.",
            )
        entry.dim_value = size
    return True


def _is_size(d: Any) -> bool:
    try:
        return bool(int(d) == d and d > 0)
    except (TypeError, ValueError):
        return False


def simplify(model: Any) -> tuple[Any, str]:
    """``model`` with its constant arithmetic folded, and a note: empty where that worked.

    Nodes that stay keep their names, outputs and order; nothing is fused or shared. The result
    has the same inputs, outputs and initial opset; where that could not be kept, ``model`` itself
    comes back with a note that says why. ``model`` is not changed.
    """
    import onnx

    try:
        onnxslim = importlib.import_module("onnxslim")  # it has no type hints to import
    except ImportError as error:
        raise missing("onnxslim", "relax", "to simplify an ONNX model") from error
    if model.ByteSize() >= _TOO_LARGE:
        return model, "the model is too large to fold (2 GB and more)"
    logger = logging.getLogger("onnxslim")
    level = logger.level
    try:
        slim = onnx.ModelProto()
        slim.CopyFrom(model)
        weights = Weights(model, slim.graph)
        for _ in range(_ROUNDS):
            count = len(slim.graph.node)
            slim = onnx.shape_inference.infer_shapes(slim, data_prop=True)
            slim = onnxslim.slim(slim, skip_optimizations=_SKIP, no_shape_infer=True)
            weights.graph = slim.graph
            if not weights.give_folded() and len(slim.graph.node) == count:
                break
        weights.give_all()
        _restore_signature(slim, model)
        _restore_order(slim, model)
        wrong = _differs(slim, model)
    except Exception as error:  # whatever a third party's pass raises, the model is still there
        return model, f"simplifying raised {type(error).__name__}: {str(error)[:200]}"
    finally:
        logger.setLevel(level)
    return (model, wrong) if wrong else (slim, "")


def _restore_signature(slim: Any, model: Any) -> None:
    """Unused inputs are part of what a caller gives; onnxslim drops them."""
    kept = {value.name: value for value in slim.graph.output}
    inputs = real_inputs(model.graph)
    del slim.graph.input[:]
    slim.graph.input.extend(inputs)
    if list(kept) == [value.name for value in model.graph.output]:
        del slim.graph.output[:]
        slim.graph.output.extend(model.graph.output)


def _restore_order(slim: Any, model: Any) -> None:
    """Put the nodes in the model's own order as far as their inputs allow."""
    place = {out: i for i, node in enumerate(model.graph.node) for out in node.output if out}
    nodes = list(slim.graph.node)
    maker = {out: i for i, node in enumerate(nodes) for out in node.output if out}
    waits = [
        {maker[name] for name in reads(node) if name in maker and maker[name] != i}
        for i, node in enumerate(nodes)
    ]
    wanted: dict[int, list[int]] = {}
    for i, before in enumerate(waits):
        for j in before:
            wanted.setdefault(j, []).append(i)
    rank = [
        min((place[o] for o in node.output if o in place), default=len(place)) for node in nodes
    ]
    ready = [(rank[i], i) for i, before in enumerate(waits) if not before]
    heapq.heapify(ready)
    order = []
    while ready:
        _, i = heapq.heappop(ready)
        order.append(i)
        for j in wanted.get(i, ()):
            waits[j].discard(i)
            if not waits[j]:
                heapq.heappush(ready, (rank[j], j))
    if len(order) == len(nodes):
        copies = [nodes[i] for i in order]
        slim.graph.ClearField("node")
        slim.graph.node.extend(copies)


def _differs(slim: Any, model: Any) -> str:
    """Why the simplified model cannot stand for the model; empty where it can."""
    import onnx

    if [v.name for v in slim.graph.output] != [v.name for v in model.graph.output]:
        return "simplifying changed the outputs"
    opsets = [
        {entry.domain: entry.version for entry in m.opset_import if entry.domain in ("", "ai.onnx")}
        for m in (slim, model)
    ]
    if opsets[0] != opsets[1]:
        return "simplifying changed the opset"
    known = {(node.domain, node.op_type) for node in all_nodes(model.graph)}
    for node in all_nodes(slim.graph):
        if (node.domain, node.op_type) not in known:
            return f"simplifying brought in the operator {node.op_type}"
    if not _valid(slim) and _valid(model):
        return "simplifying made a model that ONNX's checker refuses"
    before, after = (
        {v.name: dims(v) for v in onnx.shape_inference.infer_shapes(m, data_prop=True).graph.output}
        for m in (model, slim)
    )
    for name, old in before.items():
        new = after.get(name)
        if old is None or new is None:
            continue
        if len(old) != len(new) or any(
            isinstance(a, int) and isinstance(b, int) and a != b
            for a, b in zip(old, new, strict=True)
        ):
            return (
                f"simplifying changed the shape of output {name!r} from {shape_text(old)} "
                f"to {shape_text(new)}"
            )
    return ""


def _valid(model: Any) -> bool:
    import onnx

    try:
        onnx.checker.check_model(model)
    except Exception:  # it raises its own error, and protobuf's
        return False
    return True
