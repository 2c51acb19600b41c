"""The inputs of a run: made from a seed, or given and checked against the parameters."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tvm
from tvm import relax

from byocviz.errors import ModuleError
from byocviz.flow.relax.macs import type_text

_WEIGHT_OPS = re.compile(r"relax\.(nn\.conv\w+|matmul)$")
_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mul": lambda a, b: a * b,
    "FloorDiv": lambda a, b: a // b,
    "FloorMod": lambda a, b: a % b,
    "Div": lambda a, b: int(a / b),
    "Mod": lambda a, b: int(math.fmod(a, b)),
    "Min": min,
    "Max": max,
}


def entry_function(mod: tvm.IRModule, entry: str) -> relax.Function:
    """The Relax function named ``entry``.

    Raises `ModuleError` where the module has none of that name.
    """
    names = []
    for gvar, func in mod.functions_items():
        if isinstance(func, relax.Function):
            if gvar.name_hint == entry:
                return func
            names.append(gvar.name_hint)
    raise ModuleError(
        f"the module has no Relax function named {entry!r}.",
        f"It has: {', '.join(sorted(names)) or 'none'}. Give one of these as entry.",
    )


def numpy_dtype(dtype: object) -> np.dtype:
    """The NumPy dtype of a TVM dtype; bfloat16 and float8 come from ``ml_dtypes``.

    Raises `ModuleError` for one that NumPy cannot hold.
    """
    name = str(dtype)
    try:
        return np.dtype(name)
    except TypeError:
        pass
    try:
        import ml_dtypes

        kind: np.dtype = np.dtype(getattr(ml_dtypes, name))
        return kind
    except (ImportError, AttributeError, TypeError):
        raise ModuleError(
            f"values of dtype {name} cannot be made with NumPy.",
            "Give a module whose parameters have a dtype that NumPy knows, or verify=False.",
        ) from None


class _Symbols:
    """Values of symbolic dimensions, one a symbol."""

    def __init__(self) -> None:
        self.values: dict[Any, int] = {}

    def value(self, dim: Any) -> int | None:
        """The value of a dimension; None where a symbol of it has none yet."""
        number = getattr(dim, "value", None)
        if isinstance(number, int):
            return number
        if isinstance(dim, tvm.tirx.Var):
            return self.values.get(dim)
        apply = _ARITHMETIC.get(type(dim).__name__)
        if apply is None:
            inner = dim.value if type(dim).__name__ == "Cast" else None
            return self.value(inner) if inner is not None else None
        left, right = self.value(dim.a), self.value(dim.b)
        return None if left is None or right is None else apply(left, right)

    def meet(self, dim: Any, size: int) -> int | None:
        """What ``dim`` must be; an unseen lone symbol takes ``size``. None if undecided."""
        if isinstance(dim, tvm.tirx.Var):
            return self.values.setdefault(dim, size)
        return self.value(dim)


def _lone_symbols(ty: Any) -> Iterator[Any]:
    if isinstance(ty, relax.TupleType):
        for field in ty.fields:
            yield from _lone_symbols(field)
        return
    shape = ty.shape if isinstance(ty, relax.TensorType) else ty
    values = getattr(shape, "values", None)
    for dim in values or ():
        if isinstance(dim, tvm.tirx.Var):
            yield dim


def _roles(func: relax.Function) -> tuple[set[Any], set[Any]]:
    """Parameters that are weights of a convolution or matmul, and those that are variances."""
    weights: set[Any] = set()
    variances: set[Any] = set()

    def visit(expr: Any) -> None:
        if not isinstance(expr, relax.Call) or not isinstance(expr.op, tvm.ir.Op):
            return
        name = expr.op.name
        if _WEIGHT_OPS.match(name):
            weights.add(expr.args[1])
        elif name == "relax.nn.batch_norm":
            variances.add(expr.args[4])

    relax.analysis.post_order_visit(func, visit)
    return weights, variances


def seeded_inputs(mod: tvm.IRModule, entry: str = "main", seed: int = 0) -> dict[str, Any]:
    """A value for every parameter of ``entry``, the same for the same seed.

    Floats are normal with a deviation of 0.5; a weight of a convolution or matmul is divided by
    the square root of its fan-in so that a deep model neither overflows nor vanishes; a
    variance of a batch norm is at least 0.5. Integers are 0, 1 or 2; booleans are either. Each
    symbolic dimension is 2, 3, ... in the order in which the parameters name them, one value a
    symbol. Tuples become lists, shapes become tuples of int.

    Returns ``{parameter name: value}`` in the order of the parameters. Raises `ModuleError` for
    an unknown entry and for parameters of which no value can be made (a function, an object).
    """
    func = entry_function(mod, entry)
    rng = np.random.default_rng(seed)
    symbols = _Symbols()
    for param in func.params:
        for dim in _lone_symbols(param.ty):
            symbols.values.setdefault(dim, 2 + len(symbols.values))
    weights, variances = _roles(func)
    out: dict[str, Any] = {}
    for param in func.params:
        value = _seeded(param.ty, rng, symbols, param.name, param in weights)
        if param in variances:
            value = (np.abs(value) + np.asarray(0.5, value.dtype)).astype(value.dtype)
        if param.name in out:
            raise ModuleError(
                f"function {entry!r} has two parameters named {param.name!r}.",
                "Rename one, or give inputs as a list in the order of the parameters.",
            )
        out[param.name] = value
    return out


def _seeded(ty: Any, rng: np.random.Generator, symbols: _Symbols, name: str, weight: bool) -> Any:
    if isinstance(ty, relax.TupleType):
        return [_seeded(f, rng, symbols, f"{name}[{i}]", weight) for i, f in enumerate(ty.fields)]
    if isinstance(ty, relax.ShapeType):
        if ty.values is None:
            return tuple(range(2, 2 + max(ty.ndim, 0)))
        return tuple(_size(dim, symbols, name) for dim in ty.values)
    if isinstance(ty, relax.TensorType):
        if isinstance(ty.shape, relax.ShapeExpr):
            shape = tuple(_size(dim, symbols, name) for dim in ty.shape.values)
        elif ty.ndim >= 0:
            shape = (2,) * ty.ndim
        else:
            shape = (2, 2)
        return _array(str(ty.dtype), shape, rng, weight)
    if isinstance(ty, tvm.ir.PrimType):
        value = _array(str(ty.dtype), (), rng, False)
        return value.item()
    raise ModuleError(
        f"no value can be made for parameter {name!r} of type {ty}.",
        "Give inputs for it, or wrap the function in one that takes tensors.",
    )


def _size(dim: Any, symbols: _Symbols, name: str) -> int:
    size = symbols.value(dim)
    if size is None or size < 0:
        raise ModuleError(
            f"the dimension {dim} of parameter {name!r} has no value: its symbols are not the "
            "dimension of any parameter.",
            "Give inputs, or let a parameter have that symbol as a dimension of its own.",
        )
    return size


def _array(dtype: str, shape: tuple[int, ...], rng: np.random.Generator, weight: bool) -> Any:
    kind = numpy_dtype(dtype)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if "int" in dtype:
        return rng.integers(0, 3, shape).astype(kind)
    scale = 0.5
    if weight and len(shape) > 1:
        scale = 1.0 / math.sqrt(max(1, math.prod(shape) // max(1, shape[0])))
    return (rng.standard_normal(shape) * scale).astype(kind)


def ordered_inputs(
    func: relax.Function, entry: str, inputs: Mapping[str, Any] | Sequence[Any]
) -> list[Any]:
    """Check ``inputs`` against the parameters of ``func``; returns TVM's own values in order.

    ``inputs`` holds a value for each parameter, by name or in order. Raises `ModuleError` where a
    name, the number, a dtype or a shape does not fit.
    """
    names = [param.name for param in func.params]
    if isinstance(inputs, Mapping):
        unknown = [name for name in inputs if name not in names]
        absent = [name for name in names if name not in inputs]
        if unknown or absent:
            parts = []
            if absent:
                parts.append(f"no input for {', '.join(map(repr, absent))}")
            if unknown:
                parts.append(f"{', '.join(map(repr, unknown))} is no parameter")
            raise ModuleError(
                f"inputs of function {entry!r}: {'; '.join(parts)}.",
                f"Its parameters, in order: {', '.join(names) or 'none'}.",
            )
        values = [inputs[name] for name in names]
    else:
        values = list(inputs)
        if len(values) != len(names):
            raise ModuleError(
                f"function {entry!r} takes {len(names)} inputs; {len(values)} were given.",
                f"Its parameters, in order: {', '.join(names) or 'none'}.",
            )
    symbols = _Symbols()
    return [_checked(p.ty, v, symbols, p.name) for p, v in zip(func.params, values, strict=True)]


def _checked(ty: Any, value: Any, symbols: _Symbols, name: str) -> Any:
    if isinstance(ty, relax.TupleType):
        if not isinstance(value, Sequence) or len(value) != len(ty.fields):
            raise ModuleError(
                f"input {name!r} must be a tuple of {len(ty.fields)} values.",
                "Give a list or tuple with one value a field.",
            )
        fields = zip(ty.fields, value, strict=True)
        return tuple(_checked(f, v, symbols, f"{name}[{i}]") for i, (f, v) in enumerate(fields))
    if isinstance(ty, relax.ShapeType):
        sizes = tuple(int(v) for v in value)
        _check_sizes(ty, ty.values, sizes, symbols, name)
        return tvm.runtime.ShapeTuple(sizes)
    if isinstance(ty, relax.TensorType):
        array = value if isinstance(value, np.ndarray) else np.asarray(value)
        want = numpy_dtype(ty.dtype)
        if array.dtype != want:
            raise ModuleError(
                f"input {name!r} has dtype {array.dtype}; the module wants {ty.dtype}.",
                f"Convert it: value.astype({str(ty.dtype)!r}).",
            )
        if isinstance(ty.shape, relax.ShapeExpr):
            _check_sizes(ty, ty.shape.values, array.shape, symbols, name)
        elif 0 <= ty.ndim != array.ndim:
            raise ModuleError(
                f"input {name!r} has {array.ndim} dimensions; the module wants {ty.ndim}.",
                "Reshape it.",
            )
        return tvm.runtime.tensor(np.ascontiguousarray(array).reshape(array.shape))
    return value


def _check_sizes(ty: Any, dims: Any, sizes: Sequence[int], symbols: _Symbols, name: str) -> None:
    if dims is None:
        return
    wanted = [symbols.meet(dim, size) for dim, size in zip(dims, sizes, strict=False)]
    fits = len(sizes) == len(dims) and all(
        want is None or want == size for want, size in zip(wanted, sizes, strict=True)
    )
    if not fits:
        raise ModuleError(
            f"input {name!r} has shape {list(sizes)}; the module wants {type_text(ty)}.",
            "Give a value of that shape; a symbol has the same value wherever it stands.",
        )
