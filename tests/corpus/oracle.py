"""How many subgraphs TVM's own passes make, dataflow block by dataflow block.

Every block becomes a function of its own, so that what the passes do not know (If, local
functions) is out of their way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import tvm
from tvm import relax

from .walkthrough import patterns as tutorial_patterns


def patterns_of(backend: str) -> list[Any]:
    if backend == "tutorial":
        return tutorial_patterns()
    import tvm.relax.backend.contrib.tensorrt  # noqa: F401  (registers the table)
    from tvm.relax.backend.pattern_registry import get_patterns_with_prefix

    return list(get_patterns_with_prefix(backend))


def subgraphs(mod: tvm.IRModule, backend: str, entry: str = "main") -> list[Counter[str]]:
    """Operators of every subgraph of the module, in no particular order."""
    found: list[Counter[str]] = []
    # MergeCompositeFunctions drops dead code by itself, outputs of a block included.
    mod = relax.transform.DeadCodeElimination([entry])(mod)
    for _, func in mod.functions_items():
        if isinstance(func, relax.Function):
            for block in _blocks(func.body):
                found += _partition(mod, block, patterns_of(backend))
    return found


def _blocks(expr: Any) -> Iterator[relax.DataflowBlock]:
    if isinstance(expr, relax.SeqExpr):
        for block in expr.blocks:
            if isinstance(block, relax.DataflowBlock):
                yield block
            for binding in block.bindings:
                yield from _blocks(getattr(binding, "value", None))
    elif isinstance(expr, relax.If):
        yield from _blocks(expr.true_branch)
        yield from _blocks(expr.false_branch)
    elif isinstance(expr, relax.Function):
        yield from _blocks(expr.body)


def _partition(
    mod: tvm.IRModule, block: relax.DataflowBlock, patterns: list[Any]
) -> list[Counter[str]]:
    outputs = [b.var for b in block.bindings if not isinstance(b.var, relax.DataflowVar)]
    result = outputs[0] if len(outputs) == 1 else relax.Tuple(outputs)
    body = relax.BlockBuilder().normalize(relax.SeqExpr([block], result))
    func = relax.Function(relax.analysis.free_vars(body), body)
    func = func.with_attr("global_symbol", "main")
    # MergeCompositeFunctions looks at the function of this name only.
    alone = tvm.IRModule({tvm.ir.GlobalVar("main"): func, **_callees(mod, func)})
    alone = relax.transform.Normalize()(alone)
    alone = relax.transform.FuseOpsByPattern(patterns, bind_constants=True)(alone)
    alone = relax.transform.MergeCompositeFunctions()(alone)
    found: list[Counter[str]] = []

    def visit(expr: Any) -> None:
        if isinstance(expr, relax.Call) and isinstance(expr.op, tvm.ir.GlobalVar):
            callee = alone[expr.op]
            if isinstance(callee, relax.Function) and callee.attrs and "Codegen" in callee.attrs:
                found.append(operators(callee))

    relax.analysis.post_order_visit(alone["main"], visit)
    return found


def _callees(mod: tvm.IRModule, func: relax.Function) -> dict[Any, Any]:
    out: dict[Any, Any] = {}

    def visit(expr: Any) -> None:
        if isinstance(expr, tvm.ir.GlobalVar) and expr not in out:
            out[expr] = mod[expr]
            if isinstance(out[expr], relax.Function):
                relax.analysis.post_order_visit(out[expr], visit)

    relax.analysis.post_order_visit(func, visit)
    return out


def operators(func: relax.Function) -> Counter[str]:
    """Operators in a function, local functions included, by name."""
    names: Counter[str] = Counter()

    def visit(expr: Any) -> None:
        if isinstance(expr, relax.Call) and isinstance(expr.op, tvm.ir.Op):
            names[expr.op.name] += 1

    relax.analysis.post_order_visit(func, visit)
    return names
