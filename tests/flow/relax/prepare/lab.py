"""Small modules to rewrite, and ways to run and read them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import tvm
from onnx import TensorProto, helper, numpy_helper
from tvm import relax
from tvm.ir import SourceName, Span
from tvm.relax.frontend.onnx import from_onnx

from byocviz.flow.relax import surgery as s

_TYPES = {
    "float32": TensorProto.FLOAT,
    "float16": TensorProto.FLOAT16,
    "int32": TensorProto.INT32,
    "int64": TensorProto.INT64,
}


def run(mod: Any, *arrays: np.ndarray, entry: str = "main") -> list[np.ndarray]:
    """The outputs of the entry function, compiled for the CPU."""
    func = mod[entry]
    if func.attrs is None or "global_symbol" not in func.attrs:
        mod = tvm.IRModule(dict(mod.functions.items()))
        mod[entry] = func.with_attr("global_symbol", entry)
    mod = relax.transform.LambdaLift()(mod)
    # TVM's memory plan lets the branches of an If share storage that one of them allocates.
    with tvm.transform.PassContext(opt_level=3, disabled_pass=["StaticPlanBlockMemory"]):
        built = tvm.compile(mod, target=tvm.target.Target({"kind": "llvm"}))
    machine = relax.VirtualMachine(built, tvm.cpu())
    out = machine[entry](*[tvm.runtime.tensor(np.asarray(a)) for a in arrays])
    return [o.numpy() for o in _flat(out)]


def _flat(out: Any) -> list[Any]:
    if hasattr(out, "numpy"):
        return [out]
    return [x for item in out for x in _flat(item)]


def onnx(
    nodes: list[tuple[str, list[str], dict[str, Any]]],
    inputs: dict[str, list[Any]],
    constants: dict[str, np.ndarray] | None = None,
    opset: int = 13,
    dtype: str = "float32",
    **options: Any,
) -> Any:
    """An ONNX graph as TVM imports it. A node is (operator, inputs, attributes).

    Each node's output is ``t<its number>``; the graph gives the last one's.
    """
    made = [
        helper.make_node(op, args, [f"t{i}"], **attrs) for i, (op, args, attrs) in enumerate(nodes)
    ]
    graph = helper.make_graph(
        made,
        "g",
        [helper.make_tensor_value_info(n, _TYPES[dtype], dims) for n, dims in inputs.items()],
        [helper.make_tensor_value_info(f"t{len(nodes) - 1}", _TYPES[dtype], None)],
        [numpy_helper.from_array(np.asarray(v), n) for n, v in (constants or {}).items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 8
    return from_onnx(model, **options)


def tagged(mod: Any) -> Any:
    """The module with a number of its own in the span of every call."""
    number = 0

    def tag(block: Any) -> list[Any]:
        nonlocal number
        bindings = []
        for binding in block.bindings:
            value = binding.value
            if isinstance(value, relax.Call):
                span = Span(SourceName("byocviz"), number, number, 0, 0)
                number += 1
                value = relax.Call(
                    value.op, value.args, value.attrs, value.ty_args, span, ret_ty=value.ty
                )
                binding = s.rebind(binding, value)
            bindings.append(binding)
        return [s.with_bindings(block, bindings)]

    return s.map_functions(mod, lambda _, func: s.map_blocks(func, tag))


def marks(mod: Any) -> dict[int, tuple[str, str]]:
    """By the number in its span: the operator of a call, and the name it is bound to."""
    found: dict[int, tuple[str, str]] = {}
    for _, func in s.relax_functions(mod):
        for block in s.blocks_of(func):
            for binding in block.bindings:
                call = binding.value
                if isinstance(call, relax.Call) and call.span is not None:
                    assert call.span.line not in found, "two calls with the same span"
                    found[call.span.line] = (s.op_name(call), str(binding.var.name))
    return found


def ops(mod: Any) -> Counter[str]:
    """How often each operator is called in the module."""
    return Counter(s.op_name(c) for _, f in s.relax_functions(mod) for c in s.calls_in(f))


def kept(before: Any, after: Any) -> None:
    """What is in both modules is under the same number, operator and name; the rest has no span."""
    old, new = marks(before), marks(after)
    assert set(new) <= set(old)
    assert all(new[n] == old[n] for n in new)


def well_formed(mod: Any) -> bool:
    """Whether TVM finds the module in order (newer TVM raises instead of saying no)."""
    return relax.analysis.well_formed(mod) is not False
