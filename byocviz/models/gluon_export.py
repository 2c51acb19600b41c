"""A network of GluonCV as an ONNX file, its detections per class as MXNet finds them.

MXNet's own exporter writes what comes before the non-maximum suppression. Its converter of
``box_nms`` ignores the class of a box, so that is written here.
"""

from __future__ import annotations

import ast
import json
import logging
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from byocviz.errors import ByocvizError, ModelError, missing
from byocviz.models._common import first_lines
from byocviz.models._detector import METADATA
from byocviz.models.gluon_network import INPUT, SSD, Network, frameworks, network

OPSET = 13
"""The newest that MXNet's exporter knows."""

_IR_VERSION = 8
_OUTPUTS = ("ids", "scores", "boxes")


def export_gluoncv(
    path: str | os.PathLike[str],
    name: str | Network = SSD,
    *,
    pretrained: bool = True,
    weights: str | os.PathLike[str] | None = None,
    seed: int = 0,
    shape: Sequence[int] | None = None,
) -> Path:
    """Write a network of GluonCV's model zoo as ONNX, for `byocviz.models.load`.

    ``name`` may be a `Network` that is made already; the other arguments are those of
    `byocviz.models.gluoncv`. The input is ``data``, float32 of the network's shape. A detector's
    outputs are ``ids`` [1, n, 1], ``scores`` [1, n, 1] and ``boxes`` [1, n, 4] as GluonCV gives
    them, and the file says how photos go in and boxes come out (`byocviz.models.detector`).

    Needs no TVM. Returns the path. Raises `ModelError` as `byocviz.models.gluoncv` does, and for a
    network that cannot be written as ONNX; `MissingPackage` where GluonCV, MXNet or onnx is not
    installed; `ByocvizError` where the file cannot be written.
    """
    try:
        import onnx
    except ImportError as error:
        raise missing("onnx", "gluoncv", "to write an ONNX model") from error
    frameworks()
    if not hasattr(onnx, "mapping"):
        raise ModelError(
            f"MXNet's exporter does not work with onnx {onnx.__version__}.",
            "pip install 'onnx>=1.12,<1.17'",
        )
    made = (
        name
        if isinstance(name, Network)
        else network(name, pretrained=pretrained, weights=weights, seed=seed, shape=shape)
    )
    model = to_onnx(made)
    try:
        Path(path).write_bytes(model.SerializeToString())
    except OSError as error:
        raise ByocvizError(
            f"{os.fspath(path)} cannot be written: {error.strerror or error}",
            "Name a file with -o, in a folder that is there.",
        ) from error
    return Path(path)


def to_onnx(made: Network) -> Any:
    """The ``onnx.ModelProto`` of a network."""
    import mxnet
    from onnx import TensorProto, checker, helper

    outputs = made.block(mxnet.sym.var(INPUT))
    symbol = mxnet.sym.Group(list(outputs)) if isinstance(outputs, (list, tuple)) else outputs
    suppression = _suppression(made, symbol)
    if suppression is None:
        graph = _converted(made, symbol)
    else:
        graph = _converted(made, symbol.get_internals()[suppression.source])
        before = graph.output[0].name
        nodes, added = suppression.written(before)
        graph.node.extend(nodes)
        graph.initializer.extend(added)
        del graph.output[:]
        rows = suppression.rows
        for output, width in zip(_OUTPUTS, (1, 1, 4), strict=True):
            shape = (1, rows, width)
            graph.output.append(helper.make_tensor_value_info(output, TensorProto.FLOAT, shape))
    # MXNet's exporter lists weights among the inputs too, and leaves some that nothing reads.
    read = {name for node in graph.node for name in node.input}
    constants = [one for one in graph.initializer if one.name in read]
    values = {one.name for one in graph.initializer}
    del graph.initializer[:]
    graph.initializer.extend(constants)
    inputs = [one for one in graph.input if one.name not in values]
    del graph.input[:]
    graph.input.extend(inputs)
    graph.name = made.name
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=_IR_VERSION
    )
    model.producer_name = "byocviz"
    if made.detector is not None:
        helper.set_model_props(model, {METADATA: made.detector.metadata()})
    try:
        checker.check_model(model)
    except checker.ValidationError as error:
        raise _refused(made, error) from error
    return model


