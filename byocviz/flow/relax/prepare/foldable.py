"""Which operators on constants are surely safe and cheap to run in this process.

A kernel that TVM compiles runs unguarded: an integer division by zero or a read past the end of
a tensor ends the process, and nothing interrupts a loop that does not end. So an operator is run
only if it is on the list, and where its safety depends on its values, only if these are known.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from tvm import relax

from byocviz.flow.relax import surgery as s
from byocviz.flow.relax.macs import macs, type_text

__all__ = ["WAIT", "kind", "refusal", "work"]

MOST_FIELDS = 256
"""Tensors that one concat or stack may join: TVM nests one expression for each."""

WAIT = "its safety depends on constants that are not computed yet"
PRIM_FUNC = "a PrimFunc on constants: it might loop for ever or read outside of its buffers"
QUANTISED = "a quantize or dequantize of a constant: backends match it as it stands"
DIVISOR = "an integer division or remainder by a constant that holds 0 (or the least integer by -1)"
SHIFT = "a shift of constants by a number of bits that the element type does not have"
INDEX = "indices that are no integer constants within the tensor that they read"
NO_ELEMENTS = "an operator on constants without elements"
TYPES = "an operator on constants of an element type that is not computed ahead"
FIELDS = f"a concat or stack of more than {MOST_FIELDS} constants"
INBOUND = "a strided_slice of a constant with assume_inbound, which reads without a test"


def not_listed(name: str) -> str:
    """The cause for an operator that is not on the list."""
    return (
        f"{name} of constants: only arithmetic, comparisons, casts, reductions, joins and moves "
        f"are computed ahead"
    )


_INTEGER = {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
_FLOAT = {"float16", "float32", "float64"}
_ANY = _INTEGER | _FLOAT | {"bool"}

# The element types that the arguments may have; results are of these types too.
_NUMBERS = (
    "abs add arange argmax argmin clip equal greater greater_equal less less_equal max maximum "
    "min minimum multiply negative nn.relu not_equal outer prod sign square subtract sum"
)
_FLOATS = (
    "acos acosh asin asinh atan atan2 atanh ceil cos cosh erf exp floor isfinite isinf isnan log "
    "log_add_exp mean nn.gelu nn.gelu_tanh nn.leakyrelu nn.log_softmax nn.selu nn.silu "
    "nn.softmax nn.softplus power round rsqrt sigmoid sin sinh sqrt std tan tanh trunc variance"
)
_MOVES = (
    "astype broadcast_to concat expand_dims eye eye_like flatten flip full full_like "
    "gather_elements nn.batch_flatten ones ones_like permute_dims repeat reshape "
    "shape_to_tensor squeeze stack strided_slice take tile tril triu where zeros zeros_like"
)
_DIVISIONS = {"divide", "floor_divide", "floor_mod", "mod"}
_SHIFTS = {"left_shift", "right_shift"}
_INDEXED = {"take", "gather_elements"}
_QUANTISED = {"quantize", "dequantize"}
_BOOL, _BITS = {"bool"}, _INTEGER | {"bool"}
_ALLOWED: dict[str, set[str]] = {
    **dict.fromkeys(_NUMBERS.split(), _INTEGER | _FLOAT),
    **dict.fromkeys(_FLOATS.split(), _FLOAT),
    **dict.fromkeys(_MOVES.split(), _ANY),
    **dict.fromkeys(("logical_and", "logical_or", "logical_xor", "logical_not"), _BOOL),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not"), _BITS),
    **dict.fromkeys(_DIVISIONS, _INTEGER | _FLOAT),
    **dict.fromkeys(_SHIFTS, _INTEGER),
    "matmul": _INTEGER | _FLOAT,
}


def refusal(call: Any, value_of: Callable[[Any], np.ndarray | None]) -> str:
    """Why a call on constants is not run; "" where it may be.

    ``value_of`` gives the values of an argument, None while they are not computed yet; `WAIT` is
    returned where they are needed.
    """
    full_name = s.op_name(call)
    name = full_name.removeprefix("relax.")
    if name == "call_tir":
        return PRIM_FUNC
    if name in _QUANTISED:
        return QUANTISED
    if name not in _ALLOWED:
        return not_listed(full_name)
    tensors = _tensors(call)
    if any(s.dtype_of(ty) not in _ALLOWED[name] for ty in tensors):
        return TYPES
    if s.dtype_of(call.ty) not in _ANY:
        return TYPES
    shapes = [s.static_shape(ty) for ty in (*tensors, call.ty)]
    if any(shape is None or 0 in shape for shape in shapes):
        return NO_ELEMENTS
    if name in ("concat", "stack") and len(tensors) > MOST_FIELDS:
        return FIELDS
    if name == "strided_slice" and call.attrs.assume_inbound:
        return INBOUND
    if name in _DIVISIONS and s.dtype_of(tensors[0]) in _INTEGER:
        return _division(call, value_of)
    if name in _SHIFTS:
        return _shift(call, value_of)
    if name in _INDEXED:
        return _indexed(call, value_of)
    return ""


def _tensors(call: Any) -> list[Any]:
    """Types of the tensors that a call reads, those in tuples too."""
    found: list[Any] = []
    todo = list(call.args)[::-1]
    while todo:
        item = todo.pop()
        if isinstance(item, relax.Tuple):
            todo.extend(list(item.fields)[::-1])
        elif isinstance(item.ty, relax.TensorType):
            found.append(item.ty)
    return found


def _division(call: Any, value_of: Callable[[Any], np.ndarray | None]) -> str:
    divisor = value_of(call.args[1])
    if divisor is None:
        return WAIT
    if not divisor.all():
        return DIVISOR
    if divisor.dtype.kind == "i" and (divisor == -1).any():
        dividend = value_of(call.args[0])
        if dividend is None:
            return WAIT
        if (dividend == np.iinfo(dividend.dtype).min).any():
            return DIVISOR
    return ""


def _shift(call: Any, value_of: Callable[[Any], np.ndarray | None]) -> str:
    by = value_of(call.args[1])
    if by is None:
        return WAIT
    bits = np.dtype(s.dtype_of(call.ty)).itemsize * 8
    return "" if int(by.min()) >= 0 and int(by.max()) < bits else SHIFT


def _indexed(call: Any, value_of: Callable[[Any], np.ndarray | None]) -> str:
    if not isinstance(call.args[1].ty, relax.TensorType):
        return INDEX  # take by a shape's dimension
    indices = value_of(call.args[1])
    if indices is None:
        return WAIT
    shape, axis = s.static_shape(call.args[0].ty) or (), call.attrs.axis
    if axis is None:
        size = math.prod(shape)
    elif -len(shape) <= int(axis) < len(shape):
        size = shape[int(axis)]
    else:
        return INDEX
    if s.op_name(call) == "relax.gather_elements":
        # Along the other axes it reads where it writes.
        at = int(axis) % len(shape)
        if any(n > m for i, (n, m) in enumerate(zip(indices.shape, shape, strict=True)) if i != at):
            return INDEX
    inside = indices.dtype.kind in "iu" and int(indices.min()) >= 0 and int(indices.max()) < size
    return "" if inside else INDEX


def work(call: Any) -> float:
    """What running a call costs: elements read and written, five for a multiply-accumulate.

    Infinite where the multiply-accumulates are not known.
    """
    shapes = [s.static_shape(ty) for ty in (*_tensors(call), call.ty)]
    products = macs(call)
    if products is None:
        return math.inf
    return float(sum(math.prod(shape) for shape in shapes if shape is not None) + 5 * products)


def kind(call: Any) -> tuple[str, ...]:
    """Calls of one kind become one kernel (attributes apart)."""
    return (s.op_name(call), type_text(call.ty), *(type_text(ty) for ty in _tensors(call)))
