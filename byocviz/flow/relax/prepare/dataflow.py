"""Pure operators outside a dataflow block go into one: TVM's ConvertToDataflow.

FuseOpsByPattern looks into dataflow blocks only. Branches of an If and local functions count.
"""

from __future__ import annotations

from typing import Any

from tvm import relax

from byocviz.flow.relax import surgery as s
from byocviz.flow.relax.prepare.context import PrepareContext, RewriteSpec

TVM_RAISED = "operators outside a dataflow block on which TVM's pass raised an error"
STAYED = "operators outside a dataflow block that TVM's pass did not move"


def run(mod: Any, ctx: PrepareContext) -> Any:
    """See `SPEC`."""
    outside = _outside(mod)
    if not outside:
        return mod
    blocks = _blocks(mod)
    try:
        # A block of one operator is worth having: a rule may take that operator.
        made = relax.transform.ConvertToDataflow(1)(mod)
    except Exception:  # whatever TVM raises, the module stays as it was
        ctx.leave(TVM_RAISED, outside)
        return mod
    still = _outside(made)
    if still:
        ctx.leave(STAYED, still)
    if still == outside:
        return mod
    ctx.count = max(_blocks(made) - blocks, 1)
    return made


def _blocks(mod: Any) -> int:
    return sum(
        isinstance(block, relax.DataflowBlock)
        for _, func in s.relax_functions(mod)
        for block in s.blocks_of(func)
    )


def _outside(mod: Any) -> int:
    """Pure calls (of operators and of functions) that stand outside of a dataflow block."""
    calls = [
        binding.value
        for _, func in s.relax_functions(mod)
        for block in s.blocks_of(func)
        if not isinstance(block, relax.DataflowBlock)
        for binding in block.bindings
        if isinstance(binding.value, relax.Call)
    ]
    return sum(not relax.analysis.contains_impure_call(call) for call in calls)


SPEC = RewriteSpec(
    name="dataflow-blocks",
    text="Pure operators that stand outside of a dataflow block, in branches too, are put in one: "
    "TVM partitions nothing else.",
    origin="tvm",
    assumes="",
    call="from tvm import relax\nmod = relax.transform.ConvertToDataflow(1)(mod)",
    run=run,
)
