"""Batch normalisation with constant statistics, folded into the convolution before it.

For inference ``y = (x - mean) / sqrt(var + eps) * gamma + beta`` is ``x * scale + shift`` for each
channel (Ioffe and Szegedy, 2015), with ``scale = gamma / sqrt(var + eps)`` and
``shift = beta - mean * scale``. A convolution is linear, so its weights can carry the scale.
TVM's FoldBatchnormToConv2D does so for conv2d alone, disregards ``center``, ``scale`` and
``axis``, and leaves operators on constants to be folded; here the constants come out done,
computed in double precision, also where a bias stands between, and where no convolution does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import relax

from byocviz.flow.relax import surgery as s
from byocviz.flow.relax.prepare.context import PrepareContext, RewriteSpec

BATCH_NORM = "relax.nn.batch_norm"
TRAINING = "a batch_norm in training mode: it normalises by the batch at hand"
STATISTICS_READ = "a batch_norm whose returned mean or variance is read"
NOT_CONSTANT = "a batch_norm whose scale, offset, mean or variance is no constant"
NOT_FINITE = "a batch_norm whose folded constants are not finite"
UNKNOWN = "a batch_norm of unknown rank or element type"

_TRANSPOSED = {"relax.nn.conv1d_transpose", "relax.nn.conv2d_transpose"}
_CONVOLUTIONS = {"relax.nn.conv1d", "relax.nn.conv2d", "relax.nn.conv3d", *_TRANSPOSED}

_FLOATS = ("float16", "bfloat16", "float32", "float64")


class _Refused(Exception):
    """The cause for which a candidate was left."""


@dataclass
class _Norm:
    """One batch_norm with all that was proved about it."""

    var: Any
    """The variable that its tuple is bound to."""
    outs: list[Any]
    """The variables bound to the tuple's first element; at least one."""
    unread: list[Any]
    """Those bound to its statistics; nothing reads them."""
    x: Any
    axis: int
    rank: int
    dtype: str
    scale: np.ndarray
    """By channel, double precision."""
    shift: np.ndarray

    def channelwise(self, values: np.ndarray) -> Any:
        """A constant that broadcasts over the input."""
        shape = [1] * self.rank
        shape[self.axis] = values.size
        return _constant(values.reshape(shape), self.dtype)


def run(mod: Any, ctx: PrepareContext) -> Any:
    """See `SPEC`."""
    return s.map_functions(mod, lambda _, func: _rewrite(func, ctx))


def _rewrite(func: Any, ctx: PrepareContext) -> Any:
    if not any(s.op_name(call) == BATCH_NORM for call in s.calls_in(func)):
        return func
    view = s.View(func)
    edits = s.Edits(view)
    for block in view.blocks:
        for binding in block.bindings[:]:
            if s.op_name(binding.value) != BATCH_NORM:
                continue
            try:
                norm = _read(view, binding.var, binding.value)
                if norm is None:
                    continue
                folded = _into_convolution(view, edits, norm)
                if not folded:
                    _scale_and_shift(view, edits, norm)
            except _Refused as cause:
                ctx.leave(str(cause))
                continue
            edits.remove_unread([norm.var, *norm.unread])
            ctx.count += 1
    return edits.apply()


def _read(view: s.View, var: Any, call: Any) -> _Norm | None:
    """The batch_norm bound to ``var``; None if nothing reads it."""
    attrs = call.attrs
    if attrs.training:
        raise _Refused(TRAINING)
    elements = view.elements.get(s.key(var), [])
    live = [(index, out) for index, out in elements if view.uses[s.key(out)]]
    if len(elements) != view.uses[s.key(var)] or any(index for index, _ in live):
        raise _Refused(STATISTICS_READ)
    if not live:
        return None
    x, *parameters = call.args
    constants = [view.value(p) for p in parameters]
    dtype, rank = s.dtype_of(x.ty), getattr(x.ty, "ndim", -1)
    if not all(s.is_constant(c) for c in constants):
        raise _Refused(NOT_CONSTANT)
    if rank < 1 or dtype not in _FLOATS or not all(s.equal(out.ty, x.ty) for _, out in live):
        raise _Refused(UNKNOWN)
    outs = [out for _, out in live]
    unread = [out for _, out in elements if not view.uses[s.key(out)]]
    gamma, beta, mean, variance = (s.to_numpy(c).astype(np.float64) for c in constants)
    with np.errstate(all="ignore"):
        scale = (gamma if attrs.scale else 1.0) / np.sqrt(variance + float(attrs.epsilon))
        shift = (beta if attrs.center else 0.0) - mean * scale
    axis = int(attrs.axis) % rank
    return _Norm(var, outs, unread, x, axis, rank, dtype, scale, shift)


