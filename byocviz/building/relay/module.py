"""A partitioned Relay module, built: subgraphs for a runtime, the rest compiled by TVM."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import tvm

from byocviz.building.cache import EngineCache
from byocviz.building.engines import BuiltEngine
from byocviz.building.errors import BuildError
from byocviz.building.failures import Failures
from byocviz.building.isolate import Cancel
from byocviz.building.latency import Stopwatch
from byocviz.building.lower.lowered import Lowered
from byocviz.building.relay.codegen import calling, external, running
from byocviz.building.relay.compiled import Compiled, compiled, placed, target_of
from byocviz.building.relay.inputs import checked, seeded_inputs, signature
from byocviz.building.relay.lower import lower
from byocviz.building.runnable import Reference
from byocviz.building.runtimes import Engine, Runtime
from byocviz.building.subgraphs import Tell, build_subgraphs, of_backend
from byocviz.building.variants import First, Run
from byocviz.flow.relay.compat import attribute, plain, typed
from byocviz.flow.relay.verify import flat
from byocviz.recording.results import ModuleNode


@dataclass
class RelayRunnable:
    """A Relay module that was built. See `byocviz.building.runnable.BuiltModule`."""

    entry: str
    function: Any
    """The entry, whose parameters are the inputs."""
    functions: dict[str, Any]
    """The external functions by symbol; none of a build that was kept."""
    executable: Compiled
    target: tvm.target.Target
    lowered: dict[str, Lowered] = field(default_factory=dict)
    built: dict[str, BuiltEngine] = field(default_factory=dict)
    lower_seconds: float = 0.0
    tvm_seconds: float = 0.0
    library: Path | None = None
    """The file that it was loaded from, where it was."""

    def __post_init__(self) -> None:
        self.device = tvm.cpu()
        self._failures = Failures()
        self.stopwatch = Stopwatch(self.device.sync)
        self._imported: tuple[Any, Any] | None = None
        self._alone: tuple[Any, RelayAlone] | None = None
        calls = {s: self.stopwatch.watched(s, calling(e)) for s, e in self.engines.items()}
        self.calls = self._failures.noting(calls)

    @property
    def engines(self) -> dict[str, Engine]:
        return {symbol: one.engine for symbol, one in self.built.items()}

    @property
    def names(self) -> list[str]:
        return [plain(param.name_hint) for param in self.function.params]

    def signature(self) -> str:
        return signature(self.function)

    # -- running

    def checked(self, inputs: Any) -> list[Any]:
        return checked(self.function, self.entry, inputs)

    def seeded(self, seed: int) -> dict[str, Any]:
        return seeded_inputs(self.function, seed)

    def place(self, inputs: Any) -> list[Any]:
        return [placed(value) for value in self.checked(inputs)]

    def call(self, values: Sequence[Any], vm: Any = None) -> Any:
        with self._failures, running(self.calls if vm is None else vm):
            return self.executable.run(values)

    def arrays(self, result: Any) -> list[np.ndarray]:
        return flat(result)

    def with_engines(self, engines: Mapping[str, Any]) -> Any:
        """What `call` takes, so that these stand for the engines."""
        calls = {symbol: calling(engine) for symbol, engine in engines.items()}
        return self._failures.noting(calls)

    def run(self, inputs: Any) -> list[np.ndarray]:
        """The outputs in order; nested tuples are taken apart."""
        return self.arrays(self.call(self.place(inputs)))

    # -- TVM and the runtime by themselves

    def alone(self, module: tvm.IRModule) -> RelayAlone:
        # To compile a network takes minutes: it is done once for timing and for comparing.
        if self._alone is None or not self._alone[0].same_as(module):
            self._alone = module, RelayAlone.of(module, self.entry, self.target)
        return self._alone[1]

    def lower_whole(self, module: tvm.IRModule) -> tuple[Lowered, list[str]]:
        function = module[self.entry]
        names = [plain(param.name_hint) for param in function.params]
        return lower(function, name=self.entry, module=module), names

    def same(self, one: tvm.IRModule, other: tvm.IRModule) -> bool:
        return bool(tvm.ir.structural_equal(one, other, map_free_vars=True))

    def imported(self, module: tvm.IRModule, params: Any) -> tvm.IRModule:
        from byocviz.flow.relay.prepare import rewrite

        if self._imported is None or not self._imported[0].same_as(module):
            bound = rewrite("bind-parameters").run(module, self.entry, params)
            self._imported = module, bound
        return self._imported[1]

    def reference(self, imported: tvm.IRModule, inputs: Mapping[str, Any]) -> list[np.ndarray]:
        alone = self.alone(imported)  # which is of the CPU, as all of a Relay build
        return alone.outputs({name: inputs[name] for name in alone.names})

    def references(self, module: tvm.IRModule) -> dict[str, Reference]:
        return {symbol: _reference(function) for symbol, function in self.functions.items()}

    def tree(self, engines: Mapping[str, str]) -> list[ModuleNode]:
        nodes: list[ModuleNode] = []

        def add(module: Any, parent: int) -> None:
            here = len(nodes)
            symbol = next((s for s in self.built if _has(module, s)), "")
            nodes.append(ModuleNode(plain(module.type_key), symbol, parent=parent))
            for imported in module.imported_modules:
                add(imported, here)
            if symbol in engines:
                nodes.append(ModuleNode("engine", symbol, engines[symbol], here))

        add(self.executable.module, -1)
        return nodes


def _has(module: Any, symbol: str) -> bool:
    if plain(module.type_key) != "llvm":
        return False
    try:
        return bool(module.implements_function(symbol, False))
    except Exception:
        return False


@dataclass
class RelayAlone:
    """A module compiled by TVM alone."""

    entry: str
    function: Any
    executable: Compiled
    seconds: float
    """What compiling took."""
    first: First = field(default_factory=First)

    @classmethod
    def of(cls, module: tvm.IRModule, entry: str, target: Any) -> RelayAlone:
        """``module`` holds no subgraphs. Raises `BuildError` where TVM does not compile it."""
        from byocviz.flow.relay.plain import plain_module

        start = time.perf_counter()
        module = plain_module(module)
        made = compiled(module, entry, target)
        return cls(entry, module[entry], made, time.perf_counter() - start)

    @property
    def names(self) -> list[str]:
        return [plain(param.name_hint) for param in self.function.params]

    def prepare(self, inputs: Any) -> Run:
        """A run with these inputs."""
        values = [placed(value) for value in checked(self.function, self.entry, inputs)]
        return self.first.watched(lambda: self.executable.run(values))

    def outputs(self, inputs: Any) -> list[np.ndarray]:
        return flat(self.prepare(inputs)())


def _reference(function: Any) -> Reference:
    """An external function compiled by TVM alone, when it is first asked."""
    made: list[RelayAlone] = []

    def run(tensors: Sequence[np.ndarray]) -> list[np.ndarray]:
        from tvm import relay

        if not made:
            body = relay.Function(function.params, function.body, function.ret_type)
            module = typed(tvm.IRModule({relay.GlobalVar("main"): body}))
            made.append(RelayAlone.of(module, "main", target_of(None)))
        left = iter(tensors)

        def argument(ty: Any) -> Any:
            if isinstance(ty, relay.TupleType):
                return tuple(argument(field) for field in ty.fields)
            return next(left)

        return made[0].outputs([argument(param.checked_type) for param in function.params])

    return run


def build_relay(
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
) -> RelayRunnable:
    """Build a partitioned Relay module; the arguments are those of
    `byocviz.building.module.build_module`, and so is what it raises."""
    goal = target_of(target)
    if codegen != "python":
        raise BuildError(
            f"There is no codegen {codegen!r} for Relay here.",
            "Say 'python': subgraphs go to byocviz's runtimes. TVM's own is TVM's relay.build.",
        )
    functions = external(module)
    of_backend({s: plain(attribute(f, "Compiler")) for s, f in functions.items()}, backend)
    ids = operators or {}
    subgraphs = build_subgraphs(
        functions,
        lambda symbol, function: lower(
            function, name=symbol, module=module, operators=ids.get(symbol)
        ),
        runtime,
        options,
        time_limit=time_limit,
        isolate=isolate,
        cache=cache,
        cancel=cancel,
        tell=tell,
    )
    start = time.perf_counter()
    executable = compiled(module, entry, goal)
    seconds = time.perf_counter() - start
    return RelayRunnable(
        entry,
        module[entry],
        functions,
        executable,
        goal,
        subgraphs.lowered,
        subgraphs.built,
        subgraphs.lower_seconds,
        seconds,
    )
