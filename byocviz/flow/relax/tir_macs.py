"""Multiply-accumulates of a TIR function, read off its loops.

Independent of how TVM names its nodes in a release: what matters of an expression is found by
the names of its class and fields, which 0.26 and 0.27 share but for the load of a buffer.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import tvm
import tvm_ffi

_LOADS = {"BufferLoad": "buffer", "TensorLoad": "source"}
# Calls of scalars that give a scalar: they cannot hold a loop.
_SCALAR_NAMES = """
abs acos acosh asin asinh atan atan2 atanh bitwise_and bitwise_not bitwise_or bitwise_xor ceil clz
copysign cos cosh erf exp exp10 exp2 fabs floor fmod hypot isfinite isinf isnan isnullptr ldexp
likely log log10 log1p log2 nearbyint nextafter popcount pow q_multiply_shift
q_multiply_shift_per_axis reinterpret round rsqrt shift_left shift_right sigmoid sin sinh sqrt tan
tanh trunc call_pure_extern large_uint_imm infinity max_value min_value
"""
_SCALAR_OPS = frozenset(_SCALAR_NAMES.split())
_LEAVES = frozenset({"Var", "IntImm", "FloatImm", "StringImm", "SizeVar", "PrimVar", "bool"})
_SPATIAL, _REDUCE = 0, 2


class _Opaque(Exception):
    """Something whose work cannot be counted."""


def visit_tir(node: Any, visit: Callable[[Any], None]) -> None:
    """Call ``visit`` with every node of a TIR statement or expression, children first."""
    functor = getattr(tvm.tirx, "stmt_functor", None)
    if functor is not None:
        functor.post_order_visit(node, visit)
    else:

        def callback(value: Any) -> None:
            visit(value)

        tvm_ffi.structural_walk(node, callback)


@lru_cache(maxsize=4096)
def prim_func_macs(func: Any) -> int | None:
    """Multiply-accumulates of one run of a TIR function (`tvm.tirx.PrimFunc`).

    Every store is looked at. One that does not read what it overwrites, or overwrites each
    element once, is no reduction: 0. A reduction without a product (sum, max, min), or of the
    square of one expression (the norms), has none: 0. For ``C = C + A * B`` with A and B read
    from tensors, the product of the extents of all loops around it, as each iteration is one.

    Returns None, unknown, for any other reduction, for a symbolic extent around a counted one,
    for a branch or a predicate around a counted one, for ``while`` loops and calls of opaque
    code.
    """
    try:
        return _stmt(func.body, 1, {})
    except _Opaque:
        return None


def _stmt(node: Any, runs: int | None, axes: dict[Any, bool]) -> int:
    """Count below a statement.

    ``runs`` is how often it runs, None if unknown; ``axes`` maps each variable that an index can
    use to whether it is declared as reduced.
    """
    kind = type(node).__name__
    if kind == "For":
        extent = getattr(node.extent, "value", None)
        inner = runs * extent if runs is not None and isinstance(extent, int) else None
        return _stmt(node.body, inner, {**axes, node.loop_var: False})
    if kind in ("SBlockRealize", "BlockRealize"):
        always = getattr(node.predicate, "value", None) in (1, True)
        return _stmt(node.block, runs if always else None, axes)
    if kind in ("SBlock", "Block"):
        if len(node.iter_vars):
            # The block's own axes stand for the loops outside it.
            if any(axis.iter_type not in (_SPATIAL, _REDUCE) for axis in node.iter_vars):
                runs = None
            axes = {axis.var: axis.iter_type == _REDUCE for axis in node.iter_vars}
        return _stmt(node.body, runs, axes)
    if kind == "SeqStmt":
        return sum(_stmt(part, runs, axes) for part in node.seq)
    if kind == "IfThenElse":
        _expr(node.condition)
        total = _stmt(node.then_case, None, axes)
        return total + (_stmt(node.else_case, None, axes) if node.else_case is not None else 0)
    if kind == "BufferStore":
        return _store(node, runs, axes)
    if kind in ("LetStmt", "Bind"):
        _expr(node.value)
        body = getattr(node, "body", None)
        return _stmt(body, runs, axes) if body is not None else 0
    if kind in ("AllocBuffer", "DeclBuffer", "AttrStmt", "Allocate", "AssertStmt"):
        body = getattr(node, "body", None)
        return _stmt(body, runs, axes) if body is not None else 0
    if kind == "Evaluate" and not _loads_and_products(node.value)[2]:
        return 0
    raise _Opaque(kind)


def _store(node: Any, runs: int | None, axes: dict[Any, bool]) -> int:
    value, buffer = node.value, node.buffer
    loads, products, _ = _loads_and_products(value)
    own = [load for load in loads if buffer.same_as(_source(load))]
    if not own:
        return 0
    used = _variables(node.indices)
    same_place = all(tvm_ffi.structural_equal(load.indices, node.indices) for load in own)
    reduced = any(is_reduced or axis not in used for axis, is_reduced in axes.items())
    if same_place and not reduced:
        return 0  # each element is read and written once: in place, element by element
    if not products:
        return 0
    factors = _factors(value, buffer, node.indices)
    if factors is None:
        raise _Opaque("reduction")
    left, right = factors
    sides = []
    for side in (left, right):
        side_loads, side_products, _ = _loads_and_products(side)
        sources = [_source(load) for load in side_loads]
        if side_products or not sources or any(buffer.same_as(source) for source in sources):
            raise _Opaque("reduction")
        sides.append(sources)
    # Two buffers of one shape are structurally equal, so which they are is asked apart.
    if tvm_ffi.structural_equal(left, right) and all(
        a.same_as(b) for a, b in zip(*sides, strict=True)
    ):
        return 0
    if runs is None:
        raise _Opaque("extent")
    return runs


def _factors(value: Any, buffer: Any, indices: Any) -> tuple[Any, Any] | None:
    """A and B of ``C + A * B``, C the stored element; None for another form."""
    value = _uncast(value)
    if type(value).__name__ != "Add":
        return None
    for total, term in ((value.a, value.b), (value.b, value.a)):
        total, term = _uncast(total), _uncast(term)
        if (
            type(total).__name__ in _LOADS
            and buffer.same_as(_source(total))
            and tvm_ffi.structural_equal(total.indices, indices)
            and type(term).__name__ == "Mul"
        ):
            return term.a, term.b
    return None


def _source(load: Any) -> Any:
    return getattr(load, _LOADS[type(load).__name__])


def _uncast(value: Any) -> Any:
    while type(value).__name__ == "Cast":
        value = value.value
    return value


def _loads_and_products(value: Any) -> tuple[list[Any], list[Any], bool]:
    """Loads and products in an expression (indices and conditions aside); whether it calls."""
    loads: list[Any] = []
    products: list[Any] = []
    calls = _expr(value, loads, products)
    return loads, products, calls


def _expr(value: Any, loads: list[Any] | None = None, products: list[Any] | None = None) -> bool:
    """Walk an expression, raising `_Opaque` at code that cannot be looked into."""
    kind = type(value).__name__
    if kind in _LOADS:
        if loads is not None:
            loads.append(value)
        return False
    if kind == "Call":
        name = getattr(value.op, "name", None)
        if not isinstance(value.op, tvm.ir.Op) or not isinstance(name, str):
            raise _Opaque("call")
        parts = list(value.args)
        name = name.rpartition(".")[2]  # the namespace differs between releases
        if name == "if_then_else":
            parts = parts[1:]
        elif name not in _SCALAR_OPS:
            raise _Opaque(name)
        for part in parts:
            _expr(part, loads, products)
        return True
    if kind in ("Select", "IfThenElse"):
        calls = _expr(value.true_value, loads, products)
        return _expr(value.false_value, loads, products) or calls
    if kind == "Let":
        calls = _expr(value.value, loads, products)
        return _expr(value.body, loads, products) or calls
    if kind == "Cast":
        return _expr(value.value, loads, products)
    if kind == "Mul" and products is not None:
        products.append(value)
    left = getattr(value, "a", None)
    if left is not None:
        calls = _expr(left, loads, products)
        right = getattr(value, "b", None)
        return (_expr(right, loads, products) if right is not None else False) or calls
    if kind not in _LEAVES:
        raise _Opaque(kind)
    return False


def _variables(indices: Any) -> set[Any]:
    found: set[Any] = set()

    def visit(node: Any) -> None:
        if isinstance(node, tvm.tirx.Var):
            found.add(node)

    for index in indices:
        if isinstance(index, tvm.tirx.Var):
            found.add(index)
        else:
            visit_tir(index, visit)
    return found
