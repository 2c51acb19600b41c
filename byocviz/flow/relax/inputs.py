"""The inputs of a run: made from a seed, or given and checked against the parameters."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tvm
from tvm import relax

from byocviz.errors import ModuleError

MOST_BYTES = 2 * 2**30
"""Most bytes that seeded inputs take in all."""

_WEIGHT_OPS = re.compile(r"relax\.(nn\.conv\w+|matmul)$")
_INDEX_OPS = re.compile(
    r"relax\.(take|gather_\w+|scatter_\w+|index_tensor|index_put|nn\.nll_loss)$"
)
"""Operators whose second argument holds places in their first."""
_INTEGERS = (1, 3)
"""Seeded integers: from the first, below the second. A zero may come to stand as a divisor, and an
integer division by zero ends the process."""

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


class Symbols:
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
        if self.value(dim) is None:
            self._solve(dim, size)
        return self.value(dim)

    def _solve(self, dim: Any, size: int) -> None:
        """Give the symbol in ``dim`` its value, where ``dim`` is linear in that one."""
        if isinstance(dim, tvm.tirx.Var):
            self.values.setdefault(dim, size)
            return
        kind = type(dim).__name__
        if kind not in ("Add", "Sub", "Mul"):
            return
        left, right = self.value(dim.a), self.value(dim.b)
        if (left is None) == (right is None):
            return
        rest = dim.b if left is not None else dim.a
        known = left if left is not None else right
        assert known is not None
        if kind == "Add":
            self._solve(rest, size - known)
        elif kind == "Sub":
            self._solve(rest, known - size if left is not None else known + size)
        elif known and size % known == 0:
            self._solve(rest, size // known)

    def choose(self, types: Iterable[Any]) -> None:
        """Give each lone symbol of ``types`` that has no value yet one of its own: 2, 3, ..."""
        for ty in types:
            for dim in _lone_symbols(ty):
                if dim not in self.values:
                    taken = set(self.values.values())
                    sizes = itertools.count(2 + len(self.values))
                    self.values[dim] = next(size for size in sizes if size not in taken)


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


def _integers(func: relax.Function, symbols: Symbols) -> dict[Any, tuple[int, int]]:
    """The bounds of parameters whose integers become an index, or may become one.

    The first value is the smallest, the second the one after the largest.
    """
    values = relax.analysis.get_var2val(func)
    indices: list[tuple[int, Any]] = []
    unseen: list[Any] = []

    def visit(expr: Any) -> None:
        if not isinstance(expr, relax.Call):
            return
        name = expr.op.name if isinstance(expr.op, tvm.ir.Op) else ""
        if _INDEX_OPS.match(name):
            indices.append((_places(expr, symbols), expr.args[1]))
        elif not name or name.startswith("relax.call_"):
            unseen.extend(expr.args)

    relax.analysis.post_order_visit(func, visit)
    found: dict[Any, tuple[int, int]] = {}
    seen: set[Any] = set()
    for most, index in sorted(indices, key=lambda pair: pair[0]):
        for param in _origins(index, values, seen):
            found[param] = 0, min(most, _INTEGERS[1])
    for param in _origins(relax.Tuple(unseen), values, seen):
        found[param] = 1, 2  # it may be a divisor or an index there
    return found


def _places(call: relax.Call, symbols: Symbols) -> int:
    """How many places an index of ``call`` may name at least; 1 where that is not known."""
    shape = getattr(call.args[0].ty, "shape", None)
    if not isinstance(shape, relax.ShapeExpr):
        return 1
    dims = list(shape.values)
    axis = getattr(call.attrs, "axis", None) if call.op.name == "relax.take" else None
    if axis is not None and -len(dims) <= int(axis) < len(dims):
        dims = [dims[int(axis)]]
    return max(1, min((symbols.value(dim) or 1 for dim in dims), default=1))


def _origins(expr: Any, values: Any, seen: set[Any]) -> Iterator[Any]:
    """The variables without a value that ``expr`` is computed from; none that was ``seen``."""
    todo = [expr]
    while todo:
        expr = todo.pop()
        if isinstance(expr, relax.Var):
            if expr in seen:
                continue
            seen.add(expr)
            if expr in values:
                todo.append(values[expr])
            else:
                yield expr
        elif isinstance(expr, relax.Call):
            todo.extend(expr.args)
        elif isinstance(expr, relax.Tuple):
            todo.extend(expr.fields)
        elif isinstance(expr, relax.TupleGetItem):
            todo.append(expr.tuple_value)
        elif isinstance(expr, relax.If):
            todo += [expr.true_branch, expr.false_branch]
        elif isinstance(expr, relax.SeqExpr):
            todo.append(expr.body)


def placed_inputs(func: relax.Function, entry: str, inputs: Any, *, every: bool) -> dict[int, Any]:
    """``inputs``, by name or in order, by the place of their parameter of ``func``.

    With ``every`` each parameter must have one. In order there must be one for each in any case.
    Raises `ModuleError` where they are neither, or a name or their number does not fit.
    """
    names = [param.name for param in func.params]
    mend = f"Its parameters, in order: {', '.join(names) or 'none'}."
    if not isinstance(inputs, (Mapping, Sequence)) or isinstance(inputs, (str, bytes, bytearray)):
        raise ModuleError(
            f"inputs of function {entry!r} are a {type(inputs).__name__}; they must be a "
            "dictionary, or a list in the order of the parameters.",
            f"Give inputs={{{names[0] if names else 'name'!r}: value}}, or inputs=[value]. {mend}",
        )
    if not isinstance(inputs, Mapping):
        if len(inputs) != len(names):
            raise ModuleError(
                f"function {entry!r} takes {len(names)} inputs; {len(inputs)} were given.", mend
            )
        return dict(enumerate(inputs))
    unknown = [name for name in inputs if name not in names]
    absent = [name for name in names if name not in inputs] if every else []
    twice = [name for name in inputs if names.count(name) > 1]
    if unknown or absent or twice:
        parts = []
        if absent:
            parts.append(f"no input for {', '.join(map(repr, absent))}")
        if unknown:
            parts.append(f"{', '.join(map(repr, unknown))} is no parameter")
        if twice:
            parts.append(f"several parameters are named {', '.join(map(repr, twice))}")
            mend = f"Give a list, in the order of the parameters. {mend}"
        raise ModuleError(f"inputs of function {entry!r}: {'; '.join(parts)}.", mend)
    return {names.index(name): value for name, value in inputs.items()}


def seeded_inputs(mod: tvm.IRModule, entry: str = "main", seed: int = 0) -> dict[str, Any]:
    """A value for every parameter of ``entry``, the same for the same seed.

    Floats are normal with a deviation of 0.5; a weight of a convolution or matmul is divided by
    the square root of its fan-in so that a deep model neither overflows nor vanishes; a
    variance of a batch norm is at least 0.5. Integers are 1 or 2, as one may be a divisor; those
    that an operator takes for indices are places that there are, from 0; those that a function
    is called with, of which nothing is known, are 1. Booleans are either. Each symbolic
    dimension is 2, 3, ... in the order in which the parameters name them, one value a symbol.
    Tuples become lists, shapes become tuples of int.

    Returns ``{parameter name: value}`` in the order of the parameters. Raises `ModuleError` for
    an unknown entry, for parameters of which no value can be made (a function, an object), for
    two of the same name, and where the values would take more than `MOST_BYTES`.
    """
    func = entry_function(mod, entry)
    names = [param.name for param in func.params]
    for name in names:
        if names.count(name) > 1:
            raise ModuleError(
                f"function {entry!r} has two parameters named {name!r}.",
                "Rename one, or give inputs as a list in the order of the parameters.",
            )
    values = seeded_values(func, {}, Symbols(), seed=seed)
    return dict(zip(names, values, strict=True))


def seeded_values(
    func: relax.Function,
    given: Mapping[int, Any],
    symbols: Symbols,
    *,
    seed: int = 0,
    conditions: bool | None = None,
) -> list[Any]:
    """A value for each parameter of ``func`` in order: that in ``given``, by place, else a seeded.

    ``symbols`` holds the sizes that the given values decide; those that they leave open are
    chosen, and added to it. ``conditions`` is the value of all seeded boolean scalars; None:
    either. For the rest, and what is raised, see `seeded_inputs`.
    """
    params = list(func.params)
    symbols.choose(param.ty for place, param in enumerate(params) if place not in given)
    seeder = _Seeder(np.random.default_rng(seed), symbols, conditions)
    weights, variances = _roles(func)
    integers = _integers(func, symbols)
    out: list[Any] = []
    for place, param in enumerate(params):
        if place in given:
            out.append(given[place])
            continue
        seeder.weight, seeder.integers = param in weights, integers.get(param, _INTEGERS)
        value = seeder.make(param.ty, param.name)
        if param in variances:
            value = (np.abs(value) + np.asarray(0.5, value.dtype)).astype(value.dtype)
        out.append(value)
    return out


def boolean_scalars(ty: Any) -> bool:
    """Whether a type is, or holds, a boolean scalar, which may be the condition of an If."""
    if isinstance(ty, relax.TupleType):
        return any(boolean_scalars(field) for field in ty.fields)
    if isinstance(ty, (relax.TensorType, tvm.ir.PrimType)):
        return str(ty.dtype) == "bool" and getattr(ty, "ndim", 0) == 0
    return False


class _Seeder:
    """Makes the values of one run, of `MOST_BYTES` in all."""

    def __init__(self, rng: np.random.Generator, symbols: Symbols, conditions: bool | None) -> None:
        self.rng = rng
        self.symbols = symbols
        self.conditions = conditions
        self.weight = False
        self.integers = _INTEGERS
        self.bytes = 0

    def make(self, ty: Any, name: str) -> Any:
        if isinstance(ty, relax.TupleType):
            return [self.make(field, f"{name}[{i}]") for i, field in enumerate(ty.fields)]
        if isinstance(ty, relax.ShapeType):
            if ty.values is None:
                return tuple(range(2, 2 + max(ty.ndim, 0)))
            return tuple(_size(dim, self.symbols, name) for dim in ty.values)
        if isinstance(ty, relax.TensorType):
            if isinstance(ty.shape, relax.ShapeExpr):
                shape = tuple(_size(dim, self.symbols, name) for dim in ty.shape.values)
            else:
                shape = (2,) * ty.ndim if ty.ndim >= 0 else (2, 2)
            return self.array(str(ty.dtype or "float32"), shape, name)
        if isinstance(ty, tvm.ir.PrimType):
            return self.array(str(ty.dtype), (), name).item()
        raise ModuleError(
            f"no value can be made for parameter {name!r} of type {ty}.",
            "Give inputs for it, or wrap the function in one that takes tensors.",
        )

    def array(self, dtype: str, shape: tuple[int, ...], name: str) -> Any:
        kind = numpy_dtype(dtype)
        self.bytes += math.prod(shape) * kind.itemsize
        if self.bytes > MOST_BYTES:
            raise ModuleError(
                f"seeded inputs would take more than {MOST_BYTES / 2**30:g} GiB: parameter "
                f"{name!r} is {dtype}{list(shape)}.",
                "Give inputs, params for the weights, or verify=False.",
            )
        if dtype == "bool":
            value = self.rng.integers(0, 2, shape).astype(bool)
            if not shape and self.conditions is not None:
                return np.asarray(self.conditions)
            return np.asarray(value)
        if "int" in dtype:
            return np.asarray(self.rng.integers(*self.integers, shape)).astype(kind)
        scale = 0.5
        if self.weight and len(shape) > 1:
            scale = 1.0 / math.sqrt(max(1, math.prod(shape) // max(1, shape[0])))
        return np.asarray(self.rng.standard_normal(shape) * scale).astype(kind)


def _size(dim: Any, symbols: Symbols, name: str) -> int:
    size = symbols.value(dim)
    if size is None or size < 0:
        raise ModuleError(
            f"the dimension {dim} of parameter {name!r} has no value: its symbols are not the "
            "dimension of any parameter.",
            "Give inputs, or let a parameter have that symbol as a dimension of its own.",
        )
    return size
