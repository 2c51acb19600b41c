"""TensorRT, by the table that TVM itself keeps for it."""

from __future__ import annotations

from byocviz.backends.base import Backend
from byocviz.backends.tvm_table import from_registry
from byocviz.recording.schema import PrunePolicy


def backend() -> Backend:
    """TVM's own TensorRT rules. A subgraph without a multiply-accumulate goes back to TVM.

    That prune policy is the one which Relay's ``partition_for_tensorrt`` calls
    ``remove_no_mac_subgraphs``; TVM's Relax flow has none.
    """
    return from_registry("tensorrt", PrunePolicy(require_macs=True))
