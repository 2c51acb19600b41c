"""Gives subgraphs that do not pay back to TVM: their operators stand where they stood before."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tvm
from tvm import relax

from byocviz.flow.relax.compat import attribute
from byocviz.flow.relax.passes.inline import Inliner
from byocviz.flow.relax.surgery import map_blocks


def is_straight(function: Any) -> bool:
    """Whether it can be put back: its body holds no branch and no function but composite ones."""
    return all(
        not isinstance(binding.value, relax.If)
        and (not isinstance(binding.value, relax.Function) or attribute(binding.value, "Composite"))
        for block in function.body.blocks[:]
        for binding in block.bindings[:]
    )


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

    def put_back(block: Any) -> list[Any]:
        return [inliner.block(block)]

    kept = {
        var: map_blocks(function, put_back) if isinstance(function, relax.Function) else function
        for var, function in module.functions.items()
        if var not in going
    }
    pruned = tvm.IRModule(kept, attrs=module.attrs, global_infos=module.global_infos)
    # Tuples that a subgraph returned dissolve: CanonicalizeBindings only removes such aliases.
    return relax.transform.CanonicalizeBindings()(relax.transform.Normalize()(pruned))
