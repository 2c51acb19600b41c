"""Importer debris of ONNX Clip back to ``relax.clip``, ``relax.maximum`` and ``relax.minimum``.

TVM's ONNX importer guards each bound against NaN and lowers at once to a PrimFunc::

    isnan(lo); where(that, -inf, lo); call_tir(maximum, (x, that))
    isnan(hi); where(that, inf, hi); call_tir(minimum, (that, that))

(before opset 11 the bounds are immediates in the PrimFunc). No backend's rules name a PrimFunc.
What a PrimFunc computes is proved by building the elementwise maximum or minimum of the very same
shapes and comparing the two structurally; names are never trusted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm
from tvm import relax, te, topi

from byocviz.flow.relax import surgery as s
from byocviz.flow.relax.prepare.context import PrepareContext, RewriteSpec

NOT_ELEMENTWISE = "a PrimFunc with max or min that is not an elementwise one with a bound"
NOT_CONSTANT = "a bound that is not a constant"
NOT_SCALAR = "a bound that is not a scalar"
IS_NAN = "a bound that is NaN"
NOT_REPRESENTABLE = "a bound that an immediate of the IR cannot hold"


@dataclass
class _OneSided:
    """``out = max(x, bound)`` or ``min(x, bound)``, proved."""

    out: Any
    kind: str
    """``Max`` or ``Min``."""
    x: Any
    bound: Any
    """A Python number."""
    constant: Any
    """The bound as a tensor constant of rank 0."""
    bound_first: bool


class _Refused(Exception):
    """The cause for which a candidate was left."""


def run(mod: Any, ctx: PrepareContext) -> Any:
    """See `SPEC`."""
    prims = _PrimFuncs(mod)
    return s.map_functions(mod, lambda _, f: _rewrite(prims, f, ctx)) if prims.kinds else mod


def _rewrite(prims: _PrimFuncs, func: Any, ctx: PrepareContext) -> Any:
    view = s.View(func)
    found: dict[int, _OneSided] = {}
    for block in view.blocks:
        for binding in block.bindings[:]:
            if prims.kind(binding.value):
                try:
                    found[s.key(binding.var)] = _read(prims, view, binding)
                except _Refused as cause:
                    ctx.leave(str(cause))
    edits = s.Edits(view)
    debris: list[Any] = []
    for last in found.values():
        first = found.get(s.key(last.x))
        # A clamp of a clamp: an inner one that is the end of a clip already is no half of another.
        taken = first is None or s.key(first.out) in edits.bindings
        if first is not None and not taken and _is_clip(view, first, last):
            lo, hi = (first, last) if first.kind == "Max" else (last, first)
            edits.rebind(last.out, _made(last.out, _clip_or_one(first, lo, hi)))
            debris.append(first.out)
            ctx.count += 1
    for one in found.values():
        # What became part of a clip is either rebound or no longer read.
        if s.key(one.out) not in edits.bindings and edits.uses[s.key(one.out)] > 0:
            edits.rebind(one.out, _made(one.out, _one_sided(one.x, one)))
            ctx.count += 1
    _remove_debris(view, edits, debris)
    return edits.apply()


def _is_clip(view: s.View, first: _OneSided, last: _OneSided) -> bool:
    if first.kind == last.kind or view.uses[s.key(first.out)] != 1:
        return False
    lo, hi = (first, last) if first.kind == "Max" else (last, first)
    # With crossed bounds the order counts: relax.clip gives lo, ONNX gives hi.
    return bool(lo.bound <= hi.bound) and view.visible(first.x, last.out)


def _clip_or_one(first: _OneSided, lo: _OneSided, hi: _OneSided) -> Any:
    # Old opsets write a missing bound as an infinity.
    if hi.bound == math.inf and lo.bound != -math.inf:
        return _one_sided(first.x, lo)
    if lo.bound == -math.inf and hi.bound != math.inf:
        return _one_sided(first.x, hi)
    return relax.op.clip(first.x, _immediate(lo.bound), _immediate(hi.bound))


def _immediate(bound: Any) -> Any:
    # A Python int would become an int32.
    return tvm.tirx.IntImm("int64", bound) if isinstance(bound, int) else bound


def _one_sided(x: Any, one: _OneSided) -> Any:
    op = relax.op.maximum if one.kind == "Max" else relax.op.minimum
    return op(one.constant, x) if one.bound_first else op(x, one.constant)


def _made(out: Any, call: Any) -> Any:
    """The new call with the type that ``out`` has; proved equal in `_read`."""
    return relax.Call(call.op, list(call.args), call.attrs, list(call.ty_args), ret_ty=out.ty)


def _remove_debris(view: s.View, edits: s.Edits, debris: list[Any]) -> None:
    """Remove the inner PrimFunc calls, and guards that nothing reads any more."""
    if not edits:
        return
    gone = {s.key(var) for var in debris}
    candidates = []
    for block in view.blocks:
        for binding in block.bindings[:]:
            name = s.op_name(binding.value)
            guard = name == "relax.isnan" or name == "relax.where"
            if s.key(binding.var) in gone or (guard and view.uses[s.key(binding.var)] > 0):
                candidates.append(binding.var)
    edits.remove_unread(candidates)


# -- proofs


class _PrimFuncs:
    """The PrimFuncs of a module that store a max or a min, and what was proved about them."""

    def __init__(self, mod: Any) -> None:
        self.mod = mod
        self.kinds: dict[int, tuple[str, Any]] = {}
        """By global variable: ``Max`` or ``Min``, and the stored value. A hint, no proof."""
        self._proofs: dict[Any, bool] = {}
        for gv, func in mod.functions.items():
            hint = _stored_value(func) if isinstance(func, tvm.tirx.PrimFunc) else None
            if hint is not None:
                self.kinds[s.key(gv)] = hint

    def kind(self, call: Any) -> str:
        """``Max`` or ``Min`` if it is a call of such a PrimFunc, else empty."""
        if s.op_name(call) != "relax.call_tir":
            return ""
        return self.kinds.get(s.key(call.args[0]), ("", None))[0]

    def proved(self, gv: Any, fields: list[Any], swap: bool, value: Any = None) -> bool:
        """Whether it is the elementwise operator on these arguments (and an immediate).

        ``swap``: the second argument, or the immediate, is the first operand.
        """
        shapes = [s.static_shape(f.ty) for f in fields]
        known = (s.key(gv), swap, value, *shapes, *(s.dtype_of(f.ty) for f in fields))
        if None in shapes:  # a symbol is no name: prove each by itself
            return _same(self.mod[gv], self.kinds[s.key(gv)][0], fields, swap, value)
        if known not in self._proofs:
            kind = self.kinds[s.key(gv)][0]
            self._proofs[known] = _same(self.mod[gv], kind, fields, swap, value)
        return self._proofs[known]


def _stored_value(func: Any) -> tuple[str, Any] | None:
    """What the PrimFunc's innermost statement stores, if a max or min: its kind and the value."""
    try:
        node = func.body.block.body
        while hasattr(node, "body") and not hasattr(node, "block"):
            node = node.body
        value = node.block.body.value
    except AttributeError:
        return None
    kind = type(value).__name__
    return (kind, value) if kind in ("Max", "Min") else None


