"""Names that are known before anything is imported for them."""

from __future__ import annotations

RUNTIMES = ("onnxruntime", "tensorrt", "tensorrt-rtx")
"""The runtimes that come with byocviz, installed or not."""
