"""What TVM compiles: the module around the subgraphs, and the module without any."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import tvm
from tvm import relax

from byocviz.building.errors import BuildError, last_line
from byocviz.flow.relax.compat import attribute


def target_of(target: Any) -> tvm.target.Target:
    """A target, or what TVM makes one of (a name, a dictionary); None is the CPU.

    Raises `BuildError` for one that TVM does not know, or whose code this TVM cannot make.
    """
    if not isinstance(target, tvm.target.Target):
        try:
            target = tvm.target.Target({"kind": "llvm"} if target is None else target)
        except Exception as error:
            raise BuildError(
                f"TVM takes no target {target!r}: {last_line(error)}",
                'Give a name ("llvm", "cuda"), a dictionary ({"kind": "llvm", "mcpu": ...}) or a '
                "tvm.target.Target.",
            ) from error
    if not tvm.runtime.enabled(target.kind.name) and target.kind.name != "c":
        raise BuildError(
            f"This TVM cannot compile and run for {target.kind.name!r} on this machine.",
            "Take target='llvm', or a machine and a TVM with it (byocviz doctor says what is "
            "there).",
        )
    return target


def device_of(target: tvm.target.Target) -> Any:
    """Where code for the target runs: the first device of its kind."""
    kind = target.kind.name
    return tvm.device("cpu" if kind in ("llvm", "c") else kind, 0)


def compiled(module: tvm.IRModule, target: tvm.target.Target) -> Any:
    """The `tvm.relax.VMExecutable` by TVM's default pipeline for the target, untuned.

    Raises `BuildError` where TVM does not compile it.
    """
    try:
        with _context(module):
            return relax.build(relax.transform.LambdaLift()(module), target)
    except Exception as error:
        raise BuildError(
            f"TVM does not compile the module for {target.kind.name}: {last_line(error)}",
            "Compile it alone (tvm.compile(mod, target)) to see whether the partition matters.",
        ) from error


def public(module: tvm.IRModule, entry: str) -> tvm.IRModule:
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
