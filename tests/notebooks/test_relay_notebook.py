"""The demo of 2020, cell by cell, in the environment that has Relay."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from tests.relay import needs_relay

needs_relay()
for package in ("mxnet", "gluoncv"):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not here: pip install 'byocviz[gluoncv]'", True)

from .books import execute, local_paths, outputs, texts  # noqa: E402

PROMISED = [
    r"TVM 0\.1\d",
    r"676 operators",
    r"tvmgen_default_tutorial_main_5 .*reshape",
    r"merge +5 subgraphs",
    r"prune +1 subgraphs",
    r"73 of 73 conv2d",
    r"stands in for|runtime='TensorRT",
    r"100 of 100 rows agree",
]
"""What the notebook's words, and the demo of 2020, say."""


def test_runs(tmp_path: Path) -> None:
    notebook = execute("05_relay_demo_of_2020", tmp_path)
    for text in outputs(notebook):
        assert local_paths(text) == [], text[:2000]
    said = texts(notebook)
    assert "Traceback (most recent call last)" not in said
    for promise in PROMISED:
        assert re.search(promise, said), said[-3000:]
