"""Importer debris of ONNX Sum, Max, Min and Mean back to chains of two-operand operators.

TVM's ONNX importer broadcasts every input to the common shape, stacks them along a new first axis
and reduces over it, also for two inputs: ``sum(stack((broadcast_to(a), broadcast_to(b))))`` is the
``a + b`` of a residual network. The stack doubles the memory traffic, and is in few backends'
rules.
"""

from __future__ import annotations

from typing import Any

from tvm import relax

from byocviz.flow.relax import surgery as s
from byocviz.flow.relax.prepare.context import PrepareContext, RewriteSpec

_OPS = {
    "relax.sum": relax.op.add,
    "relax.mean": relax.op.add,
    "relax.max": relax.op.maximum,
    "relax.min": relax.op.minimum,
}

READ_ELSEWHERE = "a stack that something else reads too"
OTHER_AXIS = "a reduction over another axis than the stack's"
KEPT_AXIS = "a reduction that keeps the stack's axis"
NOT_FLOAT = "a mean of integers"
UNKNOWN = "operands of unknown shape or type"


class _Refused(Exception):
    """The cause for which a candidate was left."""


def run(mod: Any, ctx: PrepareContext) -> Any:
    """See `SPEC`."""
    return s.map_functions(mod, lambda _, func: _rewrite(func, ctx))


def _rewrite(func: Any, ctx: PrepareContext) -> Any:
    names = {s.op_name(call) for call in s.calls_in(func)}
    if "relax.stack" not in names or not names & set(_OPS):
        return func
    view = s.View(func)
    edits = s.Edits(view)
    debris: list[Any] = []
    for block in view.blocks:
        for binding in block.bindings[:]:
            name = s.op_name(binding.value)
            if name not in _OPS or not isinstance(binding, relax.VarBinding):
                continue
            stack = view.value(binding.value.args[0])
            if s.op_name(stack) != "relax.stack":
                continue
            try:
                before, value, read = _chain(view, binding.var, name, binding.value, stack)
            except _Refused as cause:
                ctx.leave(str(cause))
                continue
            if isinstance(value, relax.Var) and isinstance(binding.var, relax.DataflowVar):
                edits.read_instead(binding.var, value)
            else:
                edits.rebind(binding.var, value, before)
            debris += read
            ctx.count += 1
    if not edits:
        return func
    position = {name: place for place, name in enumerate(view.bindings)}
    unique = {s.key(var): var for var in debris}
    edits.remove_unread(sorted(unique.values(), key=lambda var: position[s.key(var)]))
    return edits.apply()


def _chain(
    view: s.View, out: Any, name: str, reduction: Any, stack: Any
) -> tuple[list[Any], Any, list[Any]]:
    """New bindings, the value for ``out``, and the variables that are perhaps no longer read."""
    axes, rank = reduction.attrs.axis, len(getattr(out.ty, "shape", None) or ()) + 1
    if reduction.attrs.keepdims:
        raise _Refused(KEPT_AXIS)
    at = 0 if stack.attrs.axis is None else int(stack.attrs.axis)
    if axes is None or len(axes) != 1 or (int(axes[0]) - at) % rank:
        raise _Refused(OTHER_AXIS)
    dtype = s.dtype_of(out.ty)
    if getattr(out.ty, "shape", None) is None or not dtype or dtype == "bool":
        raise _Refused(UNKNOWN)
    if name == "relax.mean" and "float" not in dtype:
        raise _Refused(NOT_FLOAT)
    read, stacked = _through(view, reduction.args[0])
    if any(view.uses[s.key(var)] != 1 for var in read):
        raise _Refused(READ_ELSEWHERE)
    more, fields = _through(view, stacked.args[0])
    if not isinstance(fields, relax.Tuple):
        raise _Refused(UNKNOWN)
    read += more
    operands = list(fields.fields)
    if any(not s.equal(operand.ty, out.ty) for operand in operands):
        raise _Refused(UNKNOWN)
    read += [var for operand in operands for var in _through(view, operand)[0]]
    # The two-operand operators broadcast by themselves; where their result then falls short of
    # the shape (all operands were widened), the broadcasts that widen stay.
    bare = [_unbroadcast(view, operand, out, widening=True) for operand in operands]
    made = _combine(view, out, name, bare)
    if made is None:
        bare = [_unbroadcast(view, operand, out, widening=False) for operand in operands]
        made = _combine(view, out, name, bare)
    if made is None:
        raise _Refused(UNKNOWN)
    return *made, read


def _through(view: s.View, expr: Any) -> tuple[list[Any], Any]:
    """The variables on the way to what an expression is bound to, last bound first; and that."""
    read = []
    while isinstance(expr, relax.Var):
        binding = view.bindings.get(s.key(expr))
        if not isinstance(binding, relax.VarBinding):
            break
        read.append(expr)
        expr = binding.value
    return read, expr


def _unbroadcast(view: s.View, operand: Any, out: Any, *, widening: bool) -> Any:
    value = view.value(operand)
    if s.op_name(value) != "relax.broadcast_to":
        return operand
    source = value.args[0]
    same = s.equal(source.ty, operand.ty)
    return source if (same or widening) and view.visible(source, out) else operand


def _combine(
    view: s.View, out: Any, name: str, operands: list[Any]
) -> tuple[list[Any], Any] | None:
    """Bindings and last value of the chain; None if its type is not that of ``out``."""
    op = _OPS[name]
    values: list[Any] = []
    bindings: list[Any] = []

    def bound(value: Any) -> Any:
        var = view.beside(out, f"{out.name}_{len(bindings)}", value.ty)
        bindings.append(relax.VarBinding(var, value))
        return var

    total = operands[0]
    try:
        for operand in operands[1:]:
            if values:
                total = bound(values[-1])
            values.append(s.typed(op(total, operand)))
        if name == "relax.mean" and len(operands) > 1:
            count = relax.const(len(operands), s.dtype_of(out.ty))
            values.append(s.typed(relax.op.divide(bound(values[-1]), count)))
    except Exception:  # TVM raises all kinds on shapes that do not broadcast
        return None
    last = values[-1] if values else total
    return (bindings, last) if s.equal(last.ty, out.ty) else None


SPEC = RewriteSpec(
    name="nary",
    text="Sums, means, maxima and minima of several tensors that the ONNX importer wrote as "
    "broadcast_to, stack and a reduction are add, maximum and minimum again.",
    origin="byocviz",
    assumes="The order of additions stays, so floats round the same, but for the sign of a zero. "
    "A maximum or minimum over a stack starts from the type's largest finite value, which an "
    "infinity in every operand shows.",
    call='from byocviz.flow.relax.prepare import apply\nmod, _ = apply(mod, "nary")',
    run=run,
)
