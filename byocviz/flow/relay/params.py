"""Weights that were given, as TVM takes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tvm

from byocviz.errors import ModuleError
from byocviz.flow.relay.compat import plain
from byocviz.flow.relay.types import dims, type_text


def tensors(function: Any, params: Any, entry: str) -> dict[str, Any]:
    """The given weights that are parameters of ``function``, as TVM's arrays by name.

    Names that it has no parameter for are left out: importers return weights that are not used.
    Raises `ModuleError` where a shape or dtype does not fit, or nothing fits by name.
    """
    if not isinstance(params, Mapping) and not hasattr(params, "items"):  # TVM's Map is none
        raise ModuleError(
            f"params is a {type(params).__name__}.", "Give a mapping of parameter names to arrays."
        )
    known = {plain(param.name_hint): param for param in function.params}
    found: dict[str, Any] = {}
    for name, value in params.items():
        param = known.get(str(name))
        if param is None:
            continue
        array = value.numpy() if isinstance(value, tvm.nd.NDArray) else np.asarray(value)
        ty = param.checked_type
        shape = dims(ty)
        if str(array.dtype) != str(getattr(ty, "dtype", "")) or (
            shape is not None and list(array.shape) != shape
        ):
            raise ModuleError(
                f"params[{str(name)!r}] is {array.dtype}{list(array.shape)}; the parameter of "
                f"{entry!r} is {type_text(ty)}.",
                "Give an array of that dtype and shape.",
            )
        found[str(name)] = value if isinstance(value, tvm.nd.NDArray) else tvm.nd.array(array)
    if params and not found:
        raise ModuleError(
            f"None of params is a parameter of {entry!r}: {', '.join(map(str, params))[:300]}.",
            f"Its parameters: {', '.join(known)[:300] or 'none'}.",
        )
    return found
