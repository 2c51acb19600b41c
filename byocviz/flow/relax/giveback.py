"""Gives subgraphs that do not pay back to TVM: their operators stand where they stood before."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tvm
from tvm import relax

from byocviz.flow.relax.inline import Inliner, rebind


def prune(module: tvm.IRModule, names: Iterable[str]) -> tvm.IRModule:
    """The module with the external functions of these names put back into their callers.

    The operators come out of their composite functions too. The module itself is returned where
    no name is given. Raises ValueError for a name that the module does not have.
    """
    wanted = set(names)
    if not wanted:
        return module
    going = {v: f for v, f in module.functions.items() if v.name_hint in wanted}
    if unknown := wanted - {v.name_hint for v in going}:
        raise ValueError(f"the module has no function {', '.join(sorted(unknown))}")
    inliner = Inliner(going)
    kept: dict[Any, Any] = {}
    for var, function in module.functions.items():
        if var in going:
            continue
        kept[var] = (
            _function(function, inliner) if isinstance(function, relax.Function) else function
        )
    pruned = tvm.IRModule(kept, attrs=module.attrs, global_infos=module.global_infos)
    # Tuples that a subgraph returned dissolve: CanonicalizeBindings only removes such aliases.
    return relax.transform.CanonicalizeBindings()(relax.transform.Normalize()(pruned))


def _function(function: Any, inliner: Inliner) -> Any:
    return relax.Function(
        function.params,
        _sequence(function.body, inliner),
        function.ret_ty,
        function.is_pure,
        function.attrs,
        function.span,
    )


def _sequence(seq: Any, inliner: Inliner) -> Any:
    if not isinstance(seq, relax.SeqExpr):
        return seq
    blocks = []
    for block in seq.blocks:
        bindings = []
        for binding in block.bindings[:]:
            value = binding.value
            if isinstance(value, relax.If):
                value = relax.If(
                    value.cond,
                    _sequence(value.true_branch, inliner),
                    _sequence(value.false_branch, inliner),
                    value.span,
                )
            elif isinstance(value, relax.Function):
                value = _function(value, inliner)
            bindings.append(rebind(binding, binding.var, value))
        block = type(block)(bindings, block.span)
        if isinstance(block, relax.DataflowBlock):
            block = inliner.block(block)
        blocks.append(block)
    return relax.SeqExpr(blocks, seq.body, seq.span)
