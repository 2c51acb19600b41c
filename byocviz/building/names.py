"""Names that are known before anything is imported for them."""

from __future__ import annotations

RUNTIMES = ("onnxruntime", "tensorrt", "tensorrt-rtx")
"""The runtimes that come with byocviz, installed or not."""

CODEGENS = ("python", "native")
"""byocviz's own, and the one that a TVM was built with."""
