"""ONNX Runtime on the CPU: everything that can be lowered to ONNX and that it has kernels for.

With it the whole of a network can leave TVM, the bundled SSD with its non-maximum suppression
included, which TensorRT refuses; and its table can be compared with TensorRT's.

Two things differ from TVM alone. Non-maximum suppression gives as many rows as Relax states
(batch * classes * boxes), those behind the ones that are kept being -1; TVM's own code cuts its
result short of that. And NaN passes through relu, clip, minimum and maximum, which drop it in TVM.
"""

from __future__ import annotations

from typing import Any

from byocviz.backends.base import Backend
from byocviz.backends.lowerable import guarded, said_of
from byocviz.backends.refusal import Refusal
from byocviz.backends.tvm_table import any_call

NAME = "onnxruntime"


def _patterns() -> list[Any]:
    """One rule an operator: ONNX Runtime fuses by itself."""
    from byocviz.building.lower import converters
    from byocviz.building.runtimes.kernels import needed

    needed()
    table = [(f"{NAME}.{name.removeprefix('relax.')}", any_call(name)) for name in converters()]
    return guarded(table, _runs)


def _runs(function: Any) -> Refusal | None:
    """Why a match cannot be lowered, or ONNX Runtime's CPU provider cannot run it; or None."""
    from byocviz.building.lower import examine
    from byocviz.building.runtimes.kernels import without_kernel

    errors, graph = examine(function)
    if errors:
        return said_of(errors)
    for operator, node, said in without_kernel(graph):
        return Refusal(
            "no-kernel",
            f"ONNX Runtime cannot run {operator} on the CPU: it has no kernel for {node}.",
            "Cast to a type that it has one for (float32 mostly), or leave the operator on TVM.",
            (("operator", operator), ("node", node), ("said", said)),
        )
    return None


def backend() -> Backend:
    """One rule for each operator that byocviz can lower to ONNX, with what ONNX Runtime's CPU
    provider can run. No subgraph goes back to TVM."""
    return Backend(
        NAME,
        _patterns,
        table=f'import byocviz\npatterns = byocviz.backends.get("{NAME}").patterns()',
        source="byocviz's converters, and the kernels of the ONNX Runtime at hand",
        lowers=True,
    )
