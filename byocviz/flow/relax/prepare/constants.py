"""Moves of constants done at once: reshape, transpose and the like on a weight or a bias.

They keep every bit, so NumPy does them exactly; TVM's FoldConstant compiles a kernel for each
(about 30 ms), and many patterns want a plain constant where the importer left a reshape of one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from tvm import relax

from byocviz.flow.relax import surgery as s
from byocviz.flow.relax.prepare.context import PrepareContext, RewriteSpec

LARGEST = 4 * 2**20
"""Bytes up to which a constant may grow by a broadcast."""

TOO_LARGE = f"a broadcast that would make a constant of more than {LARGEST // 2**20} MiB"
SYMBOLIC = "a symbolic shape"
NOT_NUMPY = "an element type that NumPy does not hold as it is"

_MOVES = {
    "relax.reshape",
    "relax.expand_dims",
    "relax.squeeze",
    "relax.flatten",
    "relax.permute_dims",
    "relax.broadcast_to",
}


def run(mod: Any, ctx: PrepareContext) -> Any:
    """See `SPEC`."""
    return s.map_functions(mod, lambda _, func: _rewrite(func, ctx))


def _rewrite(func: Any, ctx: PrepareContext) -> Any:
    if not any(s.op_name(call) in _MOVES for call in s.calls_in(func)):
        return func
    view = s.View(func)
    edits = s.Edits(view)
    known: dict[int, Any] = {}
    for block in view.blocks:
        for binding in block.bindings[:]:
            var, value = binding.var, binding.value
            if not isinstance(binding, relax.VarBinding):
                continue
            if s.is_constant(value):
                known[s.key(var)] = value
            elif s.key(value) in known:
                known[s.key(var)] = known[s.key(value)]
                edits.read_instead(var, known[s.key(value)])
            if s.op_name(value) not in _MOVES:
                continue
            source = known.get(s.key(value.args[0]), value.args[0])
            if not s.is_constant(source):
                continue
            moved = moved_constant(value, source, var.ty)
            if isinstance(moved, str):
                ctx.leave(moved)
                continue
            known[s.key(var)] = moved
            edits.read_instead(var, moved)
            ctx.count += 1
    return edits.apply()


def moved_constant(call: Any, source: Any, ty: Any) -> Any:
    """The constant that a move of ``source`` gives, of type ``ty``; or why it cannot be made."""
    shape = s.static_shape(ty)
    if shape is None:
        return SYMBOLIC
    values = s.to_numpy(source)
    if str(values.dtype) != s.dtype_of(source.ty) or s.dtype_of(ty) != s.dtype_of(source.ty):
        return NOT_NUMPY
    if math.prod(shape) * values.itemsize > max(LARGEST, values.nbytes):
        return TOO_LARGE
    name = s.op_name(call)
    if name == "relax.permute_dims":
        axes = call.attrs.axes
        moved = np.transpose(values, None if axes is None else [int(a) for a in axes])
    elif name == "relax.broadcast_to":
        moved = np.broadcast_to(values, shape)
    else:
        moved = values.reshape(shape)
    # Without the type relax.const makes 32 bits of 64.
    made = relax.const(np.ascontiguousarray(moved).reshape(shape), str(values.dtype))
    # A type on a virtual device would get lost, for one.
    return made if s.equal(made.ty, ty) else NOT_NUMPY


SPEC = RewriteSpec(
    name="layout-of-constants",
    text="Reshapes, transposes and broadcasts of constants are done now: weights and biases "
    "become plain constants.",
    origin="byocviz",
    assumes="",
    call='from byocviz.flow.relax.prepare import apply\nmod, _ = apply(mod, "layout-of-constants")',
    run=run,
)
