"""Runs many calls in TVM and, lowered, in ONNX Runtime, and compares.

Cases of one list are compiled together, as one function with many outputs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import tvm
from onnx import shape_inference
from tvm import relax

from byocviz.building.lower import lower
from byocviz.flow.relax.surgery import dtype_of, static_shape
from byocviz.flow.relax.verify import run_module
from tests.building.cases import Arg, C, Case, Cases, T, V, difference, halves, run_onnx

__all__ = [
    "Arg", "C", "Case", "Cases", "T", "V", "build", "difference", "faults", "inferred", "run_onnx",
]  # fmt: skip


def build(cases: list[Case]) -> tuple[tvm.IRModule, list[np.ndarray], list[list[Any]]]:
    """A module of all cases, its inputs, and the result types of each case."""
    builder = relax.BlockBuilder()
    params: list[Any] = []
    values: list[np.ndarray] = []
    calls: list[Any] = []

    def argument(arg: Any, rng: np.random.Generator) -> Any:
        if isinstance(arg, (list, tuple)) and any(isinstance(a, Arg) for a in arg):
            return [argument(a, rng) for a in arg]
        if not isinstance(arg, Arg):
            return arg
        array = arg.make(rng)
        if arg.constant:
            return relax.const(array, arg.dtype)
        var = relax.Var(f"p{len(params)}", relax.TensorType(arg.shape, arg.dtype))
        params.append(var)
        values.append(array)
        return var

    for case in cases:
        rng = np.random.default_rng(case.seed)
        args = [argument(a, rng) for a in case.args]
        kwargs = {k: argument(v, rng) for k, v in case.kwargs.items()}
        calls.append(case.make(*args, **kwargs))
    types: list[list[Any]] = []
    with builder.function("main", params):
        with builder.dataflow():
            results: list[Any] = []
            for call in calls:
                var = builder.emit(call)
                fields = getattr(var.ty, "fields", None)
                if fields is None:
                    results.append(builder.emit_output(var))
                    types.append([var.ty])
                else:
                    parts = [relax.TupleGetItem(var, i) for i in range(len(fields))]
                    results += [builder.emit_output(part) for part in parts]
                    types.append(list(fields))
        builder.emit_func_output(relax.Tuple(results))
    return builder.get(), values, types


def inferred(model: onnx.ModelProto) -> dict[str, tuple[int, list[int | None]]]:
    """Element type and shape of each output as ONNX infers them, from nothing but the nodes."""
    bare = onnx.ModelProto()
    bare.CopyFrom(model)
    for output in bare.graph.output:
        output.type.tensor_type.ClearField("shape")
    done = shape_inference.infer_shapes(bare, check_type=True, strict_mode=True, data_prop=True)
    found = {}
    for output in done.graph.output:
        kind = output.type.tensor_type
        dims = [d.dim_value if d.HasField("dim_value") else None for d in kind.shape.dim]
        found[output.name] = kind.elem_type, dims if kind.HasField("shape") else None
    return found


@halves
def faults(cases: list[Case], opset: int) -> list[str]:
    mod, values, types = build(cases)
    lowered = lower(mod["main"], opset=opset)
    onnx.checker.check_model(lowered.model, full_check=True)
    shapes = inferred(lowered.model)
    given = run_onnx(lowered, values)
    wanted = run_module(mod, "main", values)
    found: list[str] = []
    at = 0
    for case, kinds in zip(cases, types, strict=True):
        for index, ty in enumerate(kinds):
            port = lowered.outputs[at]
            tensor = onnx.helper.tensor_dtype_to_np_dtype(shapes[port.name][0])
            if str(tensor) != dtype_of(ty) or shapes[port.name][1] != list(static_shape(ty)):
                found.append(f"{case.name}[{index}]: ONNX infers {shapes[port.name]}, not {ty}")
            fault = difference(given[at], wanted[at], case.tolerance)
            if fault:
                found.append(f"{case.name}[{index}]: {fault}")
            at += 1
    return found
