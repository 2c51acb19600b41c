"""Matrix products."""

from __future__ import annotations

from byocviz.building.lower.call import Call
from byocviz.building.lower.graph import Graph, Tensor
from byocviz.building.lower.registry import converter


@converter("relax.matmul")
def matmul(g: Graph, call: Call) -> Tensor:
    """As NumPy's, vectors and broadcast batches included. TVM multiplies and sums in out_dtype."""
    a, b = call.tensor(0), call.tensor(1)
    if call.dtype not in ("float16", "bfloat16", "float32", "float64", "int32", "int64", "uint32",
                          "uint64"):  # fmt: skip
        raise call.refuse(
            "dtype", call.dtype, "ONNX's MatMul takes floats and wide integers.",
            "Cast the operands, or give out_dtype='int32'.",
        )  # fmt: skip
    if a.dims[-1] == 0:
        raise call.refuse("shape", list(a.dims), "There is nothing to sum.")
    a, b = g.cast(a, call.dtype), g.cast(b, call.dtype)
    if a.rank == 1 and b.rank > 2:
        # TensorRT's parser does not broadcast a vector over a batch; a matrix of one row it does.
        row = g.reshape(a, (1, a.dims[0]))
        batches = (*b.dims[:-2], 1, b.dims[-1])
        return g.reshape(g.add("MatMul", row, b, shape=batches), call.shape)
    return g.add("MatMul", a, b, shape=call.shape)


@converter("relax.outer")
def outer(g: Graph, call: Call) -> Tensor:
    a, b = call.tensor(0), call.tensor(1)
    if a.dtype == "bool":
        raise call.refuse("dtype", a.dtype, "ONNX's Mul takes numbers.", "Cast it first.")
    rows = g.reshape(a, (a.dims[0], 1))
    return g.add("Mul", rows, g.reshape(b, (1, b.dims[0])))


@converter("relax.einsum")
def einsum(g: Graph, call: Call) -> Tensor:
    parts = call.tensors(0)
    call.floats(*parts)
    subscripts = str(call.attr("subscripts")).replace(" ", "")
    return g.add("Einsum", *parts, equation=subscripts, shape=call.shape)
