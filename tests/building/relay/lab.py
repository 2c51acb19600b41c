"""Runs many Relay calls in TVM and, lowered, in ONNX Runtime, and compares.

Cases of one list are compiled together, as one function with many outputs, for the virtual
machine: its passes leave most operators as they are, so that the two are told apart by nothing
else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnxruntime
import tvm
from tvm import relay

from byocviz.building.lower.lowered import Lowered
from byocviz.building.relay.lower import lower
from byocviz.flow.relay.verify import run_module


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
    """One call; ``tolerance`` is relative and absolute."""

    name: str
    make: Callable[..., Any]
    args: list[Any]
    kwargs: dict[str, Any]
    tolerance: float = 2e-5
    seed: int = 0


class Cases(list[Case]):
    """The cases of one kind; calling it adds one, named by what it is given."""

    def __call__(
        self, make: Callable[..., Any], *args: Any, tol: float | None = None, **kwargs: Any
    ) -> None:
        name = getattr(make, "__name__", "call")
        shown = [f"{a.dtype}{list(a.shape)}" if isinstance(a, Arg) else str(a) for a in args]
        shown += [f"{k}={v}" for k, v in kwargs.items()]
        half = any(isinstance(a, Arg) and a.dtype == "float16" for a in args)
        tolerance = tol if tol is not None else (2e-2 if half else 2e-5)
        self.append(
            Case(f"{name}({', '.join(shown)})", make, list(args), kwargs, tolerance, len(self))
        )


def build(cases: list[Case]) -> tuple[tvm.IRModule, dict[str, np.ndarray], list[int]]:
    """A module of all cases, its inputs, and how many results each case has."""
    params: list[Any] = []
    values: dict[str, np.ndarray] = {}

    def argument(arg: Any, rng: np.random.Generator) -> Any:
        if isinstance(arg, list):
            return [argument(a, rng) for a in arg]
        if not isinstance(arg, Arg):
            return arg
        array = arg.make(rng)
        if arg.constant:
            return relay.const(array, arg.dtype)
        name = f"x{len(params)}"
        params.append(relay.var(name, shape=arg.shape, dtype=arg.dtype))
        values[name] = array
        return params[-1]

    results: list[Any] = []
    counts = []
    for case in cases:
        rng = np.random.default_rng(case.seed)
        args = [argument(a, rng) for a in case.args]
        kwargs = {k: argument(v, rng) for k, v in case.kwargs.items()}
        made = case.make(*args, **kwargs)
        fields = list(made) if isinstance(made, relay.TupleWrapper) else [made]
        results += fields
        counts.append(len(fields))
    module = tvm.IRModule.from_expr(relay.Function(params, relay.Tuple(results)))
    return relay.transform.InferType()(module), values, counts


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
    found: list[np.ndarray] = session.run(
        [p.name for p in lowered.outputs], {k: v for k, v in feeds.items() if k in names}
    )
    return found


def faults(cases: list[Case], opset: int = 17) -> list[str]:
    """What is wrong, a line each; none: TVM and ONNX Runtime agree on all of them."""
    try:
        return _faults(cases, opset)
    except Exception as error:
        if len(cases) == 1:
            last = [line for line in str(error).splitlines() if line.strip()]
            return [f"{cases[0].name}: {type(error).__name__}: {(last or ['?'])[-1][:300]}"]
    half = len(cases) // 2
    return faults(cases[:half], opset) + faults(cases[half:], opset)


def _faults(cases: list[Case], opset: int) -> list[str]:
    mod, values, counts = build(cases)
    lowered = lower(mod["main"], opset=opset)
    onnx.checker.check_model(lowered.model, full_check=True)
    given = run_onnx(lowered, list(values.values()))
    (wanted,) = run_module(mod, "main", [values])
    found: list[str] = []
    at = 0
    for case, count in zip(cases, counts, strict=True):
        for index in range(count):
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
