"""A module that TVM itself saved: ``tvm.ir.save_json(mod)`` as a text file.

TVMScript is Python source, and to read it is to run it: a stranger's file is not read that way.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from byocviz.errors import ModelError
from byocviz.models._common import check_file, first_lines, need_relax

if TYPE_CHECKING:
    import tvm

_LIMIT = 1 << 30  # bytes; Base64 makes 4 of 3, so some 750 MB of weights
_PROBE_SECONDS = 300

# What a wrong module does to TVM shows only when it is used: walk it and print it once.
_PROBE = """
import sys, tvm
from tvm import relax
with open(sys.argv[1], encoding="utf-8") as file:
    mod = tvm.ir.load_json(file.read())
if not isinstance(mod, tvm.IRModule):
    sys.exit("it holds a " + type(mod).__name__ + ", not an IRModule")
if relax.analysis.well_formed(mod) is False:  # it raises, or, elsewhere, answers
    sys.exit("its module is not well formed")
mod.script(show_meta=False)
"""


def from_tvm(path: str | os.PathLike[str]) -> tvm.IRModule:
    """The module in a file that holds the text of ``tvm.ir.save_json(mod)``.

    TVM reads such a text without checking it, and reads that of another version into a module
    with other shapes: so the version must be the one at hand (its first two numbers), and the
    text is read in a process of its own first, which may crash.

    Raises `ModelError` for a file that is not such a text, is damaged, larger than 1 GiB or of
    another TVM; `MissingPackage` where TVM is not installed.
    """
    tvm = need_relax("to read a module that TVM saved")
    path = check_file(path, "a module saved by TVM", _LIMIT)
    text = _checked_text(path, str(tvm.__version__))
    _probe(path)
    try:
        mod = tvm.ir.load_json(text)
    except Exception as error:
        raise _damaged(path, first_lines(error)) from error
    if not isinstance(mod, tvm.IRModule):
        raise _damaged(path, f"it holds a {type(mod).__name__}, not an IRModule")
    return mod


def _checked_text(path: Path, version: str) -> str:
    try:
        text = path.read_text(encoding="utf-8")
        graph: Any = json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(
            f"{path} is not a module saved by TVM, or it is cut off ({first_lines(error, 120)}).",
            "Write it with open(path, 'w').write(tvm.ir.save_json(mod)).",
        ) from error
    old = graph.get("attrs") if isinstance(graph, dict) and "root" in graph else None
    if isinstance(old, dict) and isinstance(old.get("tvm_version"), str):
        raise ModelError(
            f"{path} was saved by TVM {old['tvm_version'][:40]}, which writes modules otherwise "
            "than those with today's Relax.",
            "Read it yourself where that TVM is, and record what you get: "
            "byocviz.record(tvm.ir.load_json(text)).",
        )
    if not (
        isinstance(graph, dict)
        and isinstance(graph.get("nodes"), list)
        and isinstance(graph.get("root_index"), int)
        and 0 <= graph["root_index"] < len(graph["nodes"])
    ):
        raise ModelError(
            f"{path} is JSON, but not of the form that tvm.ir.save_json writes.",
            "Write it with open(path, 'w').write(tvm.ir.save_json(mod)).",
        )
    metadata = graph.get("metadata")
    saved = metadata.get("tvm_version") if isinstance(metadata, dict) else None
    if not isinstance(saved, str):
        raise ModelError(
            f"{path} does not say which TVM saved it.",
            "Save the module again with TVM 0.26 or newer.",
        )
    if saved.split(".")[:2] != version.split(".")[:2]:
        raise ModelError(
            f"{path} was saved by TVM {saved[:40]}; the TVM here is {version}, which could read it "
            "into a module with other shapes.",
            f"Read it where TVM {saved[:40]} is installed, or save it again with TVM {version}.",
        )
    return text


def _probe(path: Path) -> None:
    """Read the file in another process, so that a crash of TVM is an error and not our end."""
    command = [sys.executable, "-c", _PROBE, str(path.resolve())]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=_PROBE_SECONDS,
            check=False,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        )
    except subprocess.TimeoutExpired as error:
        raise _damaged(path, f"TVM did not finish reading it in {_PROBE_SECONDS} s") from error
    except OSError:
        return  # no process can be started here (a sandbox): TVM's own checks have to do
    if done.returncode < 0 or done.returncode > 128:
        raise _damaged(path, "reading it makes TVM crash")
    if done.returncode:
        last = [line for line in done.stderr.strip().splitlines() if line.strip()]
        raise _damaged(path, last[-1][:300] if last else f"exit status {done.returncode}")


def _damaged(path: Path, why: str) -> ModelError:
    return ModelError(f"{path} cannot be read as a TVM module: {why}.", "Save the module again.")
