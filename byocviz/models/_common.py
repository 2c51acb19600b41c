"""What every loader needs: files that are checked before they are read, and TVM itself."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from byocviz.errors import ModelError, missing

_LFS = b"version https://git-lfs"


def need_relax(why: str) -> Any:
    """The module ``tvm``, where it has Relax; `MissingPackage` otherwise."""
    try:
        import tvm
        import tvm.relax
    except ImportError as error:
        raise missing("apache-tvm with Relax (0.26 or newer)", "relax", why) from error
    return tvm


def check_file(path: str | os.PathLike[str], kind: str, limit: int | None = None) -> Path:
    """The path, once it is known to be a readable file that is not empty and not too large.

    ``kind`` is what it should be, for the message ("an ONNX model"). ``limit`` is in bytes.
    """
    if not os.fspath(path):
        raise ModelError(f"The path of {kind} is empty.", "Give the path of a file.")
    path = Path(path)
    try:
        size = path.stat().st_size
        if path.is_dir():
            raise ModelError(f"{path} is a folder, not {kind}.", "Give the path of a file.")
        with path.open("rb") as file:
            head = file.read(len(_LFS))
    except FileNotFoundError as error:
        raise ModelError(f"There is no file {path}.", "Check the path.") from error
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} cannot be read: {error}", "Check the path.") from error
    if size == 0:
        raise ModelError(f"{path} is empty (0 bytes), not {kind}.", "Fetch or export it again.")
    if head == _LFS:
        raise ModelError(
            f"{path} is a Git LFS pointer, not {kind} itself.", "Fetch the file: git lfs pull"
        )
    if limit is not None and size > limit:
        raise ModelError(
            f"{path} has {size / 1e9:.1f} GB; {kind} of more than {limit / 1e9:.1f} GB "
            "cannot be read in one piece.",
            "For ONNX, save the weights beside it: onnx.save(model, path, "
            "save_as_external_data=True). For TVM, save the module without its weights.",
        )
    return path


def first_lines(error: BaseException, limit: int = 400) -> str:
    """What an exception says, cut to what a message can hold.

    TVM puts a back trace before or after the sentence; lines of it are left out.
    """
    text = str(error).strip()
    lines = [
        line.strip()
        for line in text.splitlines()
        if line.strip() and not line.lstrip().startswith(("File ", "Traceback", "[bt]", "Stack"))
    ]
    short = " ".join(lines) or type(error).__name__
    if len(short) > limit:
        short = short[: limit - 3] + "..."
    return f"{type(error).__name__}: {short}"
