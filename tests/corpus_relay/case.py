"""A corpus case, and short ways to write the modules."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tvm
from tvm import relay


@dataclass(frozen=True)
class Case:
    """One small module.

    ``subgraphs`` is how many external functions the four passes leave for ``backend`` on the
    module as it is (nothing prepared, nothing pruned); found by reasoning, None where it was not.
    ``operators`` are the calls of operators. ``fails`` names the step whose pass in TVM raises.
    """

    name: str
    build: Callable[[], tvm.IRModule]
    backend: str = "tensorrt"
    entry: str = "main"
    params: Callable[[], dict[str, np.ndarray]] | None = None
    tags: frozenset[str] = field(default_factory=frozenset)
    subgraphs: int | None = None
    operators: int | None = None
    fails: str = ""

    def __str__(self) -> str:
        return self.name


CASES: list[Case] = []


def case(
    *tags: str,
    backend: str = "tensorrt",
    entry: str = "main",
    params: Callable[[], dict[str, np.ndarray]] | None = None,
    subgraphs: int | None = None,
    operators: int | None = None,
    fails: str = "",
) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Add the decorated builder to the corpus under its name; it returns a module, or the result
    of a function of all its free variables."""

    def add(build: Callable[[], Any]) -> Callable[[], Any]:
        def make() -> tvm.IRModule:
            made = build()
            if isinstance(made, tvm.IRModule):
                return made
            return main(made)

        name = build.__name__
        CASES.append(
            Case(name, make, backend, entry, params, frozenset(tags), subgraphs, operators, fails)
        )
        return build

    return add


def main(result: Any) -> tvm.IRModule:
    """A module of one function ``main`` that returns ``result``."""
    params = relay.analysis.free_vars(result)
    return tvm.IRModule.from_expr(relay.Function(params, result))


def array(shape: Iterable[int], seed: int = 0, dtype: str = "float32") -> np.ndarray:
    """Fixed values, small enough that nothing overflows float16."""
    values = np.random.default_rng(seed).standard_normal(tuple(shape)) * 0.25
    return values.astype(dtype)


def const(shape: Iterable[int], seed: int = 0, dtype: str = "float32") -> Any:
    return relay.const(array(shape, seed, dtype), dtype)


def x(name: str = "x", shape: Iterable[int] = (1, 4, 8, 8), dtype: str = "float32") -> Any:
    """A parameter: an image of four channels, if nothing else is said."""
    return relay.var(name, shape=tuple(shape), dtype=dtype)


def conv(data: Any, seed: int = 1, channels: int = 4, size: int = 3, **attrs: Any) -> Any:
    """A convolution with constant weights that keeps the image's size."""
    weight = const((channels, 4, size, size), seed)
    attrs = {"padding": (size // 2, size // 2), **attrs}
    return relay.nn.conv2d(data, weight, channels=channels, kernel_size=(size, size), **attrs)
