"""The tests of the rewrites need TVM and ONNX; their tools are in lab.py beside this file."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

collect_ignore_glob = (
    [] if importlib.util.find_spec("tvm") and importlib.util.find_spec("onnx") else ["test_*.py"]
)


@pytest.fixture(scope="session")
def lab() -> Any:
    """The module lab.py, whatever way pytest imports tests."""
    spec = importlib.util.spec_from_file_location("prepare_lab", Path(__file__).parent / "lab.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
