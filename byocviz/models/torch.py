"""PyTorch in: a ``torch.export.ExportedProgram``, or a ``.pt2`` file of one."""

from __future__ import annotations

import contextlib
import os
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from byocviz.errors import ModelError, missing
from byocviz.models._common import check_file, first_lines, need_relax

if TYPE_CHECKING:
    import torch
    import tvm

_FORCE = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"
_lock = threading.Lock()


def from_torch(
    program: str | os.PathLike[str] | torch.export.ExportedProgram,
) -> tvm.IRModule:
    """A Relax module with the function ``main``, weights bound as constants.

    ``program`` is what ``torch.export.export`` returns, or the path of a ``.pt2`` file that
    ``torch.export.save`` wrote. Such a file can hold pickled objects, which run code when they
    are read: only tensors are read here, and a file with other objects is refused.

    Raises `ModelError` for anything else, a damaged file, or a program that TVM cannot import;
    `MissingPackage` where PyTorch or TVM is not installed.
    """
    need_relax("to import a model")
    try:
        import torch
    except ImportError as error:
        raise missing("torch", "torch", "to import a PyTorch program") from error
    from tvm.relax.frontend.torch import from_exported_program

    if isinstance(program, torch.export.ExportedProgram):
        name = "the exported program"
    elif isinstance(program, (str, os.PathLike)):
        path = check_file(program, "a PyTorch program")
        name = str(path)
        program = _read(path)
    else:
        raise ModelError(
            f"from_torch takes an ExportedProgram or a path, not {type(program).__name__}.",
            "Export the model first: torch.export.export(model.eval(), example_inputs).",
        )
    try:
        return from_exported_program(program)
    except Exception as error:
        raise ModelError(
            f"TVM could not import {name}: {first_lines(error)}",
            "The message names the operator where there is no converter for it; replace it in "
            "the model, or export to ONNX and use from_onnx.",
        ) from error


def _read(path: Path) -> Any:
    import torch

    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        raise ModelError(
            f"{path} is not a PyTorch program, or it is cut off ({error}).",
            "Save it again: torch.export.save(torch.export.export(model, inputs), 'model.pt2').",
        ) from error
    # These are read by pickle whatever is asked for; tensors are not.
    objects = [
        name
        for name in names
        if PurePosixPath(name).name.startswith(("custom_obj_", "opaque_obj_"))
    ]
    if objects:
        raise ModelError(
            f"{path} holds pickled objects ({objects[0]}), which could run code when read.",
            "If you trust it, read it yourself: from_torch(torch.export.load(path)).",
        )
    try:
        with _tensors_only():
            return torch.export.load(path)
    except Exception as error:
        raise ModelError(
            f"{path} cannot be read as a PyTorch {torch.__version__} program: {first_lines(error)}",
            "Save it again with torch.export.save by this version of PyTorch; if it holds other "
            "objects than tensors and you trust it: from_torch(torch.export.load(path)).",
        ) from error


@contextlib.contextmanager
def _tensors_only() -> Iterator[None]:
    """Make ``torch.load`` refuse all but tensors: ``torch.export.load`` has no such option."""
    with _lock:
        before = os.environ.get(_FORCE)
        os.environ[_FORCE] = "1"
        try:
            yield
        finally:
            if before is None:
                del os.environ[_FORCE]
            else:
                os.environ[_FORCE] = before
