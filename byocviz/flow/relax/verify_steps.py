"""Runs the module of each step on the same inputs: what the steps change must not show."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from byocviz.flow.relax.inputs import entry_function, seeded_inputs
from byocviz.flow.relax.verify import max_difference, run_module
from byocviz.flow.relax.walk import Walk


def verify_steps(
    walk: Walk,
    params: Mapping[str, Any] | None,
    inputs: Mapping[str, Any] | None,
    tell: Callable[[str, int, int], None],
) -> None:
    """Fill in `Step.max_difference` of each step, or `Step.verify_error`.

    Parameters of the entry that ``inputs`` does not name get their value from ``params``, else a
    seeded one. Raises `ModuleError` where an input does not fit the imported module.
    """
    steps = [step for step in walk.data.steps if step.error is None]
    if not steps:
        return
    imported = walk.modules["import"]
    values: dict[str, Any] = dict(seeded_inputs(imported, walk.entry))
    names = set(values)
    for name, value in (params or {}).items():
        if name in names:
            values[name] = value.numpy() if hasattr(value, "numpy") else np.asarray(value)
    values.update(inputs or {})
    wanted: list[np.ndarray] = []
    done: dict[Any, tuple[float | None, str]] = {}
    for index, step in enumerate(steps):
        tell(f"verify: {step.name}", index, len(steps))
        module = walk.modules[step.name]
        if step.name == "import":
            wanted = run_module(module, walk.entry, values)
            step.max_difference = 0.0
            done[module] = 0.0, ""
            continue
        if module not in done:
            try:
                taken = {p.name: values[p.name] for p in entry_function(module, walk.entry).params}
                result = run_module(module, walk.entry, taken)
                done[module] = max_difference(wanted, result), ""
            except Exception as error:
                done[module] = None, f"{type(error).__name__}: {str(error).strip()[-500:]}"
        step.max_difference, step.verify_error = done[module]
