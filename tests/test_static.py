"""Style and types, so that one command checks everything."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(
    "command",
    [
        ["ruff", "check", "--no-cache", "."],
        ["ruff", "format", "--no-cache", "--check", "."],
        ["mypy", "--no-incremental"],
    ],
    ids=" ".join,
)
def test_clean(command: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_recording_and_render_never_import_tvm() -> None:
    for folder in ("recording", "render"):
        for path in (ROOT / "byocviz" / folder).rglob("*.py"):
            text = path.read_text()
            assert "import tvm" not in text, path
            assert "from tvm" not in text, path
            assert "byocviz.flow" not in text, path
            assert "byocviz.models" not in text, path
