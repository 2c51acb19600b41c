"""Every notebook runs from top to bottom, is kept without outputs, and can be read without them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from .books import FOLDER, LONGEST, ROOT, execute, local_paths, outputs, read, texts

ALL = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
RELAX = [name for name in ALL if "relay" not in name]


def test_all_are_there() -> None:
    assert [name[:2] for name in ALL] == ["01", "02", "03", "04", "05"]


@pytest.mark.parametrize("name", ALL)
def test_kept_without_outputs(name: str) -> None:
    notebook = read(name)
    nbformat.validate(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert cell.outputs == []
            assert cell.execution_count is None
            assert cell.metadata == {}
    assert "widgets" not in notebook.metadata
    assert local_paths(str(notebook)) == []


@pytest.mark.parametrize("name", ALL)
def test_reads_without_outputs(name: str) -> None:
    cells = read(name).cells
    first = cells[0]
    assert first.cell_type == "markdown"
    assert re.search(r"pip install '[^']*byocviz\[[^\]]+\]'|pip install '\.\[", first.source)
    before = "markdown"
    for cell in cells[1:]:
        if cell.cell_type == "code":
            assert before == "markdown", cell.source
            drawn = "@I.ir_module" in cell.source or "relay.Function(" in cell.source
            assert len(cell.source.splitlines()) <= (2 * LONGEST if drawn else LONGEST), cell.source
        before = cell.cell_type


def test_lint() -> None:
    for command in (["check"], ["format", "--check"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--no-cache", "notebooks"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


# What a notebook's words promise of its figures.
PROMISED = {
    "01_walkthrough": [r"merge +9 operators, 3 subgraphs", r"less \| no-rule"],
    "02_ssd_on_tensorrt": [r"1 subgraph", r"stands in for TensorRT", r"all within", r"cat 0\.9"],
    "03_your_own_backend": [r"kernel-size", r"not-lowerable", r"all within"],
    "04_a_talk_from_a_recording": [r"talk\.html"],
}


@pytest.mark.parametrize("name", RELAX)
def test_runs(name: str, tmp_path: Path) -> None:
    notebook = execute(name, tmp_path)
    for text in outputs(notebook):
        assert local_paths(text) == [], text[:2000]
    said = texts(notebook)
    assert "Traceback (most recent call last)" not in said
    for promise in PROMISED[name]:
        assert re.search(promise, said), said[-3000:]
    for still in [text for text in outputs(notebook) if "data-byocviz-static" in text]:
        assert re.search(r"<td[^>]*>(<b>)?import", still), "an explorer that shows nothing"
