"""`load`: one function for every kind of model."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from byocviz.errors import ModelError
from byocviz.models._common import check_file, need_relax

if TYPE_CHECKING:
    import tvm

_SUFFIXES = {
    ".onnx": "onnx",
    ".tflite": "tflite",
    ".pt2": "torch",
    ".json": "tvm",
}
_READS = "Reads .onnx, .tflite, .pt2 (torch.export.save) and .json (tvm.ir.save_json)."
_OTHERS = {
    ".pt": "A .pt file is a pickle. Export the model: torch.export.save(torch.export.export("
    "model, inputs), 'model.pt2').",
    ".pth": "A .pth file holds weights only. Export the model: torch.export.save("
    "torch.export.export(model, inputs), 'model.pt2').",
    ".py": "TVMScript is Python and is not run. Save the module as text: tvm.ir.save_json(mod).",
    ".so": "A compiled module cannot be recorded; give the IRModule that it was built from.",
    ".h5": "Convert a Keras model to ONNX (tf2onnx) or TFLite first.",
    ".keras": "Convert a Keras model to ONNX (tf2onnx) or TFLite first.",
    ".pb": "Convert a TensorFlow graph to ONNX (tf2onnx) or TFLite first.",
}


def load(
    path_or_model: Any,
    *,
    shapes: Mapping[str, Any] | None = None,
    dtypes: Mapping[str, str] | None = None,
) -> tvm.IRModule:
    """A Relax ``IRModule`` from whatever holds a model.

    Takes an ``IRModule`` (returned as it is), what `byocviz.models.gluoncv` gives (its Relay
    module; `weights` gives what comes with it), an ``onnx.ModelProto``, an ``ExportedProgram``, a
    ``tflite.Model``, or the path of a ``.onnx``, ``.tflite``, ``.pt2`` or ``.json`` file; a file
    with another suffix is read by what it starts with. ``shapes`` and ``dtypes`` are those of
    inputs by name; they apply to ONNX and TFLite.

    Raises `ModelError` for what is none of these or cannot be read, `MissingPackage` where a
    package for it is not installed.
    """
    kind = _kind(path_or_model)
    if kind in ("module", "gluon", "torch", "tvm") and (shapes or dtypes):
        raise ModelError(
            "shapes and dtypes apply to ONNX and TFLite models only.",
            "Leave them out; a PyTorch program takes its shapes from torch.export.export, and a "
            "TVM module has its own.",
        )
    if kind == "module":
        return path_or_model
    if kind == "gluon":
        return path_or_model.mod
    if kind == "onnx":
        from byocviz.models.onnx import from_onnx

        return from_onnx(path_or_model, shapes=shapes, dtypes=dtypes)
    if kind == "tflite":
        from byocviz.models.tflite import from_tflite

        return from_tflite(path_or_model, shapes=shapes, dtypes=dtypes)
    if kind == "torch":
        from byocviz.models.torch import from_torch

        return from_torch(path_or_model)
    from byocviz.models.tvm_module import from_tvm

    return from_tvm(path_or_model)


def weights(model: Any) -> dict[str, Any] | None:
    """The weights that a model brings along, by the name of the parameter; None: it has none that
    are not in its module."""
    found: dict[str, Any] | None = model.params if _is_gluon(model) else None
    return found


def _is_gluon(model: Any) -> bool:
    return any(
        (cls.__module__.partition(".")[0], cls.__name__) == ("byocviz", "GluonModel")
        for cls in type(model).__mro__
    )


def _kind(model: Any) -> str:
    if isinstance(model, (str, os.PathLike)):
        return _kind_of_file(model)
    if _is_gluon(model):
        return "gluon"
    # By name and not by class: to ask for the class would import PyTorch and ONNX.
    for cls in type(model).__mro__:
        origin = (cls.__module__.partition(".")[0], cls.__name__)
        if origin == ("onnx", "ModelProto"):
            return "onnx"
        if origin == ("torch", "ExportedProgram"):
            return "torch"
        if origin == ("tflite", "Model"):
            return "tflite"
        if origin == ("torch", "Module"):
            raise ModelError(
                "A torch.nn.Module has no graph yet.",
                "Export it first: torch.export.export(model.eval(), example_inputs).",
            )
    tvm = need_relax("to import a model")
    if isinstance(model, tvm.IRModule):
        return "module"
    raise ModelError(
        f"A model cannot be made from {type(model).__module__}.{type(model).__name__}.",
        f"Give an IRModule, a ModelProto, an ExportedProgram, or a path. {_READS}",
    )


def _kind_of_file(name: str | os.PathLike[str]) -> str:
    path = check_file(name, "a model")
    suffix = path.suffix.lower()
    if suffix in _SUFFIXES:
        return _SUFFIXES[suffix]
    if suffix in _OTHERS:
        raise ModelError(f"{path} cannot be read as a model.", f"{_OTHERS[suffix]} {_READS}")
    found = next((kind for kind, is_it in _SIGNS if is_it(_head(path))), None)
    if found is None:
        raise ModelError(f"{path} is of no kind that byocviz reads.", _READS)
    return found


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(64)


_SIGNS: list[tuple[str, Callable[[bytes], bool]]] = [
    ("tflite", lambda head: head[4:8] == b"TFL3"),
    ("torch", lambda head: head[:4] == b"PK\x03\x04"),
    ("tvm", lambda head: head.lstrip()[:1] == b"{"),
    # Field 1 of a ModelProto: its IR version, a varint of one byte that is small.
    ("onnx", lambda head: len(head) > 2 and head[0] == 0x08 and 0 < head[1] < 0x40),
]
