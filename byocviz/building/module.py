"""A partitioned module, built: subgraphs for a runtime, the rest compiled by TVM."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import tvm
import tvm_ffi
from tvm import relax

from byocviz.building.cache import EngineCache
from byocviz.building.codegen import Offloaded, calling, machine, offload
from byocviz.building.compiled import compiled, device_of, public, target_of
from byocviz.building.engines import BuiltEngine
from byocviz.building.failures import Failures
from byocviz.building.isolate import Cancel
from byocviz.building.latency import Stopwatch
from byocviz.building.lower import Lowered, lower
from byocviz.building.runnable import Reference
from byocviz.building.runtimes import Engine, Runtime
from byocviz.building.subgraphs import Tell, build_subgraphs, of_backend
from byocviz.building.tensors import Inputs, checked, signature
from byocviz.building.tree import tree
from byocviz.building.variants import TvmAlone
from byocviz.flow.relax.compile import compile_module
from byocviz.flow.relax.inputs import seeded_inputs
from byocviz.flow.relax.verify import flat, own, run_module
from byocviz.recording.results import ModuleNode


@dataclass
class Runnable:
    """A Relax module that was built. See `byocviz.building.runnable.BuiltModule`."""

    entry: str
    offloaded: Offloaded
    executable: Any
    """TVM's `VMExecutable`."""
    target: tvm.target.Target
    device: Any
    lowered: dict[str, Lowered] = field(default_factory=dict)
    built: dict[str, BuiltEngine] = field(default_factory=dict)
    lower_seconds: float = 0.0
    tvm_seconds: float = 0.0
    library: Path | None = None
    """The file that it was loaded from, where it was."""

    def __post_init__(self) -> None:
        self._failures = Failures()
        self.stopwatch = Stopwatch(self.device.sync)
        functions = {
            symbol: self.stopwatch.watched(symbol, calling(one.engine))
            for symbol, one in self.built.items()
        }
        self.vm = machine(self.executable, self._failures.noting(functions), self.device)

    @property
    def engines(self) -> dict[str, Engine]:
        return {symbol: one.engine for symbol, one in self.built.items()}

    @property
    def function(self) -> relax.Function:
        """The entry, whose parameters are the inputs."""
        return self.offloaded.module[self.entry]

    def place(self, inputs: Inputs) -> list[Any]:
        """The inputs on the device, as the machine takes them.

        Raises `ModuleError` where one is missing, unknown, or of another shape or dtype.
        """
        params = self.function.params
        values = checked(self.function, self.entry, inputs)
        return [own(p.ty, v, self.device) for p, v in zip(params, values, strict=True)]

    def call(self, placed: Sequence[Any], vm: Any = None) -> Any:
        """The result on the device, once it is there; ``placed`` are of `place`.

        Raises `EngineError` where an engine fails.
        """
        with self._failures:
            result = (vm or self.vm)[self.entry](*placed)
            self.device.sync()
        return result

    def run(self, inputs: Inputs) -> list[Any]:
        """The outputs in order, on the device; nested tuples are taken apart."""
        return list(_tensors(self.call(self.place(inputs))))

    # -- what a Build asks

    @property
    def names(self) -> list[str]:
        return [str(param.name) for param in self.function.params]

    def signature(self) -> str:
        return signature(self.function)

    def checked(self, inputs: Inputs) -> list[Any]:
        return checked(self.function, self.entry, inputs)

    def seeded(self, seed: int) -> dict[str, Any]:
        return seeded_inputs(self.offloaded.module, self.entry, seed=seed)

    def arrays(self, result: Any) -> list[np.ndarray]:
        return list(flat(result))

    def with_engines(self, engines: Mapping[str, Any]) -> Any:
        calls = {symbol: calling(engine) for symbol, engine in engines.items()}
        return machine(self.executable, self._failures.noting(calls), self.device)

    def alone(self, module: tvm.IRModule) -> TvmAlone:
        return TvmAlone.of(module, self.entry, self.target, self.device)

    def lower_whole(self, module: tvm.IRModule) -> tuple[Lowered, list[str]]:
        function = module[self.entry]
        names = [str(param.name) for param in function.params]
        return lower(function, name=self.entry, module=module), names

    def same(self, one: tvm.IRModule, other: tvm.IRModule) -> bool:
        return bool(tvm_ffi.structural_equal(one, other))

    def imported(self, module: tvm.IRModule, params: Any) -> tvm.IRModule:
        from byocviz.flow.relax.prepare import bind
        from byocviz.flow.relax.prepare.context import PrepareContext

        return bind.run(module, PrepareContext(params, self.entry))

    def reference(self, imported: tvm.IRModule, inputs: Mapping[str, Any]) -> list[np.ndarray]:
        # Preparing may have bound or dropped parameters; it adds none.
        taken = {str(p.name): inputs[str(p.name)] for p in imported[self.entry].params}
        return list(run_module(imported, self.entry, taken))

    def references(self, module: tvm.IRModule) -> dict[str, Reference]:
        # As plain functions of one module, each under its symbol.
        alone = relax.VirtualMachine(compile_module(module, self.entry), tvm.cpu())

        def of(symbol: str, params: Sequence[Any]) -> Reference:
            return lambda tensors: list(flat(alone[symbol](*_arguments(params, tensors))))

        return {s: of(s, f.params) for s, f in self.offloaded.functions.items()}

    def tree(self, engines: Mapping[str, str]) -> list[ModuleNode]:
        return tree(self.executable, engines)