def _same(func: Any, kind: str, fields: list[Any], swap: bool, value: Any) -> bool:
    bare = func.without_attr("global_symbol")
    try:
        args = [te.placeholder(list(f.ty.shape.values), s.dtype_of(f.ty), "x") for f in fields]
        operands: list[Any] = list(args)
        if value is not None:
            operands.append(tvm.tirx.const(value, s.dtype_of(fields[0].ty)))
        if swap:
            operands.reverse()
        made = (topi.maximum if kind == "Max" else topi.minimum)(*operands)
        # BlockBuilder.call_te makes 64-bit indices of all; a function by hand may have others.
        return any(
            s.equal(bare, te.create_prim_func([*args, made], width).without_attr("global_symbol"))
            for width in ("int64", None)
        )
    except Exception:  # TVM raises all kinds on shapes and types that it cannot combine
        return False


def _read(prims: _PrimFuncs, view: s.View, binding: Any) -> _OneSided:
    """Prove that a binding is ``max(x, bound)`` or ``min(x, bound)`` with a constant bound."""
    call, out = binding.value, binding.var
    if len(call.args) != 2 or len(call.ty_args) != 1 or not isinstance(call.args[1], relax.Tuple):
        raise _Refused(NOT_ELEMENTWISE)
    gv, fields = call.args[0], list(call.args[1].fields)
    kind, stored = prims.kinds[s.key(gv)]
    if len(fields) not in (1, 2) or any(getattr(f.ty, "shape", None) is None for f in fields):
        raise _Refused(NOT_ELEMENTWISE)
    if len(fields) == 1:
        for bound_first in (False, True):
            value = getattr(stored.a if bound_first else stored.b, "value", None)
            if value is not None and prims.proved(gv, fields, bound_first, value):
                return _found(out, kind, fields[0], np.asarray(value), None, bound_first)
        raise _Refused(NOT_ELEMENTWISE)
    matched = [
        (x, bound_first)
        for x in (0, 1)
        if s.equal(fields[x].ty, out.ty)
        for bound_first in (False, True)
        if prims.proved(gv, fields, bound_first == (x == 0))
    ]
    if not matched:
        raise _Refused(NOT_ELEMENTWISE)
    cause = NOT_CONSTANT
    for x, bound_first in matched:
        bound = _guarded(view, fields[1 - x])
        shape = s.static_shape(bound.ty)
        if s.is_constant(bound):
            values = s.to_numpy(bound)
            if values.size == 1:
                return _found(out, kind, fields[x], values.reshape(()), bound, bound_first)
            cause = NOT_SCALAR
        elif shape is None or math.prod(shape) != 1:
            cause = NOT_SCALAR
    raise _Refused(cause)


