"""TensorFlow Lite in: a ``.tflite`` file or its bytes."""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from byocviz.errors import ModelError, missing
from byocviz.models._common import check_file, first_lines, need_relax

if TYPE_CHECKING:
    import tvm

_LIMIT = (1 << 31) - 1  # a FlatBuffer's offsets are signed 32-bit
_MARK = b"TFL3"


def from_tflite(
    model: str | os.PathLike[str] | bytes | Any,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    dtypes: Mapping[str, str] | None = None,
) -> tvm.IRModule:
    """A Relax module with the function ``main``; the weights are constants in it.

    ``model`` is a path, the file's bytes, or a ``tflite.Model``. ``shapes`` and ``dtypes``
    override those of inputs by name.

    Raises `ModelError` for a file that is no TFLite model or is damaged, an unknown input, or a
    model that TVM cannot import; `MissingPackage` where ``tflite`` or TVM is not installed.
    """
    need_relax("to import a model")
    try:
        import tflite
    except ImportError as error:
        raise missing("tflite", "tflite", "to read a TFLite model") from error
    from tvm.relax.frontend.tflite import from_tflite as convert

    name = "the TFLite model"
    if isinstance(model, (str, os.PathLike)):
        path = check_file(model, "a TFLite model", _LIMIT)
        name = str(path)
        model = path.read_bytes()
    if isinstance(model, (bytes, bytearray, memoryview)):
        model = _parse(bytes(model), name)
    elif not isinstance(model, tflite.Model):
        raise ModelError(
            f"from_tflite takes a path, bytes or a tflite.Model, not {type(model).__name__}.",
            "Give the file that the TFLite converter wrote.",
        )
    try:
        known = _inputs(model)
    except Exception as error:  # the reader checks no offset: damage shows as any exception
        raise ModelError(
            f"{name} is damaged: its inputs cannot be read ({first_lines(error, 120)}).",
            "Fetch or convert it again.",
        ) from error
    for key in {**(shapes or {}), **(dtypes or {})}:
        if key not in known:
            raise ModelError(
                f"{name} has no input {key!r}.", f"Its inputs: {', '.join(known) or 'none'}."
            )
    try:
        return convert(
            model,
            {k: tuple(v) for k, v in shapes.items()} if shapes else None,
            dict(dtypes) if dtypes else None,
        )
    except Exception as error:
        raise ModelError(
            f"TVM could not import {name}: {first_lines(error)}",
            "The message names the operator where there is no converter for it; convert the model "
            "without it (no SELECT_TF_OPS), or convert to ONNX (tf2onnx) and use from_onnx.",
        ) from error


def _parse(data: bytes, name: str) -> Any:
    import tflite

    if data[4:8] != _MARK:
        raise ModelError(
            f"{name} is not a TFLite model: the mark TFL3 is not at its fourth byte.",
            "Give the file that the TFLite converter wrote; for others use byocviz.models.load.",
        )
    try:
        model = tflite.Model.GetRootAs(data, 0)
        if model.SubgraphsLength() < 1:
            raise ModelError(f"{name} has no subgraph.", "Convert the model again.")
        return model
    except (struct.error, IndexError, ValueError, TypeError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(
            f"{name} is damaged or cut off ({first_lines(error, 120)}).",
            "Fetch or convert it again.",
        ) from error


def _inputs(model: Any) -> list[str]:
    graph = model.Subgraphs(0)
    # Every tensor is touched once, so that a cut-off file fails here and not inside TVM.
    names = [graph.Tensors(i).Name().decode() for i in range(graph.TensorsLength())]
    for i in range(model.BuffersLength()):
        model.Buffers(i).DataAsNumpy()
    return [names[i] for i in graph.InputsAsNumpy()] if graph.InputsLength() else []
