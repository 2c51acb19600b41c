"""Runs many calls in TVM and, lowered, in ONNX Runtime, and compares.

Cases of one list are compiled together, as one function with many outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnxruntime
import tvm
from onnx import shape_inference
from tvm import relax

from byocviz.building.lower import Lowered, lower
from byocviz.flow.relax.surgery import dtype_of, static_shape
from byocviz.flow.relax.verify import run_module


@dataclass
class Arg:
    """A tensor argument: a parameter of the function, or a constant in it."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    low: float = -2.0
    high: float = 2.0
    constant: bool = False
    values: Any = None

    def make(self, rng: np.random.Generator) -> np.ndarray:
        if self.values is not None:
            return np.array(self.values, dtype=self.dtype).reshape(self.shape)
        if self.dtype == "bool":
            return rng.random(self.shape) < 0.5
        if "int" in self.dtype:
            low = 0 if self.dtype.startswith("u") else int(self.low)
            return rng.integers(low, int(self.high) + 1, self.shape).astype(self.dtype)
        return rng.uniform(self.low, self.high, self.shape).astype(self.dtype)


def T(*shape: int, **kind: Any) -> Arg:
    return Arg(shape, **kind)


def C(*shape: int, **kind: Any) -> Arg:
    return Arg(shape, constant=True, **kind)


def V(values: Any, dtype: str, constant: bool = False) -> Arg:
    """Given values."""
    array = np.array(values)
    return Arg(array.shape, dtype, constant=constant, values=array)


@dataclass
class Case:
    """One call. ``tolerance`` is relative and absolute; ``loose``: its shape depends on data."""

    name: str
    make: Callable[..., Any]
    args: list[Any]
    kwargs: dict[str, Any]
    tolerance: float = 2e-5
    loose: bool = False
    seed: int = 0
    inputs: list[np.ndarray] = field(default_factory=list)


class Cases(list[Case]):
    """The cases of one kind; calling it adds one, named by what it is given."""

    def __call__(
        self, make: Callable[..., Any], *args: Any, tol: float | None = None, **kwargs: Any
    ) -> None:
        name = getattr(make, "__name__", "call")
        shown = [f"{a.dtype}{list(a.shape)}" if isinstance(a, Arg) else str(a) for a in args]
        shown += [f"{k}={v}" for k, v in kwargs.items()]
        half = any(isinstance(a, Arg) and a.dtype == "float16" for a in _flat(args))
        tolerance = tol if tol is not None else (2e-2 if half else 2e-5)
        self.append(
            Case(f"{name}({', '.join(shown)})", make, list(args), kwargs, tolerance,
                 seed=len(self))
        )  # fmt: skip


def _flat(args: Iterable[Any]) -> list[Any]:
    out: list[Any] = []
    for arg in args:
        out += _flat(arg) if isinstance(arg, (list, tuple)) else [arg]
    return out


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


def run_onnx(lowered: Lowered, values: list[np.ndarray]) -> list[np.ndarray]:
    """The outputs in ONNX Runtime, by itself: nothing of byocviz but the model."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        lowered.serialized(), options, providers=["CPUExecutionProvider"]
    )
    feeds = {p.name: v for p, v in zip(lowered.inputs, values, strict=True)}
    names = {i.name for i in session.get_inputs()}
    return session.run(
        [p.name for p in lowered.outputs], {k: v for k, v in feeds.items() if k in names}
    )


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


def faults(cases: list[Case], opset: int = 17) -> list[str]:
    """What is wrong, a line each; none: TVM and ONNX Runtime agree on all of them."""
    try:
        return _faults(cases, opset)
    except Exception as error:
        if len(cases) == 1:
            last = [line for line in str(error).splitlines() if line.strip()]
            return [f"{cases[0].name}: {type(error).__name__}: {(last or ['?'])[0][:300]}"]
    half = len(cases) // 2
    return faults(cases[:half], opset) + faults(cases[half:], opset)


def _faults(cases: list[Case], opset: int) -> list[str]:
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


def difference(given: np.ndarray, wanted: np.ndarray, tolerance: float) -> str:
    """What differs, or nothing. Integers and booleans must be equal."""
    if given.shape != wanted.shape or given.dtype != wanted.dtype:
        return f"{given.dtype}{given.shape}, not {wanted.dtype}{wanted.shape}"
    if given.dtype.kind in "biu":
        different = int((given != wanted).sum())
        return f"{different} of {given.size} elements differ" if different else ""
    a, b = given.astype("float64"), wanted.astype("float64")
    close = np.isclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)
    if close.all():
        return ""
    worst = np.abs(a - b)[~close]
    return f"{int((~close).sum())} of {a.size} elements differ, by up to {worst.max():.3g}"
