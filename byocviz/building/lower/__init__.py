"""Subgraphs as ONNX models, one small converter an operator.

`lower` makes the model of one external function; `check` asks the same without making it. A
converter is one function, registered by the operator's name::

    @converter("relax.nn.relu")
    def relu(g: Graph, call: Call) -> Tensor:
        return g.add("Relu", call.tensor(0))

What a converter cannot express with the same meaning it refuses (`LoweringError`).

NaN is the exception. TVM's relu, clip, maximum, minimum, max, min, argmax, argmin, max_pool, sort,
argsort and topk treat it by the way they compare, and its sign is 0; runtimes hand it on or give
it another place. That is neither imitated nor refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from byocviz.building.errors import LoweringError
from byocviz.building.lower.call import Call
from byocviz.building.lower.graph import Graph, Tensor
from byocviz.building.lower.lowered import Lowered, Port
from byocviz.building.lower.registry import converter, converters

if TYPE_CHECKING:
    from byocviz.building.lower.walker import check, examine, lower

__all__ = [
    "Call",
    "Graph",
    "Lowered",
    "LoweringError",
    "Port",
    "Tensor",
    "check",
    "converter",
    "converters",
    "examine",
    "lower",
]


def __getattr__(name: str) -> Any:
    # What needs Relax, so that Relay's converters can be had without.
    if name in ("check", "examine", "lower"):
        from byocviz.building.lower import walker

        return getattr(walker, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
