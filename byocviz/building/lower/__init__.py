"""Subgraphs of Relax calls as ONNX models, one small converter an operator.

`lower` makes the model of one external function; `check` asks the same without making it. A
converter is one function, registered by the operator's name::

    @converter("relax.nn.relu")
    def relu(g: Graph, call: Call) -> Tensor:
        return g.add("Relu", call.tensor(0))

What a converter cannot express with the same meaning it refuses (`LoweringError`).

NaN is the exception: TVM's relu, clip, maximum, minimum, max and min drop it by the way they
compare, runtimes hand it on. It is neither imitated nor refused.
"""

from __future__ import annotations

from byocviz.building.errors import LoweringError
from byocviz.building.lower.call import Call
from byocviz.building.lower.graph import Graph, Tensor
from byocviz.building.lower.lowered import Lowered, Port
from byocviz.building.lower.registry import converter, converters
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
