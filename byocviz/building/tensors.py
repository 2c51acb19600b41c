"""The inputs of a built module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from tvm import relax

from byocviz.flow.relax.inputs import Symbols, placed_inputs
from byocviz.flow.relax.macs import type_text
from byocviz.flow.relax.verify import checked_inputs

Inputs = Mapping[str, Any] | Sequence[Any] | Any
"""By parameter name or in order; for a function of one tensor also that tensor itself."""


def checked(function: relax.Function, entry: str, inputs: Inputs) -> list[Any]:
    """The inputs as NumPy arrays (tuples, shapes, numbers) in the order of the parameters.

    Raises `ModuleError` where one is missing, unknown, or of another shape or dtype.
    """
    # One tensor is not a list of its rows.
    lone = len(function.params) == 1 and isinstance(function.params[0].ty, relax.TensorType)
    if isinstance(inputs, memoryview):
        inputs = np.asarray(inputs)  # Python takes it for a sequence, and cannot go through it
    if lone and hasattr(inputs, "shape") and hasattr(inputs, "dtype"):
        inputs = [inputs]
    placed = placed_inputs(function, entry, inputs, every=True)
    values = checked_inputs(function, placed, Symbols())
    return [values[place] for place in range(len(function.params))]


def signature(function: relax.Function) -> str:
    """The parameters as people write them: ``image float32[1, 3, 300, 300]``."""
    return ", ".join(f"{param.name} {type_text(param.ty)}" for param in function.params)
