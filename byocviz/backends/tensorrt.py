"""TensorRT, by the table that TVM itself keeps for it."""

from __future__ import annotations

from byocviz.backends.base import Backend
from byocviz.backends.tvm_table import from_registry


def backend() -> Backend:
    """TVM's own TensorRT rules. A subgraph without a multiply-accumulate goes back to TVM."""
    return from_registry("tensorrt")
