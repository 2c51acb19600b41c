"""Batch norms that could not be folded, as arithmetic: TVM's DecomposeOpsForInference."""

from __future__ import annotations

from typing import Any

from tvm import relax

from byocviz.flow.relax import surgery as s
from byocviz.flow.relax.prepare.batch_norm import BATCH_NORM, TRAINING
from byocviz.flow.relax.prepare.context import PrepareContext, RewriteSpec

LOWERS_SHAPES = (
    "a batch_norm in a function with tensor_to_shape: TVM's pass would lower that as well"
)
TVM_RAISED = "a batch_norm on which TVM's pass raised an error"


def run(mod: Any, ctx: PrepareContext) -> Any:
    """See `SPEC`."""
    for gv, func in s.relax_functions(mod):
        calls = list(s.calls_in(func))
        norms = [call for call in calls if s.op_name(call) == BATCH_NORM]
        if not norms:
            continue
        # The pass takes a whole function, and inference for granted.
        training = sum(bool(norm.attrs.training) for norm in norms)
        if training:
            ctx.leave(TRAINING, training)
        elif any(s.op_name(call) == "relax.tensor_to_shape" for call in calls):
            ctx.leave(LOWERS_SHAPES, len(norms))
        else:
            try:
                mod = relax.transform.DecomposeOpsForInference(gv.name_hint)(mod)
            except Exception:  # whatever TVM raises, the module stays as it was
                ctx.leave(TVM_RAISED, len(norms))
            else:
                ctx.count += len(norms)
    return mod


SPEC = RewriteSpec(
    name="decompose-batch-norm",
    text="Batch norms that are left become subtract, divide, multiply and add.",
    origin="tvm",
    assumes="Floats may round otherwise.",
    call="from tvm import relax\nmod = relax.transform.DecomposeOpsForInference()(mod)",
    run=run,
)
