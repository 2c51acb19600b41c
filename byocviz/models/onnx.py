"""ONNX in: a file or a ``ModelProto`` as a Relax module, each call with its node's name."""

from __future__ import annotations

import contextlib
import io
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from byocviz.errors import ByocvizError, ModelError, missing
from byocviz.models import _simplify
from byocviz.models._common import check_file, first_lines, need_relax
from byocviz.models._graph import all_nodes
from byocviz.models._names import attach_names, make_importer, node_name
from byocviz.models._source import Source, remember

if TYPE_CHECKING:
    import onnx
    import tvm

_LIMIT = (1 << 31) - 1  # what protobuf reads in one piece, in bytes


def from_onnx(
    model: str | os.PathLike[str] | onnx.ModelProto,
    *,
    shapes: Mapping[str, _simplify.Shape] | None = None,
    dtypes: Mapping[str, str] | None = None,
    simplify: bool = True,
) -> tvm.IRModule:
    """A Relax module with the function ``main``, weights bound as constants.

    ``shapes`` fixes symbolic input shapes, as ``{"image": (1, 3, 300, 300)}``; a dimension given
    as a string or None stays symbolic, and so do inputs that are not named. ``dtypes`` overrides
    input dtypes, as ``{"image": "float16"}``. With ``simplify``, arithmetic that is constant is
    folded before TVM sees it (onnxslim; nothing is fused); where that fails, a `UserWarning`
    says so and the model is imported as it is. The opset is the model's own.

    Each call's ``span.source_name.name`` is the ONNX node that it came from, or the name of that
    node's first output where it has none. A call has no span where that is not known.

    Raises `ModelError` for a file that is no ONNX model, is damaged, or lacks its external data;
    for shapes that do not fit; and for a model that TVM cannot import, naming the node.
    `MissingPackage` where ONNX, onnxslim or TVM is not installed.
    """
    need_relax("to import a model")
    try:
        import onnx
    except ImportError as error:
        raise missing("onnx", "relax", "to read an ONNX model") from error
    if isinstance(model, onnx.ModelProto):
        name = f"the ONNX model {model.graph.name!r}"
        proto = onnx.ModelProto()
        proto.CopyFrom(model)
    else:
        path = check_file(model, "an ONNX model", _LIMIT)
        name = str(path)
        proto = _read(path)
    _check(proto, name)
    _simplify.fix_shapes(proto, shapes)
    unknown = [key for key in dtypes or {} if key not in {v.name for v in proto.graph.input}]
    if unknown:
        raise ModelError(
            f"{name} has no input {unknown[0]!r}.",
            f"Its inputs: {', '.join(v.name for v in _simplify.real_inputs(proto.graph))}.",
        )
    source = _source(model, proto, shapes)
    ready, note = _simplify.simplify(proto) if simplify else (proto, "")
    if note:
        warnings.warn(f"{name} is imported without simplifying: {note}.", stacklevel=2)
    try:
        return remember(_import(ready, proto, name, dtypes), source)
    except ByocvizError:
        if ready is proto:
            raise
        # The folded form is normally the easier one; should it not be, the model itself counts.
        with contextlib.suppress(ByocvizError):
            return remember(_import(proto, proto, name, dtypes), source)
        raise


def _source(given: Any, proto: Any, shapes: Mapping[str, _simplify.Shape] | None) -> Source:
    """Gives ``proto`` again: a copy of what was given, or what is read anew of a file."""
    import onnx

    if isinstance(given, onnx.ModelProto):
        kept = onnx.ModelProto()
        kept.CopyFrom(proto)
        return lambda: kept
    path = Path(given).absolute()
    stamp = _stamp(path)

    def read() -> Any:
        found = _read(check_file(path, "an ONNX model", _LIMIT))
        if _stamp(path) != stamp:
            raise ModelError(f"{path} has changed since it was imported.", "Record it anew.")
        _simplify.fix_shapes(found, shapes)
        return found

    return read


