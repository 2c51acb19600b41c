"""byocviz: see what TVM's Bring-Your-Own-Codegen flow does to a model, step by step, and why.

``byocviz.record(mod)`` walks a module through the flow and returns a `Recording`;
``byocviz.load(path)`` opens one that was saved, on any machine; ``byocviz.show(x)`` shows either,
or a module or model that it records first. Importing this package imports
neither TVM nor anything else that is heavy: names are looked up when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from byocviz import backends, models
    from byocviz._show import show
    from byocviz.backends import Backend
    from byocviz.errors import ByocvizError
    from byocviz.flow.record import record
    from byocviz.recording import PrunePolicy, Recording, load
    from byocviz.version import __version__

_HOMES = {
    "Backend": "byocviz.backends",
    "ByocvizError": "byocviz.errors",
    "PrunePolicy": "byocviz.recording",
    "Recording": "byocviz.recording",
    "__version__": "byocviz.version",
    "load": "byocviz.recording",
    "record": "byocviz.flow.record",
    "show": "byocviz._show",
}
_MODULES = ("backends", "models")

__all__ = [
    "Backend",
    "ByocvizError",
    "PrunePolicy",
    "Recording",
    "__version__",
    "backends",
    "load",
    "models",
    "record",
    "show",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"byocviz.{name}")
    if name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'byocviz' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
