"""What a bug report of a native library needs, kept where the person finds it."""

from __future__ import annotations

import contextlib
import hashlib
import re
import tempfile
from pathlib import Path

from byocviz.building.cache import private, user_folder
from byocviz.errors import ByocvizError
from byocviz.recording import atomic

KEPT = 16
"""Reports; older ones go, since a model's weights are in each."""


def save(name: str, model: bytes, facts: str) -> Path | None:
    """The ONNX of a subgraph, with ``facts`` as text beside it; None where nothing can be written.

    In ``byocviz/reports`` in the user's cache, else in a new temporary folder; it stays there.
    """
    label = re.sub(r"[^A-Za-z0-9_.-]+", "_", name).strip(".")[:80] or "subgraph"
    stem = f"{label}-{hashlib.sha256(model).hexdigest()[:12]}"
    folder = user_folder("reports")
    if private(folder) is None:
        _make_room(folder)
        found = _write(folder, stem, model, facts)
        if found is not None:
            return found
    try:
        folder = Path(tempfile.mkdtemp(prefix="byocviz-report-"))
    except OSError:
        return None
    found = _write(folder, stem, model, facts)
    if found is None:
        with contextlib.suppress(OSError):
            folder.rmdir()
    return found


def _write(folder: Path, stem: str, model: bytes, facts: str) -> Path | None:
    path = folder / f"{stem}.onnx"
    try:
        atomic.write(path, model)
    except ByocvizError:
        return None
    with contextlib.suppress(ByocvizError):
        atomic.write(folder / f"{stem}.txt", facts.encode(errors="replace"))
    return path


def _make_room(folder: Path) -> None:
    with contextlib.suppress(OSError):
        found = sorted(folder.glob("*.onnx"), key=lambda p: p.stat().st_mtime)
        for path in found[: max(len(found) - KEPT + 1, 0)]:
            path.unlink(missing_ok=True)
            path.with_suffix(".txt").unlink(missing_ok=True)
