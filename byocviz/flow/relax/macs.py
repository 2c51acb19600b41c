"""Multiply-accumulates of a Relax call, and bytes and text of a Relax type.

A multiply-accumulate (MAC) is one product of an element of one tensor with an element of another
that is added to a running sum. As in TVM's own analysis and the usual counters, only
convolutions, matrix products, contractions and attention have any. Sums of squares (norms,
variance), means, pooling, interpolation and softmax have none, and biases are not counted.

Figures are those of the direct algorithm: products with padding count, and masks and zeros save
nothing. A shape that is not wholly static gives None, never a guess.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import tvm
from tvm import relax

from byocviz.flow.relax.tir_macs import prim_func_macs, visit_tir

__all__ = ["macs", "tensor_bytes", "type_text", "visit_tir"]

_Op = tvm.ir.Op
_TensorType = relax.TensorType
_ShapeExpr = relax.ShapeExpr


def _dims(ty: Any) -> list[int] | None:
    """The static shape of a tensor type, or None."""
    shape = getattr(ty, "shape", None)
    if not isinstance(shape, _ShapeExpr):
        return None
    out = []
    for dim in shape.values:
        value = getattr(dim, "value", None)
        if not isinstance(value, int):
            return None
        out.append(value)
    return out


def _product(values: list[int]) -> int:
    out = 1
    for value in values:
        out *= value
    return out


def _conv(call: Any, reduced: Any, over: Any) -> int | None:
    """Elements of ``over`` times the kernel's extent along every axis not in ``reduced``."""
    grid, kernel = _dims(over), _dims(call.args[1].ty)
    if grid is None or kernel is None:
        return None
    layout = re.sub(r"[^A-Za-z]", "", call.attrs.kernel_layout)
    if len(layout) != len(kernel):
        return None
    per = [size for axis, size in zip(layout, kernel, strict=True) if axis.upper() != reduced]
    return _product(grid) * _product(per)


def _conv_macs(call: Any) -> int | None:
    """Convolution: ``N * Cout * prod(out spatial) * (Cin / groups) * prod(kernel)``.

    Each output element sums over the kernel and the input channels of its group. The output has
    ``N * Cout * prod(out spatial)`` elements in any layout (a split channel as in ``NCHW4c``
    included); the kernel's extent along every axis but O and o is ``(Cin / groups) *
    prod(kernel)``. Source: Dumoulin and Visin, "A guide to convolution arithmetic for deep
    learning" (arXiv 1603.07285); Sze et al., "Efficient Processing of Deep Neural Networks"
    (arXiv 1703.09039), section III.
    """
    return _conv(call, "O", call.ty)


def _conv_transpose_macs(call: Any) -> int | None:
    """Transposed convolution: ``N * Cin * prod(in spatial) * (Cout / groups) * prod(kernel)``.

    Each input element is multiplied with the whole kernel of its channel and scattered to the
    output, so the count is over input positions; products that fall outside the output count,
    inserted zeros do not. Source: arXiv 1603.07285, chapter 4.
    """
    return _conv(call, "I", call.args[0].ty)


def _matmul_macs(call: Any) -> int | None:
    """Matrix product: ``prod(output) * K``, K the last dimension of the first operand.

    Holds for vectors (K their length) and for batches that are broadcast, as each output element
    is one dot product of length K. Source: the operator's definition (NumPy's matmul).
    """
    out, left = _dims(call.ty), _dims(call.args[0].ty)
    if out is None or not left:
        return None
    return _product(out) * left[-1]


def _einsum_macs(call: Any) -> int | None:
    """Einstein sum of two operands: ``prod(output) * prod(extent of each summed label)``.

    Without a summed label it is an element-wise product, and with one operand a sum or a
    transposition: 0. For three or more the count depends on the order of contraction: None.
    Source: the definition of the sum (NumPy's einsum).
    """
    operands = getattr(call.args[0].ty, "fields", None)
    if operands is None:
        return None
    left, arrow, right = call.attrs.subscripts.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) == 1:
        return 0
    if len(terms) != 2 or len(operands) != 2:
        return None
    extent: dict[str, int] = {}
    for term, ty in zip(terms, operands, strict=True):
        shape = _dims(ty)
        if shape is None:
            return None
        head, dots, tail = term.partition("...")
        if len(head) + len(tail) > len(shape) or (not dots and len(head) != len(shape)):
            return None
        last = shape[len(shape) - len(tail) :]
        for label, size in [*zip(head, shape, strict=False), *zip(tail, last, strict=True)]:
            extent[label] = max(size, extent.get(label, 0)) if size else 0
    if arrow:
        if "..." in left and "..." not in right:
            return None
        kept = set(right)
    else:
        letters = left.replace(",", "").replace(".", "")
        kept = {label for label in letters if letters.count(label) == 1}
    summed = [size for label, size in extent.items() if label not in kept]
    if not summed:
        return 0
    out = _dims(call.ty)
    return None if out is None else _product(out) * _product(summed)