def _found(
    out: Any, kind: str, x: Any, value: np.ndarray, constant: Any, bound_first: bool
) -> _OneSided:
    if not s.equal(x.ty, out.ty):
        raise _Refused(NOT_SCALAR)
    bound: Any = value.item() if value.dtype.kind in "iuf" else float(value)
    if isinstance(bound, float) and math.isnan(bound):
        raise _Refused(IS_NAN)
    if isinstance(bound, int) and not -(2**63) <= bound < 2**63:
        raise _Refused(NOT_REPRESENTABLE)
    if constant is None:
        constant = relax.const(bound, s.dtype_of(out.ty))
    elif s.static_shape(constant.ty) != ():
        constant = relax.const(value, s.dtype_of(constant.ty))
    return _OneSided(out, kind, x, bound, constant, bound_first)


def _guarded(view: s.View, bound: Any) -> Any:
    """The constant behind a bound; that of ``where(isnan(c), other, c)`` is c if c is no NaN."""
    value = view.value(bound)
    if s.op_name(value) != "relax.where":
        return value if s.is_constant(value) else bound
    test, _, chosen = (view.value(a) for a in value.args[:])
    if s.op_name(test) != "relax.isnan" or not s.is_constant(chosen):
        return bound
    tested = view.value(test.args[0])
    if not s.is_constant(tested) or not (tested.same_as(chosen) or s.equal(tested, chosen)):
        return bound
    return chosen


SPEC = RewriteSpec(
    name="clip",
    text="Clamps that the ONNX importer lowered to PrimFuncs (isnan, where, maximum, minimum) "
    "are relax.clip again, one-sided ones relax.maximum or relax.minimum.",
    origin="byocviz",
    assumes="No NaN reaches the clamp: for a NaN, TVM's lowering of max before min gives the lower "
    "bound on the CPU, relax.clip the upper one, and ONNX asks for NaN. Else equal bit by bit.",
    call='from byocviz.flow.relax.prepare import apply\nmod, _ = apply(mod, "clip")',
    run=run,
)
