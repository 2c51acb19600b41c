"""A build in a folder, changed by somebody."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any


def manifest(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "manifest.json").read_bytes())
    return found


def rewrite(folder: Path, **change: Any) -> None:
    (folder / "manifest.json").write_text(json.dumps({**manifest(folder), **change}))


def sign(folder: Path) -> None:
    """What somebody does who changes a build and its checksums; the library gets its new name."""
    files = {}
    for name in manifest(folder)["files"]:
        data = (folder / name).read_bytes()
        digest = hashlib.sha256(data).hexdigest()
        if name.endswith(".so"):
            (folder / name).rename(folder / f"module-{digest[:16]}.so")
            name = f"module-{digest[:16]}.so"
        files[name] = {"bytes": len(data), "sha256": digest}
    rewrite(folder, files=files)
