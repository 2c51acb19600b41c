"""Runs the module of each step on the same inputs: what the steps change must not show."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tvm
from tvm import relax

from byocviz.errors import ModuleError, in_short
from byocviz.flow.relax.compat import attribute
from byocviz.flow.relax.inputs import (
    Symbols,
    boolean_scalars,
    entry_function,
    placed_inputs,
    seeded_values,
)
from byocviz.flow.relax.prepare import bind
from byocviz.flow.relax.verify import (
    checked_inputs,
    max_difference,
    run_module_each,
)
from byocviz.flow.relax.walk import Walk

NOT_COMPARED = "not compared: the imported module did not run"
"""`Step.verify_error` of the steps after import, where import has an error of its own."""


def verify_steps(
    walk: Walk,
    params: Any,
    inputs: Mapping[str, Any] | Sequence[Any] | None,
    tell: Callable[[str, int, int], None],
) -> None:
    """Fill in `Step.max_difference` of each step, or `Step.verify_error`.

    ``inputs`` hold values by parameter name, or in order one for each parameter, or for each that
    ``params`` leaves out. A parameter that they do not name gets its value from ``params`` (or
    from the weights that an importer attached to the entry), else a seeded one; see
    `byocviz.flow.relax.inputs.seeded_inputs`. Where boolean scalars are seeded, which an If may
    stand on, all modules run twice, with all of them true and with all false, and the larger
    difference counts; a module that calls itself runs once, as it may not come to an end.

    Raises `ModuleError` where an input does not fit the imported module, before anything is
    compiled. What goes wrong after that is written down: where the imported module cannot be
    given inputs, compiled or run, in its own `Step.verify_error`, and the other steps are not
    compared.

    The modules run in this process, as TVM has no safe way to hand one to another process: an
    integer division by zero, an index outside of its tensor or a recursion without end takes
    the process with it.
    """
    steps = [step for step in walk.data.steps if step.error is None]
    if not steps:
        return
    imported = walk.modules["import"]
    function = entry_function(imported, walk.entry)
    symbols = Symbols()
    last = entry_function(walk.modules[steps[-1].name], walk.entry)
    given = _given(function, last, walk.entry, params, inputs, symbols)
    names = [param.name for param in function.params]
    runs: list[list[Any]] = []
    wanted: list[list[np.ndarray]] = []
    done: dict[Any, tuple[float | None, str]] = {}
    for index, step in enumerate(steps):
        tell(f"verify: {step.name}", index, len(steps))
        module = walk.modules[step.name]
        if step.name == "import":
            try:
                runs = _runs(imported, function, given, symbols)
                wanted = run_module_each(imported, walk.entry, runs)
                done[module] = 0.0, ""
            except Exception as error:
                step.verify_error = in_short(error)
                for other in steps:
                    if other is not step:
                        other.verify_error = NOT_COMPARED
                return
        if module not in done:
            try:
                params_left = [p.name for p in entry_function(module, walk.entry).params]
                taken = [_taken(names, values, params_left) for values in runs]
                found = run_module_each(module, walk.entry, taken)
                worst = max(max_difference(a, b) for a, b in zip(wanted, found, strict=True))
                done[module] = worst, ""
            except Exception as error:
                done[module] = None, in_short(error)
        step.max_difference, step.verify_error = done[module]


def _given(
    function: relax.Function,
    last: relax.Function,
    entry: str,
    params: Any,
    inputs: Any,
    symbols: Symbols,
) -> dict[int, Any]:
    """Values by the place of their parameter, checked; ``symbols`` gets the sizes they decide."""
    weights = _weights(function, params, entry)
    places = [place for place in range(len(function.params)) if place not in weights]
    chosen: dict[int, Any] = {}
    if isinstance(inputs, (list, tuple)) and len(inputs) == len(places):
        chosen = dict(zip(places, inputs, strict=True))
    elif inputs is not None:
        chosen = placed_inputs(function, entry, inputs, every=False)
    values = checked_inputs(function, {**weights, **chosen}, symbols)
    left = [param.name for param in last.params]
    for place in chosen.keys() & weights.keys():
        name = function.params[place].name
        if name in left:
            continue
        (bound,) = checked_inputs(function, {place: weights[place]}, Symbols()).values()
        if not np.array_equal(values[place], bound, equal_nan=True):
            raise ModuleError(
                f"input {name!r} has another value than params bind it to.",
                "Leave it out of inputs, or give that value as params.",
            )
    return values


def _weights(function: relax.Function, params: Any, entry: str) -> dict[int, Any]:
    """What bind-parameters binds, by place: attached to the entry, or given."""
    if isinstance(params, Mapping) and params and bind._is_list(next(iter(params.values()))):
        params = params.get(entry)
    found: dict[int, Any] = {}
    for source in (attribute(function, "params"), params):
        if source is not None and len(source):
            found |= bind._by_parameter(function, source, entry)
    return found


def _runs(
    module: tvm.IRModule, function: relax.Function, given: Mapping[int, Any], symbols: Symbols
) -> list[list[Any]]:
    """The values of all parameters, for each run."""
    seeded = [p.ty for place, p in enumerate(function.params) if place not in given]
    both = any(boolean_scalars(ty) for ty in seeded) and not _calls_itself(module)
    return [
        seeded_values(function, given, symbols, conditions=conditions)
        for conditions in ((True, False) if both else (None,))
    ]


def _calls_itself(module: tvm.IRModule) -> bool:
    """Whether a function of the module, or a local one, can come to call itself."""
    calls: dict[Any, set[Any]] = {}

    def visit(expr: Any, found: set[Any]) -> None:
        if isinstance(expr, (tvm.ir.GlobalVar, relax.Var)):
            found.add(expr)

    def add(name: Any, function: relax.Function) -> None:
        found = calls[name] = set()
        relax.analysis.post_order_visit(function, lambda expr: visit(expr, found))
        for var, value in relax.analysis.get_var2val(function).items():
            if isinstance(value, relax.Function) and var not in calls:
                add(var, value)

    for var, function in module.functions_items():
        if isinstance(function, relax.Function):
            add(var, function)
    # What calls only functions that are done is done; a cycle leaves some over.
    left = {name: found & calls.keys() for name, found in calls.items()}
    while left:
        ends = [name for name, found in left.items() if not found & left.keys()]
        if not ends:
            return True
        for name in ends:
            del left[name]
    return False


def _taken(names: Sequence[str], values: Sequence[Any], left: Sequence[str]) -> list[Any]:
    """The values of the parameters that a later module still has, in its order."""
    queues: dict[str, list[Any]] = defaultdict(list)
    for name, value in zip(names, values, strict=True):
        queues[name].append(value)
    for name in left:
        if not queues[name]:
            raise ModuleError(
                f"the entry takes {name!r}, which is no parameter of the imported module.",
                "A rewrite or a pass added it; run the module by hand.",
            )
    return [queues[name].pop(0) for name in left]
