"""What TVM compiles: the module around the subgraphs, and the module without any."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import tvm
from tvm import relax

from byocviz.building.errors import BuildError
from byocviz.building.processor import must_be_known
from byocviz.errors import last_line
from byocviz.flow.relax.compat import attribute
from byocviz.flow.relax.compile import COMPILING, with_shapes_written_out


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
    if not _enabled(target.kind.name):
        raise BuildError(
            f"This TVM cannot compile and run for {target.kind.name!r} on this machine.",
            "Take target='llvm', or a machine and a TVM with it (byocviz doctor says what is "
            "there).",
        )
    meant, here = _processor(target), _processor(tvm.target.Target("llvm"))
    if target.kind.name == "llvm" and meant and here and meant != here:
        raise BuildError(
            f"The target is for the processor {meant}, and this machine is {here}: what is built "
            "runs here.",
            "Take target='llvm', or build on a machine of that kind.",
        )
    must_be_known(target)
    return target


def _enabled(kind: str) -> bool:
    # "c" gives source text, which nothing here compiles; others TVM knows by name alone.
    try:
        return kind != "c" and bool(tvm.runtime.enabled(kind))
    except Exception:
        return False


_SAME = {"amd64": "x86_64", "arm64": "aarch64"}


def _processor(target: tvm.target.Target) -> str:
    """The first part of LLVM's triple, ``x86_64``; "" where the target does not say."""
    name = str(target.attrs.get("mtriple", "") or "").partition("-")[0].lower()
    return _SAME.get(name, name)


def device_of(target: tvm.target.Target) -> Any:
    """Where code for the target runs: the first device of its kind."""
    kind = target.kind.name
    return tvm.device("cpu" if kind == "llvm" else kind, 0)


def compiled(module: tvm.IRModule, target: tvm.target.Target) -> Any:
    """The `tvm.relax.VMExecutable` by TVM's default pipeline for the target, untuned.

    Raises `BuildError` where TVM does not compile it.
    """
    try:
        with COMPILING, _context(module):
            return relax.build(_prepared(module), target)
    except Exception as error:
        raise BuildError(
            f"TVM does not compile the module for {target.kind.name}: {last_line(error)}",
            "Compile it alone (tvm.compile(mod, target)) to see whether the partition matters.",
        ) from error


def _prepared(module: tvm.IRModule) -> tvm.IRModule:
    """The module as TVM's pipeline takes it: local functions lifted, known shapes written out."""
    lifted = relax.transform.LambdaLift()(module)
    written = {
        var: with_shapes_written_out(function)
        for var, function in lifted.functions_items()
        if isinstance(function, relax.Function)
    }
    changed = {v: f for v, f in written.items() if not f.same_as(lifted[v])}
    if changed:
        lifted = lifted.clone()
        for var, function in changed.items():
            lifted[var] = function
    return lifted


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