def _stamp(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns


def _read(path: Path) -> Any:
    import onnx

    try:
        proto = onnx.load_model(path, format="protobuf", load_external_data=False)
    except Exception as error:  # protobuf raises its own DecodeError, or whatever it stumbles on
        raise ModelError(
            f"{path} is not an ONNX model, or it is cut off ({first_lines(error, 120)}).",
            "Fetch or export it again; byocviz.models.load reads other formats by their suffix.",
        ) from error
    # Random bytes can pass as a protobuf: what follows needs a model, not unknown fields.
    if _is_model(proto):
        try:
            onnx.load_external_data_for_model(proto, str(path.parent))
        except Exception as error:  # onnx raises its own checker's error and OS errors alike
            raise ModelError(
                f"The weights that {path} keeps in other files cannot be read: "
                f"{first_lines(error, 300)}",
                "Put the external data files beside the model, under the names that it gives.",
            ) from error
    return proto


def _is_model(proto: Any) -> bool:
    return bool(proto.ir_version and proto.HasField("graph") and proto.graph.output)


def _check(proto: Any, name: str) -> None:
    if not _is_model(proto):
        raise ModelError(
            f"{name} is not an ONNX model: it has no graph with an output.",
            "Fetch or export it again; byocviz.models.load reads other formats by their suffix.",
        )
    if proto.ir_version < 3:
        raise ModelError(
            f"{name} is of ONNX IR version {proto.ir_version}; TVM reads 3 and newer.",
            "Export it again with a newer exporter.",
        )
    for tensor in proto.graph.initializer:
        # EXTERNAL; reading a file turns it to DEFAULT, a ModelProto may not have been read.
        if tensor.data_location == 1:
            raise ModelError(
                f"The values of {tensor.name!r} in {name} are in another file and were not read.",
                "Give the path of the model, or load it by onnx.load(path), which reads them.",
            )


def _import(ready: Any, original: Any, name: str, dtypes: Mapping[str, str] | None) -> Any:
    import onnx
    from tvm.relax.frontend import onnx as frontend

    checked = ""
    try:
        onnx.checker.check_model(ready)
    except Exception as error:  # TVM may import it all the same; if not, this is the better lead
        checked = first_lines(error)
    importer: Any = None
    with _quiet():
        try:
            importer = _importer(dtypes)
        except Exception:  # other internals in this TVM: its public function does, without names
            importer = None
        try:
            if importer is None:
                return frontend.from_onnx(ready, dtype_dict=dict(dtypes) if dtypes else "float32")
            mod = importer.from_onnx(ready.graph, _opset(ready))
        except Exception as error:
            raise _failed(error, ready, original, importer, name, checked) from error
    return attach_names(mod, ready.graph, importer)


def _importer(dtypes: Mapping[str, str] | None) -> Any:
    from tvm.relax.frontend.onnx import onnx_frontend

    return make_importer(onnx_frontend.ONNXGraphImporter)(
        None, dict(dtypes) if dtypes else "float32", keep_params_in_input=False, sanitize=True
    )


def _opset(proto: Any) -> int:
    """Version of the default operator set; 1 where a model gives none, as TVM takes it."""
    for entry in proto.opset_import:
        if entry.domain in ("", "ai.onnx"):
            return int(entry.version)
    return 1


@contextlib.contextmanager
def _quiet() -> Any:
    """TVM's importer prints operands on failure and warns of each input that it renames."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.filterwarnings("ignore", module=r"tvm\.relax\.frontend")
        yield


def _failed(
    error: Exception, ready: Any, original: Any, importer: Any, name: str, checked: str
) -> ModelError:
    import tvm

    node = _unsupported(ready.graph)
    symbolic = _simplify.symbolic_inputs(ready.graph)
    if node is not None:
        what = f"TVM {tvm.__version__} has no converter for the operator {_operator(node)}"
        mend = "Export the model without it, or cut the model before it (onnx.utils.extract_model)."
    else:
        node = getattr(importer, "at", None)
        what = f"TVM {tvm.__version__} could not convert {_operator(node) if node else 'it'}"
        inner = getattr(importer, "op", "")
        if node is not None and node.op_type == "If" and inner and inner != "If":
            what += f" (its branch's {inner})"
        what += f": {first_lines(error)}"
        mend = "Export the model with another opset, or without this operator."
    if symbolic:
        shown = ", ".join(f"{key!r} {value}" for key, value in symbolic.items())
        example = ", ".join(f"{key!r}: (...)" for key in symbolic)
        mend = (
            f"Inputs with symbolic dimensions: {shown}. Fix them first, shapes={{{example}}}: "
            f"what then is constant is folded away. If it stays: {mend[0].lower()}{mend[1:]}"
        )
    if checked and node is None:
        what += f". ONNX's own checker says: {checked}"
    where = f", at {_place(node, ready, original)}" if node is not None else ""
    return ModelError(f"{name} cannot be imported{where}: {what}.", mend)


def _operator(node: Any) -> str:
    return f"{node.domain}::{node.op_type}" if node.domain else str(node.op_type)


def _place(node: Any, ready: Any, original: Any) -> str:
    """A node by name and by its index in the graph as the person has it."""
    for proto in (original, ready):
        for index, other in enumerate(proto.graph.node):
            # The outputs' names are unique in a graph; a node's name need not be.
            if other.output and node.output and other.output[0] == node.output[0]:
                return f"node {index}, {node_name(node)!r}"
    return f"the node {node_name(node)!r} (in a branch or body)"


def _unsupported(graph: Any) -> Any:
    """The first node, branches included, that TVM has no converter for."""
    try:
        from tvm.relax.frontend.onnx import onnx_frontend

        known = {*onnx_frontend._get_convert_map(), "If", "Constant"}
    except Exception:  # other internals: TVM's own message has to do
        return None
    return next((n for n in all_nodes(graph) if n.op_type not in known), None)
