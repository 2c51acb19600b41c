"""The inputs of a built Relay module."""

from __future__ import annotations

from typing import Any

import numpy as np
import tvm
from tvm import relay

from byocviz.building.errors import BuildError
from byocviz.errors import ModuleError, last_line
from byocviz.flow.relay.compat import plain
from byocviz.flow.relay.types import type_text
from byocviz.flow.relay.verify import _given, seeded


def checked(function: Any, entry: str, inputs: Any) -> list[Any]:
    """The inputs as arrays (tuples of them) in the order of the parameters.

    ``inputs`` are by parameter name or in order; for a function of one tensor also that tensor.
    Raises `ModuleError` where one is missing, unknown, or of another shape or dtype.
    """
    names = [plain(param.name_hint) for param in function.params]
    lone = len(names) == 1 and isinstance(function.params[0].checked_type, relay.TensorType)
    if lone and hasattr(inputs, "shape") and hasattr(inputs, "dtype"):
        inputs = [inputs]
    given = _given(function, names, None, inputs, entry)
    missing = [name for name in names if name not in given]
    if missing:
        raise ModuleError(
            f"{entry!r} takes {', '.join(missing)} as well.",
            f"Give all of them: {signature(function)}.",
        )
    return [given[name] for name in names]


def seeded_inputs(function: Any, seed: int = 0) -> dict[str, Any]:
    """Values for all parameters, by name: floats of a normal distribution, small counts."""
    rng = np.random.default_rng(seed)
    return {plain(param.name_hint): seeded(param.checked_type, rng) for param in function.params}


def signature(function: Any) -> str:
    """The parameters as people write them: ``data float32[1, 3, 512, 512]``."""
    return ", ".join(
        f"{plain(param.name_hint)} {type_text(param.checked_type)}" for param in function.params
    )


def to_json(function: Any) -> str:
    """A module whose one function has the same parameters and returns nothing, as TVM's JSON."""
    params = [relay.Var(plain(p.name_hint), p.checked_type) for p in function.params]
    module = tvm.IRModule.from_expr(relay.Function(params, relay.Tuple([])))
    return str(tvm.ir.save_json(relay.transform.InferType()(module)))


def from_json(data: bytes, entry: str) -> Any:
    """The function of that module, for the entry of that name. Raises `BuildError`."""
    try:
        function = relay.transform.InferType()(tvm.ir.load_json(data.decode("utf-8")))["main"]
        if not isinstance(function, relay.Function):
            raise TypeError(f"{entry} is no function of Relay")
        return function
    except Exception as error:
        raise BuildError(
            f"The signature of the saved build cannot be read: {last_line(error)}",
            "It is damaged, or was saved by another TVM; build and save it again here.",
        ) from error
