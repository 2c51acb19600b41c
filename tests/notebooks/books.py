"""Reading and running the notebooks, for both environments' tests."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "notebooks"
LONGEST = 30
"""Lines of a cell of code, that of a graph written out apart."""
LIMIT = 900
"""Seconds that one cell may take on the slowest machine; what a run takes is not tested."""


def read(name: str) -> Any:
    return nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)


def execute(name: str, folder: Path) -> Any:
    """The notebook after a run from top to bottom, in a kernel of its own, in ``folder``.

    The kernel is this Python's, whatever kernels the machine has, and finds this checkout.
    """
    notebook = read(name)
    kernels = folder / ".kernels"
    spec = kernels / "kernels" / "byocviz-test"
    spec.mkdir(parents=True)
    command = f'["{sys.executable}", "-m", "ipykernel_launcher", "-f", "{{connection_file}}"]'
    spec.joinpath("kernel.json").write_text(
        f'{{"argv": {command}, "display_name": "test", "language": "python"}}'
    )
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    places = [str(kernels), *filter(None, [os.environ.get("JUPYTER_PATH")])]
    changed = {
        "PYTHONPATH": os.pathsep.join(paths),
        "JUPYTER_PATH": os.pathsep.join(places),
        "IPYTHONDIR": str(folder / ".ipython"),
        "TOPHUB_LOCATION": "NONE",
    }
    before = {key: os.environ.get(key) for key in changed}
    os.environ.update(changed)
    try:
        client = NotebookClient(
            notebook,
            timeout=LIMIT,
            startup_timeout=120,
            kernel_name="byocviz-test",
            resources={"metadata": {"path": str(folder)}},
        )
        client.execute()
    finally:
        for key, value in before.items():
            if value is None:
                os.environ.pop(key, None)
            else:
                os.environ[key] = value
    return notebook


def outputs(notebook: Any) -> list[str]:
    """Every output of every cell, as text."""
    return [str(out) for cell in notebook.cells for out in cell.get("outputs", [])]


def local_paths(text: str) -> list[str]:
    """What in a text tells of this machine: the checkout, the person's home, temporary places."""
    places = {str(ROOT), str(Path.home()), tempfile.gettempdir() + os.sep}
    return [place for place in places if len(place) > 3 and place in text]


def texts(notebook: Any) -> str:
    """All that cells print or show as plain text."""
    shown = [out for cell in notebook.cells for out in cell.get("outputs", [])]
    return "\n".join(
        out.get("text", "") or out.get("data", {}).get("text/plain", "") for out in shown
    )