def build_module(
    module: tvm.IRModule,
    backend: str = "tensorrt",
    runtime: str | Runtime = "onnxruntime",
    target: Any = None,
    *,
    entry: str = "main",
    options: Mapping[str, Any] | None = None,
    codegen: str = "python",
    operators: Mapping[str, Sequence[int]] | None = None,
    time_limit: float | None = 600.0,
    isolate: bool = True,
    cache: EngineCache | None = None,
    cancel: Cancel | None = None,
    tell: Tell | None = None,
) -> Runnable:
    """Build a partitioned module.

    ``backend`` is whose external functions go to the ``runtime``; ``options`` are the runtime's
    (with ``codegen="native"``, those of TVM's codegen). ``target`` is what TVM compiles the rest
    for: by default the CPU. ``operators`` are the ids of each subgraph's operators by symbol, as a
    recording has them (`Subgraph.op_ids`). For ``time_limit``, ``isolate``, ``cache`` and
    ``cancel`` see `byocviz.building.engines.build_engines`.

    Raises `LoweringError` before anything is built where a subgraph has no equal in ONNX,
    `BuildError` where the runtime refuses one or TVM does not compile what is left, and
    `BuildCancelled`.
    """
    goal = target_of(target)
    native = codegen == "native"
    offloaded = offload(
        public(module, entry),
        codegen=codegen,
        options={backend: dict(options)} if native and options else None,
    )
    of_backend({s: f.attrs["Codegen"] for s, f in offloaded.functions.items()}, backend)
    ids = operators or {}
    subgraphs = build_subgraphs(
        offloaded.functions,
        lambda symbol, function: lower(function, name=symbol, operators=ids.get(symbol)),
        runtime,
        None if native else options,
        time_limit=time_limit,
        isolate=isolate,
        cache=cache,
        cancel=cancel,
        tell=tell,
    )
    start = time.perf_counter()
    executable = compiled(offloaded.module, goal)
    seconds = time.perf_counter() - start
    if cancel is not None:
        cancel.check()
    return Runnable(
        entry,
        offloaded,
        executable,
        goal,
        device_of(goal),
        subgraphs.lowered,
        subgraphs.built,
        subgraphs.lower_seconds,
        seconds,
    )


def _arguments(params: Sequence[Any], tensors: Sequence[np.ndarray]) -> list[Any]:
    """The arguments of an external function, of the tensors that its engine was given."""
    left = iter(tensors)

    def argument(ty: Any) -> Any:
        if isinstance(ty, relax.TupleType):
            return tuple(argument(field) for field in ty.fields)
        if isinstance(ty, relax.ShapeType):
            return tvm.runtime.ShapeTuple([int(dim) for dim in ty.values])
        return own(ty, next(left))

    return [argument(param.ty) for param in params]


def _tensors(value: Any) -> Any:
    if isinstance(value, tvm.runtime.Tensor) or not hasattr(value, "__iter__"):
        yield value
    else:
        for one in value:
            yield from _tensors(one)
