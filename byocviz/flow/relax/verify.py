"""Runs the module of any step on the CPU, and compares two runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tvm
from tvm import relax

from byocviz.errors import ModuleError
from byocviz.flow.relax.compile import compile_module, plain_module
from byocviz.flow.relax.inputs import (
    Symbols,
    entry_function,
    numpy_dtype,
    placed_inputs,
    seeded_inputs,
)
from byocviz.flow.relax.macs import type_text

__all__ = [
    "checked_inputs",
    "compile_module",
    "entry_function",
    "flat",
    "max_difference",
    "own",
    "plain_module",
    "run_module",
    "run_module_each",
    "seeded_inputs",
]


def run_module(
    mod: tvm.IRModule, entry: str, inputs: Mapping[str, Any] | Sequence[Any], *, target: Any = None
) -> list[np.ndarray]:
    """Run ``entry`` of a module of any step on the CPU.

    ``inputs`` holds a value for each parameter: by name, or in order. Tensors are NumPy arrays
    (or TVM's own tensors) of the very dtype and shape that the parameter's type states; a
    symbolic dimension takes the size that is given, the same wherever the symbol stands. Shapes
    are tuples of int, tuples are sequences.

    It runs in this process: a kernel that divides an integer by zero, reads outside of a tensor
    or recurses without end takes the process with it.

    Returns the outputs in order, nested tuples flattened; a shape becomes int64[rank], a scalar
    an array of rank 0. Raises `ModuleError` where the entry or an input does not fit, and what
    TVM raises where the module cannot be compiled or run.
    """
    return run_module_each(mod, entry, [inputs], target=target)[0]


def run_module_each(
    mod: tvm.IRModule,
    entry: str,
    runs: Sequence[Mapping[str, Any] | Sequence[Any]],
    *,
    target: Any = None,
) -> list[list[np.ndarray]]:
    """`run_module` for each of ``runs``, compiled once; the outputs of each."""
    func = entry_function(mod, entry)
    checked = [
        [checked[place] for place in range(len(func.params))]
        for checked in (
            checked_inputs(func, placed_inputs(func, entry, inputs, every=True), Symbols())
            for inputs in runs
        )
    ]
    machine = relax.VirtualMachine(compile_module(mod, entry, target=target), tvm.cpu())
    return [
        list(flat(machine[entry](*map(own, [p.ty for p in func.params], values))))
        for values in checked
    ]


def checked_inputs(
    func: relax.Function, given: Mapping[int, Any], symbols: Symbols
) -> dict[int, Any]:
    """The ``given`` values of parameters, by place, as NumPy arrays, tuples and scalars.

    The sizes that they decide are added to ``symbols``. Raises `ModuleError` where a dtype or a
    shape does not fit.
    """
    values = dict(given)
    for _ in range(2):  # a symbol may get its value from a parameter that comes later
        for place, value in values.items():
            param = func.params[place]
            values[place] = _checked(param.ty, value, symbols, param.name)
    return values


def _checked(ty: Any, value: Any, symbols: Symbols, name: str) -> Any:
    if isinstance(ty, relax.TupleType):
        if not isinstance(value, Sequence) or len(value) != len(ty.fields):
            raise ModuleError(
                f"input {name!r} must be a tuple of {len(ty.fields)} values.",
                "Give a list or tuple with one value a field.",
            )
        fields = zip(ty.fields, value, strict=True)
        return [_checked(f, v, symbols, f"{name}[{i}]") for i, (f, v) in enumerate(fields)]
    if isinstance(ty, relax.ShapeType):
        try:
            sizes = tuple(int(v) for v in value)
        except (TypeError, ValueError):
            raise ModuleError(
                f"input {name!r} is a {type(value).__name__}; the module wants a shape.",
                "Give a tuple of int.",
            ) from None
        _check_sizes(ty, ty.values, sizes, symbols, name)
        return sizes
    if isinstance(ty, relax.TensorType):
        array = _array(value, name)
        if ty.dtype and array.dtype != numpy_dtype(ty.dtype):
            raise ModuleError(
                f"input {name!r} has dtype {array.dtype}; the module wants {ty.dtype}.",
                f"Convert it: numpy.asarray(value, {str(ty.dtype)!r}).",
            )
        dims = ty.shape.values if isinstance(ty.shape, relax.ShapeExpr) else None
        _check_sizes(ty, dims, array.shape, symbols, name)
        return array
    if isinstance(ty, tvm.ir.PrimType):
        array = _array(value, name)
        kind = numpy_dtype(ty.dtype).kind.replace("u", "i")
        fitting = {"b": "b", "i": "iu", "f": "iuf"}.get(kind, array.dtype.kind)
        if array.ndim or array.dtype.kind not in fitting:
            raise ModuleError(
                f"input {name!r} is {array.dtype}{list(array.shape)}; the module wants a scalar "
                f"of {ty.dtype}.",
                "Give one number, or True or False.",
            )
        return array.item()
    return value


def _array(value: Any, name: str) -> np.ndarray:
    """NumPy's array of a value; TVM's tensors, and those of others, are copied."""
    if isinstance(value, np.ndarray):
        return value
    try:
        return np.asarray(value.numpy() if hasattr(value, "numpy") else value)
    except Exception as error:
        raise ModuleError(
            f"input {name!r}, a {type(value).__name__}, cannot be made an array: {error}",
            "Give a NumPy array.",
        ) from error


def _check_sizes(ty: Any, dims: Any, sizes: Sequence[int], symbols: Symbols, name: str) -> None:
    if dims is None:
        fits = ty.ndim < 0 or ty.ndim == len(sizes)
    else:
        wanted = [symbols.meet(dim, size) for dim, size in zip(dims, sizes, strict=False)]
        fits = len(sizes) == len(dims) and all(
            want is None or want == size for want, size in zip(wanted, sizes, strict=True)
        )
    if not fits:
        raise ModuleError(
            f"input {name!r} has shape {list(sizes)}; the module wants {type_text(ty)}.",
            "Give a value of that shape; a symbol has the same value wherever it stands.",
        )


def own(ty: Any, value: Any, device: Any = None) -> Any:
    """TVM's own value of a checked one, on the device (by default the CPU); tensors are copied,
    so that a run changes none."""
    if isinstance(ty, relax.TupleType):
        return tuple(own(f, v, device) for f, v in zip(ty.fields, value, strict=True))
    if isinstance(ty, relax.ShapeType):
        return tvm.runtime.ShapeTuple(value)
    if isinstance(ty, relax.TensorType):
        array = np.ascontiguousarray(value).reshape(value.shape)
        return tvm.runtime.tensor(array, device or tvm.cpu())
    return value


def flat(value: Any) -> Iterator[np.ndarray]:
    """The results of a run as arrays, nested tuples taken apart; a shape becomes int64[rank], a
    number an array of rank 0. Raises `ModuleError` for what is none of these."""
    if hasattr(value, "numpy"):
        yield value.numpy()
    elif isinstance(value, tvm.runtime.ShapeTuple):
        yield np.array([int(v) for v in value], dtype="int64")
    elif value is None or isinstance(value, (bool, int, float, np.generic)):
        if value is not None:
            yield np.asarray(value)
    elif isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        for field in value:
            yield from flat(field)
    else:
        raise ModuleError(
            f"an output is a {type(value).__name__}, which cannot be compared.",
            "Let the entry function return tensors, shapes, scalars or tuples of them.",
        )


def max_difference(a: Sequence[np.ndarray], b: Sequence[np.ndarray]) -> float:
    """The largest absolute difference between two lists of outputs, element by element.

    Integers and booleans are compared exactly. NaN equals NaN at the same place and an infinity
    equals the same infinity; either against anything else makes the result infinite. No outputs,
    or empty ones, differ by 0. Raises `ModuleError` where the number of outputs, a shape or a
    dtype differs.
    """
    if len(a) != len(b):
        raise ModuleError(
            f"{len(a)} outputs against {len(b)}.", "Compare runs of the same entry function."
        )
    worst = 0.0
    for index, (left, right) in enumerate(zip(a, b, strict=True)):
        if left.shape != right.shape or left.dtype != right.dtype:
            raise ModuleError(
                f"output {index} is {left.dtype}{list(left.shape)} in one run and "
                f"{right.dtype}{list(right.shape)} in the other.",
                "Outputs of another size or dtype have no difference; look at the step's IR.",
            )
        worst = max(worst, _difference(left, right))
    return worst


def _difference(left: np.ndarray, right: np.ndarray) -> float:
    if left.size == 0:
        return 0.0
    if left.dtype.kind in "biu":
        # Python integers: 64-bit differences overflow in any NumPy integer type.
        different = left != right
        pairs = zip(left[different].tolist(), right[different].tolist(), strict=True)
        return float(max((abs(int(p) - int(q)) for p, q in pairs), default=0))
    x, y = left.astype("float64"), right.astype("float64")
    same = (x == y) | (np.isnan(x) & np.isnan(y))
    with np.errstate(invalid="ignore"):
        gap = np.where(same, 0.0, np.abs(x - y))
    return float(np.where(np.isnan(gap), np.inf, gap).max())