def _converted(made: Network, symbol: Any) -> Any:
    """MXNet's own conversion, as an ONNX GraphProto."""
    import mxnet
    from mxnet.onnx.mx2onnx._export_onnx import MXNetGraph
    from onnx import TensorProto

    used = {*symbol.list_arguments(), *symbol.list_auxiliary_states()}
    weights = {name: value for name, value in made.parameters().items() if name in used}
    for name in _ignored_scales(symbol):
        # MXNet takes 1 in their place; its exporter writes what they hold.
        weights[name] = mxnet.nd.ones_like(weights[name])
    loud = logging.getLogger()
    level = loud.level
    loud.setLevel(logging.ERROR)
    try:
        # Not export_model: that writes the newest opset of the onnx that is installed into the
        # file, whatever its converters speak.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it calls onnx in ways that onnx warns of
            return MXNetGraph().create_onnx_graph_proto(
                symbol,
                weights,
                [made.shape],
                [TensorProto.FLOAT],
                opset_version=OPSET,
                dynamic=False,
            )
    except Exception as error:  # AttributeError for an operator without a converter, and others
        raise _refused(made, error) from error
    finally:
        loud.setLevel(level)


def _ignored_scales(symbol: Any) -> set[str]:
    """Parameters that batch norms with ``fix_gamma``, which is the default, do not read."""
    nodes = json.loads(symbol.tojson())["nodes"]
    return {
        nodes[node["inputs"][1][0]]["name"]
        for node in nodes
        if node["op"] == "BatchNorm" and _literal(node.get("attrs", {}).get("fix_gamma", "True"))
    }


def _refused(made: Network, error: Exception) -> ModelError:
    return ModelError(
        f"{made.name} cannot be written as ONNX: {first_lines(error, 300)}",
        "Take it straight to Relay (byocviz.models.gluoncv), or another network.",
    )


@dataclass(frozen=True)
class _Suppression:
    """A ``box_nms`` of MXNet that ends a network, and how much of it is taken."""

    source: str
    """The symbol that it reads: boxes [1, m, 6] as id, score, left, top, right, bottom."""
    rows: int
    """How many rows come out."""
    candidates: int
    """How many of the best are looked at."""
    overlap: float
    """Boxes of one class that overlap by more than this share are one thing."""
    least: float
    """What scores no more than this is nothing."""
    classes: int
    """By how many classes boxes are told apart; 1: not at all."""

    def written(self, before: str) -> tuple[list[Any], list[Any]]:
        """ONNX nodes from the tensor ``before`` to the three outputs, and their constants.

        The best candidates are taken, then ONNX's NonMaxSuppression, which knows classes: a box
        scores in its own class and 0 in all others. What it selects is a set; a mask over the
        candidates, whose order is that of the scores, brings it into order. The mask does not
        care for what pads the selection: rows of zeros name the best candidate, which nothing can
        suppress.
        """
        import numpy as np
        from onnx import helper, numpy_helper

        nodes: list[Any] = []
        constants: list[Any] = []

        def constant(name: str, value: Any) -> str:
            constants.append(numpy_helper.from_array(np.asarray(value), f"nms_{name}"))
            return f"nms_{name}"

        def add(kind: str, inputs: Sequence[str], output: str, **attributes: Any) -> str:
            out = output if output in _OUTPUTS else f"nms_{output}"
            nodes.append(helper.make_node(kind, inputs, [out], name=out, **attributes))
            return out

        def best(scores: str, count: int, name: str) -> tuple[str, str]:
            outs = [f"nms_{name}_values", f"nms_{name}_places"]
            many = constant(f"{name}_count", np.array([count], np.int64))
            nodes.append(helper.make_node("TopK", [scores, many], outs, name=f"nms_{name}"))
            return outs[0], outs[1]

        def columns(rows: str, first: int, past: int, output: str, axis: int = 1) -> str:
            bounds = [
                constant(f"{output}_{what}", np.array([value], np.int64))
                for what, value in (("first", first), ("past", past), ("axis", axis))
            ]
            return add("Slice", [rows, *bounds], output)

        flat = constant("flat", np.array([-1], np.int64))
        first_axis = constant("axis0", np.array([0], np.int64))
        all_rows = add("Squeeze", [before, first_axis], "rows")
        all_scores = add("Reshape", [columns(all_rows, 1, 2, "all_scores"), flat], "all_flat")
        scores, places = best(all_scores, self.candidates, "candidates")
        rows = add("Gather", [all_rows, places], "candidate_rows", axis=0)
        boxes = add("Unsqueeze", [columns(rows, 2, 6, "corners"), first_axis], "corners_1")
        by_class = constant("one_class", np.array([1, -1], np.int64))
        if self.classes == 1:
            per_class = add("Reshape", [scores, by_class], "class_scores")
        else:
            ids = add("Reshape", [columns(rows, 0, 1, "ids_column"), by_class], "ids_row")
            numbers = np.arange(self.classes, dtype=np.float32).reshape(-1, 1)
            own = add("Equal", [ids, constant("classes", numbers)], "own_class")
            nothing = constant("nothing", np.float32(0))
            per_class = add("Where", [own, scores, nothing], "class_scores")
        selected = add(
            "NonMaxSuppression",
            [
                boxes,
                add("Unsqueeze", [per_class, first_axis], "class_scores_1"),
                constant("most", np.array([self.candidates], np.int64)),
                constant("overlap", np.array([self.overlap], np.float32)),
                constant("least", np.array([self.least], np.float32)),
            ],
            "selected",
        )
        chosen = add("Reshape", [columns(selected, 2, 3, "selected_column"), flat], "chosen")
        mask = self._mask(add, constant, chosen)
        valid = add("Greater", [scores, constant("threshold", np.float32(self.least))], "valid")
        kept = add("And", [mask, valid], "kept")
        # Earlier candidates score higher; those that are out come last.
        order = np.arange(self.candidates, 0, -1, dtype=np.float32)
        out = constant("out", np.float32(-1))
        rank = add("Where", [kept, constant("order", order), out], "rank")
        ranks, found = best(rank, self.rows, "found")
        found_rows = add("Gather", [rows, found], "found_rows", axis=0)
        there = add("Greater", [ranks, constant("zero", np.float32(0))], "there")
        column = constant("column", np.array([-1, 1], np.int64))
        there = add("Reshape", [there, column], "there_column")
        result = add("Where", [there, found_rows, out], "result")
        result = add("Unsqueeze", [result, first_axis], "result_1")
        for output, first, past in zip(_OUTPUTS, (0, 1, 2), (1, 2, 6), strict=True):
            columns(result, first, past, output, axis=2)
        return nodes, constants

    def _mask(self, add: Any, constant: Any, chosen: str) -> str:
        """Which candidates are among the chosen ones."""
        import numpy as np

        column = constant("chosen_column", np.array([-1, 1], np.int64))
        places = constant("places", np.arange(self.candidates, dtype=np.int64))
        same = add("Equal", [add("Reshape", [chosen, column], "chosen_rows"), places], "same")
        ones = add("Cast", [same], "same_number", to=1)
        over = constant("over_chosen", np.array([0], np.int64))
        # A sum: of no row at all, which is what nothing found gives, it is 0.
        times = add("ReduceSum", [ones, over], "times_chosen", keepdims=0)
        return str(add("Greater", [times, constant("half", np.float32(0.5))], "mask"))


