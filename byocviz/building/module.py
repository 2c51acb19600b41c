"""A partitioned module, built: subgraphs for a runtime, the rest compiled by TVM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import tvm
from tvm import relax

from byocviz.building.codegen import Offloaded, calling, machine, offload
from byocviz.building.errors import BuildError, last_line
from byocviz.building.lower import Lowered, lower
from byocviz.building.runtimes import Engine, Runtime, Tell, get
from byocviz.flow.relax.compat import attribute


@dataclass
class Runnable:
    """A module that was built. ``engines`` and ``lowered`` are by the subgraph's symbol."""

    entry: str
    offloaded: Offloaded
    executable: Any
    vm: Any
    device: Any
    lowered: dict[str, Lowered] = field(default_factory=dict)
    engines: dict[str, Engine] = field(default_factory=dict)

    def run(self, inputs: Mapping[str, Any] | Sequence[Any]) -> list[Any]:
        """The outputs in order, on the device; nested tuples are flattened.

        ``inputs`` are by parameter name or in order: NumPy arrays, or TVM's tensors.
        """
        function = self.offloaded.module[self.entry]
        if isinstance(inputs, Mapping):
            inputs = [inputs[param.name] for param in function.params]
        given = [self._tensor(value) for value in inputs]
        return list(_flat(self.vm[self.entry](*given)))

    def _tensor(self, value: Any) -> Any:
        if isinstance(value, tvm.runtime.Tensor):
            return value
        if isinstance(value, (list, tuple)):
            return [self._tensor(v) for v in value]
        return tvm.runtime.tensor(value, self.device)


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
    tell: Tell | None = None,
) -> Runnable:
    """Build a partitioned module.

    ``backend`` is whose external functions go to the ``runtime``; ``options`` are the runtime's.
    ``target`` is what TVM compiles the rest for: by default the CPU. ``operators`` are the ids of
    each subgraph's operators by symbol, as a recording has them (`Subgraph.op_ids`).

    Raises `LoweringError` before anything is built where a subgraph has no equal in ONNX, and
    `BuildError` where the runtime refuses one or TVM does not compile what is left.
    """
    say = tell or (lambda text: None)
    offloaded = offload(_public(module, entry), codegen=codegen)
    chosen = get(runtime)
    others = [s for s, f in offloaded.functions.items() if f.attrs["Codegen"] != backend]
    if others:
        raise BuildError(
            f"The subgraph {others[0]} is not of the backend {backend!r}.",
            "Build the module with the backend that it was partitioned for.",
        )
    ids = operators or {}
    lowered = {
        symbol: lower(function, name=symbol, operators=ids.get(symbol))
        for symbol, function in offloaded.functions.items()
    }
    engines: dict[str, Engine] = {}
    for number, (symbol, subgraph) in enumerate(lowered.items(), start=1):
        say(f"engine {number} of {len(lowered)}: {symbol}")
        engines[symbol] = chosen.build(subgraph, options, tell)
    say("compiling what is left on TVM")
    goal = _target(target)
    try:
        with _context(offloaded.module):
            executable = relax.build(relax.transform.LambdaLift()(offloaded.module), goal)
    except Exception as error:
        raise BuildError(
            f"TVM does not compile what is left of the module: {last_line(error)}",
            "Compile the module alone (tvm.compile) to see whether the partition matters.",
        ) from error
    device = tvm.device(goal.kind.name if goal.kind.name != "llvm" else "cpu", 0)
    functions = {symbol: calling(engine) for symbol, engine in engines.items()}
    vm = machine(executable, functions, device)
    return Runnable(entry, offloaded, executable, vm, device, lowered, engines)


def _public(module: tvm.IRModule, entry: str) -> tvm.IRModule:
    """The module with its entry under a global symbol: without, TVM takes it for unused."""
    var = next((v for v in module.get_global_vars() if v.name_hint == entry), None)
    if var is None:
        known = ", ".join(sorted(str(v.name_hint) for v in module.get_global_vars()))
        raise BuildError(f"The module has no function {entry!r}.", f"Its functions: {known}.")
    if attribute(module[var], "global_symbol"):
        return module
    module = module.clone()
    module[var] = module[var].with_attr("global_symbol", entry)
    return module


@tvm.instrument.pass_instrument
class _Unplanned:
    def should_run(self, module: Any, info: Any) -> bool:
        return str(info.name) != "StaticPlanBlockMemory"


def _context(module: tvm.IRModule) -> Any:
    """The pass context for compiling: the one at hand.

    Where the module has branches, memory is not planned ahead: that lets both branches share
    storage which only one of them allocates, and the other crashes (TVM 0.26 and 0.27).
    """
    if not any(_branches(f) for _, f in module.functions_items()):
        return nullcontext()
    now = tvm.transform.PassContext.current()
    return tvm.transform.PassContext(
        opt_level=now.opt_level,
        config=dict(now.config),
        instruments=[*(now.instruments or ()), _Unplanned()],
    )


def _branches(function: Any) -> bool:
    found: list[Any] = []

    def visit(expr: Any) -> None:
        if isinstance(expr, relax.If):
            found.append(expr)

    if isinstance(function, relax.Function):
        relax.analysis.post_order_visit(function, visit)
    return bool(found)


def _target(target: Any) -> tvm.target.Target:
    if isinstance(target, tvm.target.Target):
        return target
    return tvm.target.Target(target if target is not None else {"kind": "llvm"})


def _flat(value: Any) -> Any:
    if isinstance(value, tvm.runtime.Tensor) or not hasattr(value, "__iter__"):
        yield value
    else:
        for field_ in value:
            yield from _flat(field_)
