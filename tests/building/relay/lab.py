"""Runs many Relay calls in TVM and, lowered, in ONNX Runtime, and compares.

Cases of one list are compiled together, as one function with many outputs, for the virtual
machine: its passes leave most operators as they are, so that the two are told apart by nothing
else.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import tvm
from tvm import relay

from byocviz.building.relay.lower import lower
from byocviz.flow.relay.verify import run_module
from tests.building.cases import Arg, C, Case, Cases, T, V, difference, halves, run_onnx

__all__ = ["Arg", "C", "Case", "Cases", "T", "V", "build", "difference", "faults", "run_onnx"]


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


@halves
def faults(cases: list[Case], opset: int) -> list[str]:
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
