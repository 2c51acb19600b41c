"""What the latency comparison compares: things that run the model, or a part of it, once."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from byocviz.building.errors import LoweringError
from byocviz.building.lower.lowered import Lowered
from byocviz.building.runtimes import Engine
from byocviz.errors import ByocvizError

if TYPE_CHECKING:
    import tvm

Run = Callable[[], Any]
"""Runs once, and comes back when the result is there."""


@dataclass
class First:
    """Remembers what the very first run took."""

    seconds: float | None = None

    def watched(self, run: Run) -> Run:
        """The same run, which is timed where it is the first."""

        def watched() -> Any:
            if self.seconds is not None:
                return run()
            start = time.perf_counter()
            result = run()
            self.seconds = time.perf_counter() - start
            return result

        return watched


@dataclass
class TvmAlone:
    """The module as it was imported, compiled by TVM's default pipeline, untuned."""

    entry: str
    function: Any
    vm: Any
    device: Any
    seconds: float
    """What compiling took."""
    first: First = field(default_factory=First)

    @classmethod
    def of(cls, module: tvm.IRModule, entry: str, target: Any, device: Any) -> TvmAlone:
        """Raises `BuildError` where TVM does not compile it."""
        start = time.perf_counter()
        module = public(module, entry)
        vm = tvm.relax.VirtualMachine(compiled(module, target), device)
        return cls(entry, module[entry], vm, device, time.perf_counter() - start)

    def prepare(self, inputs: Inputs) -> Run:
        """A run with these inputs, which are put on the device now."""
        values = checked(self.function, self.entry, inputs)
        params = self.function.params
        placed = [own(p.ty, v, self.device) for p, v in zip(params, values, strict=True)]

        def run() -> Any:
            result = self.vm[self.entry](*placed)
            self.device.sync()
            return result

        return self.first.watched(run)

    def outputs(self, inputs: Inputs) -> list[np.ndarray]:
        """The results as arrays, nested tuples taken apart."""
        return list(flat(self.prepare(inputs)()))


@dataclass
class Whole:
    """The runtime alone on the whole model; without an engine it cannot, and ``cannot`` is the
    operator (or the cause, in short) that stands in the way."""

    engine: Engine | None
    function: Any = None
    """The Relax function that it is of."""
    cannot: str = ""
    detail: str = ""
    first: First = field(default_factory=First)

    @classmethod
    def of(cls, module: tvm.IRModule, entry: str, build: Callable[[Lowered], Engine]) -> Whole:
        """``module`` holds no subgraphs; ``build`` makes the engine."""
        try:
            function = module[entry]
            return cls(build(lower(function, name=entry, module=module)), function)
        except LoweringError as error:
            operator = error.operator.removeprefix("relax.")
            return cls(None, cannot=operator, detail=error.message)
        except ByocvizError as error:
            operator = str(getattr(error, "operator", "")).removeprefix("relax.")
            cannot = operator or error.message.partition("\n")[0][:120]
            return cls(None, cannot=cannot, detail=error.message)


def calling(engine: Engine, device: Any, inputs: Sequence[Any]) -> Run:
    """A run of an engine into tensors on the device that are made once.

    ``inputs`` are arrays, in the engine's order.
    """
    given = [tvm.runtime.tensor(np.ascontiguousarray(a).reshape(a.shape), device) for a in inputs]
    outputs = [tvm.runtime.empty(port.shape, port.dtype, device) for port in engine.outputs]

    def run() -> Any:
        engine.run_into(given, outputs)
        device.sync()
        return outputs

    return run


def engine_inputs(engine: Engine, values: Sequence[Any]) -> list[np.ndarray]:
    """What an engine of a whole function takes, of checked inputs in the parameters' order."""
    taken = []
    for port in engine.inputs:
        value = values[port.parameter]
        for index in port.path:
            value = value[index]
        taken.append(np.asarray(value))
    return taken
