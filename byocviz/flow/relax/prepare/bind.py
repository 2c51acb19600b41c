"""Weights that stand among the entry's parameters become constants: TVM's BindParams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tvm
from tvm import relax

from byocviz.errors import ModuleError
from byocviz.flow.relax import surgery as s
from byocviz.flow.relax.compat import attribute
from byocviz.flow.relax.prepare.context import PrepareContext, RewriteSpec

_ATTRIBUTE = "params"
"""Where TVM's importers leave the weights under ``keep_params_in_input=True``."""


def run(mod: Any, ctx: PrepareContext) -> Any:
    """See `SPEC`. Raises `ModuleError` for parameters that do not fit the entry function."""
    found = [(gv, f) for gv, f in s.relax_functions(mod) if gv.name_hint == ctx.entry]
    if not found:
        return mod
    gv, func = found[0]
    attached = attribute(func, _ATTRIBUTE)
    given = _for_entry(mod, ctx)
    table: dict[int, Any] = {}
    for source in (attached, given):  # what the caller gives goes before what is attached
        if source is not None and len(source):
            table |= _by_parameter(func, source, ctx.entry)
    bound = {at: _fitting(func.params[at], value) for at, value in table.items()}
    if not bound:
        return mod
    ctx.count = len(bound)
    if attached is not None:
        # The list belongs to parameters that are gone now.
        mod = s.with_functions(mod, {gv: func.without_attr(_ATTRIBUTE)})
    # BindParams goes by the symbol of a public function, by the name of a private one.
    symbol = attribute(func, "global_symbol")
    func = mod[gv.name_hint]
    params = {func.params[at]: tensor for at, tensor in bound.items()}
    return relax.transform.BindParams(str(symbol or gv.name_hint), params)(mod)


def _for_entry(mod: Any, ctx: PrepareContext) -> Any:
    """What was given for the entry function: tensors by name, or a list; None for nothing."""
    given = ctx.params
    if given is None:
        return None
    if isinstance(given, Mapping):
        functions = {str(gv.name_hint) for gv, _ in s.relax_functions(mod)}
        # As detach_params returns them. A list of numbers under a parameter's name is a tensor.
        by_function = len(given) and all(
            _is_list(value) and str(name) in functions for name, value in given.items()
        )
        return given.get(ctx.entry) if by_function else given
    if not _is_list(given):
        raise ModuleError(
            f"the parameters were given as {_given(given)}.",
            "Give a mapping from parameter name to array, or a list of arrays.",
        )
    return given


def _tensor(param: Any, value: Any) -> Any:
    """An array as TVM's tensor; `ModuleError` where it is none, or holds no numbers."""
    try:
        array = np.asarray(value)
        array = array.astype(array.dtype.newbyteorder("="), copy=False)
        array = np.ascontiguousarray(array).reshape(array.shape)  # ascontiguousarray makes 0-d 1-d
        return tvm.runtime.tensor(array)
    except Exception as error:  # ragged lists, objects, strings, dates, what cannot be read
        raise ModuleError(
            f"parameter {str(param.name)!r} has type {param.ty}; {_given(value)} was given, which "
            f"is no tensor of numbers.",
            "Give a NumPy array of that type and shape, or leave the parameter out.",
        ) from error


def _given(value: Any) -> str:
    """``None``, ``'abc' (str)``, ``numpy.ndarray of dtype object``."""
    kind = type(value)
    name = kind.__qualname__
    if value is None or isinstance(value, str | bytes | bool | int | float | complex):
        return "None" if value is None else f"{value!r:.60} ({name})"
    if kind.__module__ != "builtins":
        name = f"{kind.__module__}.{name}"
    dtype = getattr(value, "dtype", None)
    return name if dtype is None else f"{name} of dtype {dtype}"


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _by_parameter(func: Any, given: Any, entry: str) -> dict[int, Any]:
    """The tensors by the place of their parameter."""
    params = list(func.params)
    names = [str(p.name) for p in params]
    if not isinstance(given, Mapping):
        # A list goes to the last parameters: the inputs come first, and num_input counts them.
        inputs = attribute(func, "num_input")
        at = len(params) - len(given) if inputs is None else int(inputs)
        if at < 0 or len(params) - at != len(given):
            raise ModuleError(
                f"{len(given)} parameters were given as a list, but function {entry!r} takes "
                f"{len(params) - max(at, 0)} after its inputs.",
                "Give them by name: " + _some(names) + ".",
            )
        return dict(enumerate(given, at))
    table: dict[int, Any] = {}
    for name, value in given.items():
        wanted = str(getattr(name, "name", name))
        places = [i for i, known in enumerate(names) if known == wanted]
        if isinstance(name, relax.Var):
            places = [i for i in places if params[i].same_as(name)]
        if len(places) != 1:
            raise ModuleError(
                f"function {entry!r} has {len(places) or 'no'} parameters named {wanted!r}.",
                "Its parameters: " + _some(names) + ".",
            )
        table[places[0]] = value
    return table


def _some(names: Sequence[str], most: int = 12) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _fitting(param: Any, value: Any) -> Any:
    """The value as TVM's tensor; it has the parameter's type, or `ModuleError` says how not."""
    tensor = value if isinstance(value, tvm.runtime.Tensor) else _tensor(param, value)
    shape, dtype = tuple(int(d) for d in tensor.shape), str(tensor.dtype)
    wanted = s.dtype_of(param.ty)
    dims = getattr(param.ty, "shape", None)
    text = f"parameter {param.name!r} has type {param.ty}; {dtype}{list(shape)} was given."
    if not isinstance(param.ty, relax.TensorType):
        raise ModuleError(text, "Only tensors can be bound; leave this one out.")
    if wanted and wanted != dtype:
        raise ModuleError(text, f"Convert it to {wanted}.")
    rank = int(param.ty.ndim)
    fits = rank in (-1, len(shape)) and (
        not isinstance(dims, relax.ShapeExpr)
        or all(
            int(dim.value) == size
            for dim, size in zip(dims.values, shape, strict=True)
            if isinstance(dim, tvm.tirx.IntImm)
        )
    )
    if not fits:
        raise ModuleError(text, "Give the tensor that belongs to it, in its layout.")
    return tensor


SPEC = RewriteSpec(
    name="bind-parameters",
    text="Weights become constants in the entry function, so that rules can see them and backends "
    "can keep them.",
    origin="tvm",
    assumes="The weights do not change between calls.",
    call='from tvm import relax\nmod = relax.transform.BindParams("main", params)(mod)',
    run=run,
)
