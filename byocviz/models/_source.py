"""The ONNX model that a Relax module was imported from, for as long as it is that module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Source = Callable[[], Any]
"""The `onnx.ModelProto` with the input shapes of the module, read when it is asked for."""

_NAME = "_byocviz_source"


def remember(module: Any, source: Source) -> Any:
    """Note on the object itself where it comes from; a pass makes another object, without."""
    module.__dict__[_NAME] = source, dict(module.functions_items())
    return module


def source_of(module: Any) -> Source | None:
    """What it was imported from; None where that is not known, or its functions were changed."""
    found = getattr(module, "__dict__", {}).get(_NAME)
    if found is None:
        return None
    source, functions = found
    now = dict(module.functions_items())
    same = now.keys() == functions.keys() and all(now[v].same_as(functions[v]) for v in now)
    return source if same else None
