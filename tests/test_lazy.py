"""Importing byocviz is cheap, and every public name is there."""

from __future__ import annotations

import subprocess
import sys

import byocviz

HEAVY = ("tvm", "onnx", "onnxruntime", "numpy", "matplotlib", "IPython", "pandas", "torch", "rich")


def test_importing_imports_nothing_heavy() -> None:
    script = f"import sys, byocviz\nprint([name for name in {HEAVY!r} if name in sys.modules])\n"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_every_public_name_is_there() -> None:
    for name in byocviz.__all__:
        assert getattr(byocviz, name) is not None
    assert set(byocviz.__all__) <= set(dir(byocviz))


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(byocviz, "no_such_name")
