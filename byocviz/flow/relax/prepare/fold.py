"""Operators on constants are computed now: TVM's FoldConstant, on those operators alone.

The pass legalises every operator of a function to see whether it could be folded (10 s on a
network of 700 operators), and one that it cannot legalise raises. So the operators whose
arguments are all constant are taken out into a small module, the pass runs there, and the
constants that it made are put back.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import tvm
from tvm import relax

from byocviz.flow.relax import surgery as s
from byocviz.flow.relax.prepare.context import PrepareContext, RewriteSpec

LARGEST = 4 * 2**20
"""Bytes that a constant may take that is larger than what it is made of."""

TOO_LARGE = f"an operator whose constant result would grow to more than {LARGEST // 2**20} MiB"
QUANTISED = "a quantize or dequantize of a constant: backends match it as it stands"
TVM_RAISED = "an operator on constants on which TVM's pass raised an error"
CALLS_OUT = "a PrimFunc on constants that calls foreign code or is bound to a device's threads"
NOT_FOLDED = "an operator on constants that TVM's pass did not fold"

# Compiling a PrimFunc whose symbols are not there ends the process, so it is not tried.
_FOREIGN = re.compile(
    r"\bT\.(call_|tvm_|ptx_|address_of|evaluate|env_thread|launch_thread|thread_)"
)
_QUANTISED = {"relax.quantize", "relax.dequantize"}


def run(mod: Any, ctx: PrepareContext) -> Any:
    """See `SPEC`."""
    return s.map_functions(mod, lambda _, func: _rewrite(mod, func, ctx))


def _rewrite(mod: Any, func: Any, ctx: PrepareContext) -> Any:
    view = s.View(func)
    chosen = _constant_calls(mod, view, ctx)
    if not chosen:
        return func
    results = _fold(mod, view, chosen)
    edits = s.Edits(view)
    for binding in chosen:
        made = results.get(s.key(binding.var))
        if made is None:
            ctx.leave(NOT_FOLDED)
        elif isinstance(made, str):
            ctx.leave(made)
        else:
            edits.read_instead(binding.var, made)
            ctx.count += 1
    return edits.apply()


def _constant_calls(mod: Any, view: s.View, ctx: PrepareContext) -> list[Any]:
    """Bindings whose value reads nothing but constants, also through one another, in order."""
    known: dict[int, int] = {}
    """Bytes of what is constant, by variable."""
    chosen = []
    for block in view.blocks:
        for binding in block.bindings:
            if not isinstance(binding, relax.VarBinding):
                continue
            value = binding.value
            if s.is_constant(value) or s.key(value) in known:
                known[s.key(binding.var)] = _bytes(value.ty) or 0
                continue
            size = _bytes(binding.var.ty)
            if size is None or not _evaluable(mod, value):
                continue
            read = [_argument_bytes(argument, known) for argument in value.args]
            sizes = [n for n in read if n is not None]
            if len(sizes) != len(read):
                continue
            if s.op_name(value) in _QUANTISED:
                ctx.leave(QUANTISED)
            elif s.op_name(value) == "relax.call_tir" and _calls_out(mod[value.args[0]]):
                ctx.leave(CALLS_OUT)
            elif size > max(LARGEST, *sizes, 0):
                ctx.leave(TOO_LARGE)
            else:
                known[s.key(binding.var)] = size
                chosen.append(binding)
    return chosen


def _bytes(ty: Any) -> int | None:
    """Bytes of a tensor of known shape and type that lives on no device in particular."""
    shape, dtype = s.static_shape(ty), s.dtype_of(ty)
    if shape is None or not dtype or getattr(ty, "vdevice", None) is not None:
        return None
    try:
        return math.prod(shape) * max(np.dtype(dtype).itemsize, 1)
    except TypeError:  # bfloat16 and the like, of two bytes at most
        return math.prod(shape) * 2


def _evaluable(mod: Any, call: Any) -> bool:
    """Whether TVM knows how to compute a call: an operator with a lowering, or a PrimFunc."""
    name = s.op_name(call)
    if name == "relax.call_tir":
        return len(call.args) == 2 and isinstance(mod[call.args[0]], tvm.tirx.PrimFunc)
    return bool(name) and call.op.get_attr("FLegalize") is not None


def _calls_out(func: Any) -> bool:
    return bool(_FOREIGN.search(func.script(show_meta=False)))


def _argument_bytes(argument: Any, known: dict[int, int]) -> int | None:
    """Bytes of a constant argument, 0 for what is no tensor; None if it is not constant."""
    if isinstance(argument, relax.Tuple):
        parts = [_argument_bytes(field, known) for field in argument.fields]
        sizes = [n for n in parts if n is not None]
        return sum(sizes) if len(sizes) == len(parts) else None
    if isinstance(argument, relax.Var):
        return known.get(s.key(argument))
    if s.is_constant(argument):
        return _bytes(argument.ty) or 0
    if isinstance(argument, relax.ShapeExpr):
        return 0 if all(isinstance(d, tvm.tirx.IntImm) for d in argument.values) else None
    if isinstance(argument, relax.Call | relax.TupleGetItem | relax.Function):
        return None
    return 0


def _fold(mod: Any, view: s.View, chosen: Sequence[Any]) -> dict[int, Any]:
    """The constant (or why there is none) by variable; nothing for what was not folded."""
    try:
        return _fold_together(mod, view, chosen, {})
    except Exception:  # one operator that raises must not cost the others
        results: dict[int, Any] = {}
        for binding in chosen:
            made = {k: v for k, v in results.items() if not isinstance(v, str)}
            try:
                results |= _fold_together(mod, view, [binding], made)
            except Exception:
                results[s.key(binding.var)] = TVM_RAISED
        return results


def _fold_together(
    mod: Any, view: s.View, chosen: Sequence[Any], made: dict[int, Any]
) -> dict[int, Any]:
    """Run the pass on a function of these bindings alone, all of its variables returned."""
    values = dict(made)
    block, copies = [], []
    for binding in chosen:
        value = s.substitute(_inlined(view, binding.value), values)
        copy = relax.DataflowVar(binding.var.name, binding.var.ty)
        values[s.key(binding.var)] = copy
        copies.append(copy)
        block.append(relax.VarBinding(copy, value))
    out = relax.Var("out", relax.TupleType([copy.ty for copy in copies]))
    block.append(relax.VarBinding(out, relax.Tuple(copies)))
    body = relax.SeqExpr([relax.DataflowBlock(block)], out)
    func = relax.Function([], body, out.ty).with_attr("global_symbol", "main")
    prims = {gv: f for gv, f in mod.functions.items() if isinstance(f, tvm.tirx.PrimFunc)}
    # The pass calls the lowerings with their usual purpose in mind: a target is not needed.
    small = tvm.IRModule({tvm.ir.GlobalVar("main"): func, **prims})
    folded = relax.transform.FoldConstant()(relax.transform.Normalize()(small))
    after = s.View(folded["main"])
    fields = after.value(folded["main"].body.body).fields
    return {
        s.key(binding.var): constant
        for binding, field in zip(chosen, fields, strict=True)
        if s.is_constant(constant := after.value(field)) and s.equal(constant.ty, binding.var.ty)
    }


def _inlined(view: s.View, call: Any) -> Any:
    """The call with arguments that are aliases of constants written out."""
    aliases = {s.key(v): view.value(v) for v in s.variables(call)}
    return s.substitute(call, {k: v for k, v in aliases.items() if s.is_constant(v)})


SPEC = RewriteSpec(
    name="fold-constants",
    text="Operators on constants are computed now, on the CPU.",
    origin="tvm",
    assumes="Floats may round otherwise than on the target.",
    call="from tvm import relax\nmod = relax.transform.FoldConstant()(mod)",
    run=run,
)
