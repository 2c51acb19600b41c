"""A corpus case, and short ways to write the modules."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tvm
from tvm import relax
from tvm.script import ir as script_ir
from tvm.script import relax as script_relax
from tvm.script import tirx as script_tir


@dataclass(frozen=True)
class Case:
    """One small module.

    ``subgraphs`` is how many calls of external functions there must be once all rules of
    ``backend`` are matched and connected matches merged, block by block, on the module as it is
    (nothing prepared, nothing pruned); it was found by reasoning. None where it was not.
    ``params`` gives values for some parameters of ``entry``, by name, where a recording of the
    case should bind them.
    """

    name: str
    build: Callable[[], tvm.IRModule]
    backend: str = "tensorrt"
    entry: str = "main"
    params: Callable[[], dict[str, np.ndarray]] | None = None
    tags: frozenset[str] = field(default_factory=frozenset)
    subgraphs: int | None = None

    def __str__(self) -> str:
        return self.name


CASES: list[Case] = []


def case(
    *tags: str,
    backend: str = "tensorrt",
    entry: str = "main",
    params: Callable[[], dict[str, np.ndarray]] | None = None,
    subgraphs: int | None = None,
) -> Callable[[Callable[[], tvm.IRModule]], Callable[[], tvm.IRModule]]:
    """Add the decorated builder to the corpus under its name."""

    def add(build: Callable[[], tvm.IRModule]) -> Callable[[], tvm.IRModule]:
        name = build.__name__
        CASES.append(Case(name, build, backend, entry, params, frozenset(tags), subgraphs))
        return build

    return add


def array(shape: Iterable[int], seed: int = 0, dtype: str = "float32") -> np.ndarray:
    """Fixed values, small enough that nothing overflows float16."""
    values = np.random.default_rng(seed).standard_normal(tuple(shape)) * 0.25
    return values.astype(dtype)


def const(shape: Iterable[int], seed: int = 0, dtype: str = "float32") -> Any:
    return relax.const(array(shape, seed, dtype), dtype)


def tensor(shape: Iterable[Any], dtype: str = "float32") -> relax.TensorType:
    return relax.TensorType(tuple(shape), dtype)


def module(text: str, **names: Any) -> tvm.IRModule:
    """A module from the functions in ``text`` (TVMScript), with ``names`` at hand in it.

    ``X`` stands for a float32 tensor of [1, 4, 8, 8], ``V`` for one of [4]; ``W`` (3 x 3) and
    ``K`` (1 x 1) are constant weights of 4 to 4 channels, ``B`` a constant bias [1, 4, 1, 1].
    """
    known = {
        "I": script_ir,
        "R": script_relax,
        "T": script_tir,
        "X": script_relax.Tensor((1, 4, 8, 8), "float32"),
        "V": script_relax.Tensor((4,), "float32"),
        "W": const((4, 4, 3, 3), 1),
        "K": const((4, 4, 1, 1), 2),
        "B": const((1, 4, 1, 1), 3),
    }
    source = "@I.ir_module\nclass Module:\n" + textwrap.indent(textwrap.dedent(text), "    ")
    return tvm.script.from_source(source, extra_vars={**known, **names})


def flow(params: str, body: str, **names: Any) -> tvm.IRModule:
    """A module of one function ``main`` whose body is one dataflow block."""
    head = f"@R.function\ndef main({params}):\n    with R.dataflow():\n"
    body = textwrap.dedent(body).strip("\n")
    lines, _, last = body.rpartition("\n")
    if not last.startswith("return"):
        raise ValueError("the body ends with a return")
    return module(f"{head}{textwrap.indent(lines, '        ')}\n    {last}\n", **names)
