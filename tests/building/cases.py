"""Calls with arguments of all kinds, and what ONNX Runtime makes of them, for both dialects."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnxruntime

from byocviz.building.lower.lowered import Lowered


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


def halves(check: Callable[[list[Case], int], list[str]]) -> Callable[..., list[str]]:
    """``check`` for many cases at once: where it ends with an error, each half by itself, down to
    the one case that it is the error of."""

    def faults(cases: list[Case], opset: int = 17) -> list[str]:
        """What is wrong, a line each; none: TVM and ONNX Runtime agree on all of them."""
        try:
            return check(cases, opset)
        except Exception as error:
            if len(cases) == 1:
                said = [line for line in str(error).splitlines() if line.strip()] or ["?"]
                text = said[0] if said[0] == said[-1] else f"{said[0][:150]} ... {said[-1]}"
                return [f"{cases[0].name}: {type(error).__name__}: {text[:400]}"]
        half = len(cases) // 2
        return faults(cases[:half], opset) + faults(cases[half:], opset)

    return faults


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
