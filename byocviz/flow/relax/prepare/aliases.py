"""A variable bound to a variable, and an element of a tuple made here, are read directly.

MergeCompositeFunctions joins composite functions that read each other directly; it does not see
through a tuple that was made only to be taken apart again (as decomposed batch norms leave it).
"""

from __future__ import annotations

from typing import Any

from tvm import relax

from byocviz.flow.relax import surgery as s
from byocviz.flow.relax.prepare.context import PrepareContext, RewriteSpec

TVM_RAISED = "variables bound to variables or to elements on which TVM's pass raised an error"


def run(mod: Any, ctx: PrepareContext) -> Any:
    """See `SPEC`."""
    before = _aliases(mod)
    if not before:
        return mod
    try:
        made = relax.transform.CanonicalizeBindings()(mod)
    except Exception:  # whatever TVM raises, the module stays as it was
        ctx.leave(TVM_RAISED, before)
        return mod
    ctx.count = before - _aliases(made)
    return made if ctx.count else mod


def _aliases(mod: Any) -> int:
    """Bindings to a variable or to an element of a tuple."""
    return sum(
        isinstance(binding.value, (relax.Var, relax.TupleGetItem))
        for _, func in s.relax_functions(mod)
        for block in s.blocks_of(func)
        for binding in block.bindings[:]
    )


SPEC = RewriteSpec(
    name="aliases",
    text="Variables that stand for variables, and elements of tuples that were made in the same "
    "function, are read directly: TVM joins only composite functions that read each other so.",
    origin="tvm",
    assumes="",
    call="from tvm import relax\nmod = relax.transform.CanonicalizeBindings()(mod)",
    run=run,
)