def _suppression(made: Network, symbol: Any) -> _Suppression | None:
    """The ``box_nms`` before the outputs; None for a network without one."""
    read = json.loads(symbol.tojson())
    nodes = read["nodes"]
    found = [i for i, node in enumerate(nodes) if node["op"] == "_contrib_box_nms"]
    if not found:
        return None
    limits = {_taken(made, nodes, head, found[0]) for head in map(tuple, read["heads"])}
    attributes = nodes[found[0]].get("attrs", {})
    options = {key: _literal(value) for key, value in attributes.items()}
    rows = next(iter(limits))
    candidates = int(options.get("topk", -1))
    expected = {
        "coord_start": 2,
        "score_index": 1,
        "background_id": -1,
        "in_format": "corner",
        "out_format": "corner",
    }
    strange = [key for key, value in expected.items() if options.get(key, value) != value]
    if len(found) > 1 or len(limits) > 1 or strange or candidates < 1 or not 0 < rows <= candidates:
        raise _refused(made, ValueError(f"its box_nms is of an unknown form: {attributes}"))
    told_apart = int(options.get("id_index", -1)) == 0 and not options.get("force_suppress")
    source = nodes[nodes[found[0]]["inputs"][0][0]]["name"]
    return _Suppression(
        source=f"{source}_output",
        rows=rows,
        candidates=candidates,
        overlap=float(options.get("overlap_thresh", 0.5)),
        least=float(options.get("valid_thresh", 0.0)),
        classes=len(made.classes) if told_apart else 1,
    )


def _taken(made: Network, nodes: list[Any], head: tuple[int, ...], suppression: int) -> int:
    """How many rows an output has: it is cut out of the ``box_nms``, and nothing else is done."""
    at, rows = head[0], 0
    while at != suppression:
        node = nodes[at]
        if node["op"] != "slice_axis":
            raise _refused(made, ValueError(f"after its box_nms comes a {node['op']}"))
        cut = {key: _literal(value) for key, value in node["attrs"].items()}
        if cut["axis"] == 1:
            rows = int(cut["end"]) if cut["begin"] == 0 and cut["end"] is not None else 0
        at = node["inputs"][0][0]
    return rows


def _literal(text: str) -> Any:
    """The value of an attribute in a symbol's JSON."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
