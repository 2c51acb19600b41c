"""What the latency comparison compares: things that run the model, or a part of it, once."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from byocviz.building.errors import LoweringError
from byocviz.building.lower.lowered import Lowered
from byocviz.building.runtimes import Engine
from byocviz.building.runtimes.base import blamed
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


class Alone(Protocol):
    """A module compiled by TVM alone."""

    first: First

    @property
    def names(self) -> list[str]:
        """Of the inputs, in order."""

    def prepare(self, inputs: Any) -> Run:
        """A run with these inputs, which are put on the device now."""

    def outputs(self, inputs: Any) -> list[np.ndarray]:
        """The results as arrays, nested tuples taken apart."""


@dataclass
class TvmAlone:
    """A Relax module compiled by TVM's default pipeline, untuned."""

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
        import tvm

        from byocviz.building.compiled import compiled, public

        start = time.perf_counter()
        module = public(module, entry)
        vm = tvm.relax.VirtualMachine(compiled(module, target), device)
        return cls(entry, module[entry], vm, device, time.perf_counter() - start)

    @property
    def names(self) -> list[str]:
        return [str(param.name) for param in self.function.params]

    def prepare(self, inputs: Any) -> Run:
        """A run with these inputs, which are put on the device now."""
        from byocviz.building.tensors import checked
        from byocviz.flow.relax.verify import own

        values = checked(self.function, self.entry, inputs)
        params = self.function.params
        placed = [own(p.ty, v, self.device) for p, v in zip(params, values, strict=True)]

        def run() -> Any:
            result = self.vm[self.entry](*placed)
            self.device.sync()
            return result

        return self.first.watched(run)

    def outputs(self, inputs: Any) -> list[np.ndarray]:
        """The results as arrays, nested tuples taken apart."""
        from byocviz.flow.relax.verify import flat

        return list(flat(self.prepare(inputs)()))


@dataclass
class Whole:
    """The runtime alone on the whole model; without an engine it cannot, and ``cannot`` is the
    operator (or the cause, in short) that stands in the way."""

    engine: Engine | None
    names: list[str] = field(default_factory=list)
    """Of the parameters of the function that it is of."""
    cannot: str = ""
    detail: str = ""
    what: str = "the whole model, as one graph"
    first: First = field(default_factory=First)

    @classmethod
    def of(
        cls, lower: Callable[[], tuple[Lowered, list[str]]], build: Callable[[Lowered], Engine]
    ) -> Whole:
        """``lower`` gives the model and the parameters' names, ``build`` makes the engine."""
        lowered = None
        try:
            lowered, names = lower()
            return cls(build(lowered), names)
        except LoweringError as error:
            return cls(None, cannot=_in_the_way(error), detail=f"{error.why} ({_MODULE})")
        except ByocvizError as error:
            operator = _operator_in(lowered, error.message)
            cannot = operator or error.message.partition("\n")[0][:120]
            return cls(None, cannot=cannot, detail=error.message)


_MODULE = "recorded from an ONNX file, the file itself would be run"


def _operator_in(lowered: Lowered | None, text: str) -> str:
    """The operator that a runtime's refusal is about, as far as it names one."""
    if lowered is None:
        return ""
    found = lowered.calls.get(blamed(lowered, text), "")
    names = [found] if found else {op for op in lowered.calls.values() if f"{op}: " in text}
    return max(names, key=len, default="").removeprefix("relax.")


def _in_the_way(error: LoweringError) -> str:
    """What ONNX has no equal for, in words."""
    operator = error.operator.removeprefix("relax.")
    if operator.startswith("call_") and error.value:
        what = "the TIR function" if "tir" in operator else "the external function"
        return f"{what} {error.value}, which ONNX does not have"
    return operator


def calling(engine: Engine, device: Any, inputs: Sequence[Any]) -> Run:
    """A run of an engine into tensors on the device that are made once.

    ``inputs`` are arrays, in the engine's order.
    """
    import tvm

    if not hasattr(tvm.runtime, "tensor"):
        return _calling_on_cpu(engine, inputs)
    given = [tvm.runtime.tensor(np.ascontiguousarray(a).reshape(a.shape), device) for a in inputs]
    outputs = [tvm.runtime.empty(port.shape, port.dtype, device) for port in engine.outputs]

    def run() -> Any:
        engine.run_into(given, outputs)
        device.sync()
        return outputs

    return run


def _calling_on_cpu(engine: Engine, inputs: Sequence[Any]) -> Run:
    """The same for the TVM that has Relay, whose tensors engines see as NumPy's."""
    import tvm

    from byocviz.building.relay.codegen import view

    given = [np.ascontiguousarray(a).reshape(a.shape) for a in inputs]
    outputs = [tvm.nd.empty(port.shape, port.dtype) for port in engine.outputs]
    written = [view(tensor) for tensor in outputs]

    def run() -> Any:
        engine.run_into(given, written)
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
