"""Unused bindings and functions nobody calls: TVM's DeadCodeElimination."""

from __future__ import annotations

from typing import Any

from tvm import relax

from byocviz.flow.relax import surgery as s
from byocviz.flow.relax.prepare.context import PrepareContext, RewriteSpec

TVM_RAISED = "a module on which TVM's pass raised an error"


def run(mod: Any, ctx: PrepareContext) -> Any:
    """See `SPEC`."""
    # Without a name the pass keeps public functions only, and drops a private entry.
    names = {str(gv.name_hint) for gv in mod.get_global_vars()}
    entry = [ctx.entry] if ctx.entry in names else []
    try:
        made = relax.transform.DeadCodeElimination(entry)(mod)
    except Exception:  # whatever TVM raises, the module stays as it was
        ctx.leave(TVM_RAISED)
        return mod
    gone = _size(mod) - _size(made)
    if gone <= 0:
        return mod
    ctx.count = gone
    return made


def _size(mod: Any) -> int:
    """Functions, PrimFuncs and bindings."""
    return len(mod.functions) + sum(
        len(block.bindings) for _, func in s.relax_functions(mod) for block in s.blocks_of(func)
    )


SPEC = RewriteSpec(
    name="dead-code",
    text="Operators whose result nothing reads, and private functions that nothing calls, go.",
    origin="tvm",
    assumes="",
    call='from tvm import relax\nmod = relax.transform.DeadCodeElimination(["main"])(mod)',
    run=run,
)
