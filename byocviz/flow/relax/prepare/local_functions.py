"""A local function is bound outside of dataflow blocks.

FuseOpsByPattern fails on a dataflow block that holds a local function with matches of its own
(TVM 0.27: "it_creator != group2func_.end()"), and ConvertToDataflow makes such blocks.
"""

from __future__ import annotations

from typing import Any

from tvm import relax

from byocviz.flow.relax import surgery as s
from byocviz.flow.relax.passes import inline
from byocviz.flow.relax.prepare.context import PrepareContext, RewriteSpec


def run(mod: Any, ctx: PrepareContext) -> Any:
    """See `SPEC`."""

    def apart(block: Any) -> list[Any]:
        pieces = _apart(block)
        ctx.count += len(pieces) > 1
        return pieces

    return s.map_functions(mod, lambda _, func: s.map_blocks(func, apart))


def _is_local(binding: Any) -> bool:
    value = binding.value
    return isinstance(value, relax.Function) and not (value.attrs and "Composite" in value.attrs)


def _apart(block: Any) -> list[Any]:
    bindings = block.bindings[:]
    if not isinstance(block, relax.DataflowBlock) or not any(map(_is_local, bindings)):
        return [block]
    # What one piece binds and another reads must outlive its block.
    outer = {
        b.var: relax.Var(b.var.name, b.var.ty)
        for b in bindings
        if isinstance(b.var, relax.DataflowVar)
    }
    pieces: list[Any] = []
    piece: list[Any] = []

    def close() -> None:
        if piece:
            pieces.append(relax.DataflowBlock(list(piece), block.span))
            piece.clear()

    for binding in bindings:
        value = inline.substitute(binding.value, outer)
        made = s.rebind(binding, value, outer.get(binding.var))
        if _is_local(binding):
            close()
            pieces.append(relax.BindingBlock([made]))
        else:
            piece.append(made)
    close()
    return pieces


SPEC = RewriteSpec(
    name="local-functions",
    text="A local function is bound between dataflow blocks instead of inside one: TVM's "
    "FuseOpsByPattern fails on a dataflow block that holds one with matches of its own.",
    origin="byocviz",
    assumes="",
    call='from byocviz.flow.relax.prepare import apply\nmod, _ = apply(mod, "local-functions")',
    run=run,
)