def _attention_macs(call: Any) -> int | None:
    """Attention: ``B * N * S * T * (H + V)``.

    For queries [B, S, N, H], keys [B, T, N', H] and values [B, T, N', V]: the scores are
    ``B * N`` products of S x H by H x T, the result ``B * N`` products of S x T by T x V. Each
    of the N query heads counts where keys are shared (N' < N). A causal mask or a window saves
    nothing; bias, scale and softmax are not counted. Source: Vaswani et al., "Attention Is All
    You Need" (arXiv 1706.03762), section 3.2.
    """
    query, key, value = (_dims(arg.ty) for arg in list(call.args)[:3])
    if query is None or key is None or value is None:
        return None
    if not len(query) == len(key) == len(value) == 4:
        return None
    batch, rows, heads, width = query
    return batch * heads * rows * key[1] * (width + value[3])


def _unknown(call: Any) -> None:
    """Opaque code, or work that depends on values."""
    return None


_COUNTED: dict[str, Callable[[Any], int | None]] = {
    "relax.matmul": _matmul_macs,
    "relax.einsum": _einsum_macs,
    "relax.nn.attention": _attention_macs,
    "relax.nn.attention_bias": _attention_macs,
    # Sequences of different lengths packed into one axis: the lengths are values.
    "relax.nn.attention_var_len": _unknown,
}
for _n in ("1d", "2d", "3d"):
    _COUNTED[f"relax.nn.conv{_n}"] = _conv_macs
    _COUNTED[f"relax.nn.conv{_n}_transpose"] = _conv_transpose_macs
_OPAQUE = """
call_builtin_with_ctx call_dps_packed call_inplace_packed call_pure_packed call_py_func
invoke_closure invoke_pure_closure dist.call_tir_local_view vm.call_tir_dyn
"""
_COUNTED.update((f"relax.{_name}", _unknown) for _name in _OPAQUE.split())

_CALL_TIR = frozenset({"relax.call_tir", "relax.call_tir_inplace", "relax.call_tir_with_grad"})

_WITHOUT = """
abs acos acosh add arange argmax argmin argsort asin asinh assert_op astype atan atan2 atanh
bitwise_and bitwise_not bitwise_or bitwise_xor broadcast_to bucketize ceil clip collapse_sum_like
collapse_sum_to concat cos cosh cumprod cumsum dequantize divide dynamic_strided_slice equal erf
ewise_fma exp expand_dims eye eye_like flatten flip floor floor_divide floor_mod full full_like
gather_elements gather_nd greater greater_equal hamming_window hint_on_device index_put
index_tensor isfinite isinf isnan layout_transform left_shift less less_equal log log_add_exp
logical_and logical_not logical_or logical_xor make_closure max maximum mean median meshgrid min
minimum mod multinomial_from_uniform multiply negative nonzero not_equal null_value one_hot ones
ones_like outer permute_dims power print prod quantize repeat reshape reverse_sequence right_shift
round rsqrt scatter_elements scatter_nd shape_of shape_to_tensor sigmoid sign sin sinh size
slice_scatter sort split sqrt square squeeze stack std strided_slice subtract sum take tan tanh
tensor_to_shape tile to_vdevice topk tril triu trunc unique variance where wrap_param zeros
zeros_like
builtin.alloc_tensor builtin.stop_lift_params
ccl.allgather ccl.allreduce ccl.broadcast_from_worker0 ccl.scatter_from_worker0
dist.annotate_sharding dist.redistribute dist.redistribute_replica_to_shard
grad.avg_pool2d_backward grad.end_checkpoint grad.max_pool2d_backward grad.nll_loss_backward
grad.no_grad grad.start_checkpoint grad.take_backward
image.affine_grid image.grid_sample image.resize2d image.resize3d
inspect.tensor_byte_offset inspect.tensor_dtype_bits inspect.tensor_dtype_code
inspect.tensor_dtype_lanes inspect.tensor_elem_offset inspect.tensor_ndim inspect.tensor_shape_i
inspect.tensor_stride_i
memory.alloc_storage memory.alloc_tensor memory.ensure_zero_offset memory.kill_storage
memory.kill_tensor memory.view
nn.adaptive_avg_pool1d nn.adaptive_avg_pool2d nn.adaptive_avg_pool3d nn.avg_pool1d nn.avg_pool2d
nn.avg_pool3d nn.batch_flatten nn.batch_norm nn.cross_entropy_with_logits nn.dropout nn.gelu
nn.gelu_tanh nn.group_norm nn.instance_norm nn.layer_norm nn.leakyrelu nn.log_softmax
nn.max_pool1d nn.max_pool2d nn.max_pool3d nn.nll_loss nn.pad nn.pixel_shuffle nn.prelu nn.relu
nn.rms_norm nn.selu nn.silu nn.softmax nn.softplus
vision.all_class_non_max_suppression vision.get_valid_counts vision.multibox_transform_loc
vision.non_max_suppression vision.roi_align vision.roi_pool
vm.alloc_storage vm.alloc_tensor vm.kill_object
"""
WITHOUT_MACS = frozenset(f"relax.{name}" for name in _WITHOUT.split())
"""Operators of TVM 0.26 and 0.27 without a multiply-accumulate."""


