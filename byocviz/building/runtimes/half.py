"""Single precision to half, in the ONNX model itself.

TensorRT 11 and TensorRT-RTX compute in the types that the model names (strong typing), so half
precision is asked for by writing it down. Inputs and outputs keep their types.
"""

from __future__ import annotations

from typing import Any

from byocviz.building.errors import BuildError
from byocviz.errors import last_line


def half(title: str, name: str, model: bytes) -> bytes:
    """The model with float32 computed in float16, except operators that need the range.

    ``title`` and ``name`` are the runtime's and the subgraph's, for the error. Values beyond
    float16's range (65504) are clamped. By the converter that ONNX Runtime brings.

    Raises `BuildError` where that is missing or fails.
    """
    try:
        import onnx
        from onnxruntime.transformers.float16 import convert_float_to_float16
    except ImportError as error:
        raise BuildError(
            f"{title} cannot build {name} in half precision: {error}.",
            "pip install onnx onnxruntime",
            subgraph=name,
        ) from error
    try:
        done = convert_float_to_float16(onnx.load_from_string(model), keep_io_types=True)
        _sort(done.graph)
    except Exception as error:
        raise BuildError(
            f"The subgraph {name} cannot be converted to half precision: {last_line(error)}",
            "Build it without fp16.",
            subgraph=name,
        ) from error
    return bytes(done.SerializeToString())


def _sort(graph: Any) -> None:
    """Puts each node after those that it reads from: the converter adds its casts at the end."""
    made_by = {name: i for i, node in enumerate(graph.node) for name in node.output}
    nodes, order, seen = list(graph.node), [], set()
    for start in range(len(nodes)):
        stack = [start]
        while stack:
            index = stack[-1]
            needed = [made_by[n] for n in nodes[index].input if n in made_by]
            left = [i for i in needed if i not in seen] if index not in seen else []
            if left:
                stack += left
                continue
            stack.pop()
            if index not in seen:
                seen.add(index)
                order.append(index)
    copies = [nodes[i].__class__.FromString(nodes[i].SerializeToString()) for i in order]
    del graph.node[:]
    graph.node.extend(copies)