def _constant(values: np.ndarray, dtype: str) -> Any:
    with np.errstate(all="ignore"):
        cast = values.astype(s.to_numpy(relax.const(0.0, dtype)).dtype)
    if not np.isfinite(cast.astype(np.float64)).all():
        raise _Refused(NOT_FINITE)
    # The dtype is named: relax.const makes float64 float32 otherwise.
    return relax.const(cast, dtype)


def _scale_and_shift(view: s.View, edits: s.Edits, norm: _Norm) -> None:
    scale, shift = norm.channelwise(norm.scale), norm.channelwise(norm.shift)
    if not all(view.visible(norm.x, out) for out in norm.outs):
        raise _Refused(UNKNOWN)
    for out in norm.outs:
        var = view.beside(out, f"{out.name}_scaled", out.ty)
        product = _call(relax.op.multiply(norm.x, scale), out.ty)
        edits.rebind(out, _call(relax.op.add(var, shift), out.ty), [relax.VarBinding(var, product)])


def _call(call: Any, ty: Any) -> Any:
    return relax.Call(call.op, list(call.args), call.attrs, ret_ty=ty)


def _into_convolution(view: s.View, edits: s.Edits, norm: _Norm) -> bool:
    """Fold into the convolution that alone is read here, with or without a constant bias."""
    source, bias, between = norm.x, np.zeros(1), []
    value = _only_reader(view, source)
    if s.op_name(value) == "relax.add":
        constants = [view.value(a) for a in value.args[:]]
        where = [i for i, c in enumerate(constants) if s.is_constant(c)]
        if len(where) != 1:
            return False
        found = _by_channel(s.to_numpy(constants[where[0]]), norm)
        if found is None:
            return False
        between, bias = [source], found
        source = value.args[1 - where[0]]
        value = _only_reader(view, source)
    if not (isinstance(source, relax.Var) and all(view.visible(source, out) for out in norm.outs)):
        return False
    weight = _scalable_weight(view, value, norm)
    if weight is None or not s.equal(source.ty, norm.x.ty):
        return False
    values, at = weight
    shape = [1] * values.ndim
    shape[at] = norm.scale.size
    try:
        scaled = _constant(values.astype(np.float64) * norm.scale.reshape(shape), norm.dtype)
        total = norm.channelwise(bias * norm.scale + norm.shift)
    except _Refused:
        return False
    edits.rebind(source, s.with_args(value, [value.args[0], scaled]))
    for out in norm.outs:
        edits.rebind(out, _call(relax.op.add(source, total), out.ty))
    edits.remove_unread([*between, norm.var, *norm.unread])
    return True


def _only_reader(view: s.View, var: Any) -> Any:
    """What a variable is bound to, if it is read once."""
    binding = view.bindings.get(s.key(var)) if isinstance(var, relax.Var) else None
    once = isinstance(binding, relax.VarBinding) and view.uses[s.key(var)] == 1
    return binding.value if binding is not None and once else None


def _by_channel(values: np.ndarray, norm: _Norm) -> np.ndarray | None:
    """A bias with one value a channel (or one in all) as a vector; None if it varies otherwise."""
    if values.size == 1:
        return values.reshape(1).astype(np.float64)
    # NumPy's alignment: the last axes face each other.
    shape = (1,) * (norm.rank - values.ndim) + values.shape
    if len(shape) != norm.rank or values.size != norm.scale.size:
        return None
    return values.reshape(-1).astype(np.float64) if shape[norm.axis] == values.size else None


def _scalable_weight(view: s.View, conv: Any, norm: _Norm) -> tuple[np.ndarray, int] | None:
    """The weights of a convolution and their axis of output channels; None if not sure."""
    name = s.op_name(conv)
    if name not in _CONVOLUTIONS or (name in _TRANSPOSED and int(conv.attrs.groups) != 1):
        return None
    weight, attrs = view.value(conv.args[1]), conv.attrs
    layout = str(attrs.out_layout or attrs.data_layout)
    kernel = str(attrs.kernel_layout)
    if not s.is_constant(weight) or s.dtype_of(weight.ty) != norm.dtype:
        return None
    values = s.to_numpy(weight)
    if len(layout) != norm.rank or layout.find("C") != norm.axis or len(kernel) != values.ndim:
        return None
    at = kernel.find("O")
    return (values, at) if at >= 0 and values.shape[at] == norm.scale.size else None


SPEC = RewriteSpec(
    name="fold-batch-norm",
    text="Batch norms with constant statistics go into the weights and the bias of the convolution "
    "before them; without one they become a multiply and an add with constants.",
    origin="byocviz",
    assumes="Floats may round otherwise: the constants are combined in double precision.",
    call='from byocviz.flow.relax.prepare import apply\nmod, _ = apply(mod, "fold-batch-norm")',
    run=run,
)