def macs(call: relax.Call, mod: tvm.IRModule | None = None) -> int | None:
    """Multiply-accumulates of one run of a call.

    Formulas: `_conv_macs`, `_conv_transpose_macs`, `_matmul_macs`, `_einsum_macs`,
    `_attention_macs` in this file; for ``call_tir`` the loops of the TIR function in ``mod``
    (`byocviz.flow.relax.tir_macs.prim_func_macs`). ``call`` must be normalized (have a type).

    Returns 0 for every other operator that TVM is known to have, and for a call of a function of
    the module (its operators are counted where they stand). Returns None, unknown, where a
    dimension that matters is symbolic, for packed functions and other opaque code, for
    ``call_tir`` without ``mod``, and for an operator that this file does not know.
    """
    op = call.op
    if not isinstance(op, _Op):
        return None if isinstance(op, relax.ExternFunc) else 0
    name = op.name
    if name in WITHOUT_MACS:
        return 0
    count = _COUNTED.get(name)
    if count is not None:
        return count(call)
    if name in _CALL_TIR and mod is not None:
        gvar = call.args[0]
        func = mod.functions.get(gvar) if isinstance(gvar, tvm.ir.GlobalVar) else None
        if isinstance(func, tvm.tirx.PrimFunc):
            return prim_func_macs(func)
    return None


# --------------------------------------------------------------------------- types


def _dtype(ty: Any) -> str:
    dtype = getattr(ty, "dtype", None)
    return "" if dtype is None else str(dtype)


_BITS: dict[str, int] = {"": 0, "bool": 8, "handle": 64}


def _bits(dtype: str) -> int:
    bits = _BITS.get(dtype)
    if bits is None:
        # uint1 is how older modules spell bool, which fills a byte.
        bits = 8 if dtype == "uint1" else tvm.DataType(dtype).bits * tvm.DataType(dtype).lanes
        _BITS[dtype] = bits
    return bits


def tensor_bytes(ty: Any) -> int | None:
    """Bytes of a value of a Relax type, as TVM lays it out.

    A tensor has its elements times the bits of its dtype, rounded up to whole bytes once a
    tensor (so int4[3] has 2); a boolean fills a byte. A tuple has the sum of its fields, a shape
    8 a dimension, a scalar those of its dtype. None where a dimension, the rank or the dtype is
    unknown, and for functions and other objects.
    """
    if isinstance(ty, _TensorType):
        shape, bits = _dims(ty), _bits(_dtype(ty))
        if shape is None or not bits:
            return None
        return (_product(shape) * bits + 7) // 8
    if isinstance(ty, relax.TupleType):
        total = 0
        for field in ty.fields:
            size = tensor_bytes(field)
            if size is None:
                return None
            total += size
        return total
    if isinstance(ty, relax.ShapeType):
        return 8 * ty.ndim if ty.ndim >= 0 else None
    if isinstance(ty, tvm.ir.PrimType):
        return (_bits(_dtype(ty)) + 7) // 8 or None
    return None


_TYPED_NUMBER = re.compile(r"T\.u?int\d+\((-?\d+)\)")


def _dim_text(dim: Any) -> str:
    value = getattr(dim, "value", None)
    if isinstance(value, int):
        return str(value)
    name = getattr(dim, "name", None)
    return name if isinstance(name, str) else _TYPED_NUMBER.sub(r"\1", str(dim))


def _shape_text(dims: Any, ndim: int) -> str:
    if dims is not None:
        return ", ".join([_dim_text(dim) for dim in dims[:]])
    return ", ".join("?" * ndim) if ndim >= 0 else "*"


def type_text(ty: Any) -> str:
    """A Relax type in short, as ``float32[1, 3, 300, 300]``.

    Symbolic dimensions stand by name or as the expression, unknown ones as ``?``; an unknown
    rank is ``*``, an unknown dtype ``?``. Tuples read ``(a, b)``, shapes ``shape[1, 3]``,
    scalars by dtype, functions ``function``, all else ``object``.
    """
    if isinstance(ty, _TensorType):
        shape = ty.shape
        dims = shape.values if isinstance(shape, _ShapeExpr) else None
        return f"{_dtype(ty) or '?'}[{_shape_text(dims, ty.ndim)}]"
    if isinstance(ty, relax.TupleType):
        return f"({', '.join([type_text(field) for field in ty.fields])})"
    if isinstance(ty, relax.ShapeType):
        return f"shape[{_shape_text(ty.values, ty.ndim)}]"
    if isinstance(ty, tvm.ir.PrimType):
        return _dtype(ty) or "?"
    if isinstance(ty, relax.FuncType):
        return "function"
    return "object"
