"""byocviz: see what TVM's Bring-Your-Own-Codegen flow does to a model, step by step, and why.

``byocviz.record(mod)`` walks a module through the flow and returns a `Recording`;
``byocviz.load(path)`` opens one that was saved, on any machine; ``byocviz.show(x)`` shows either,
or a module or model that it records first; ``byocviz.replay(path)`` presents one on a stage.
``byocviz.build(x)`` makes the partitioned module run,
and checks, times and plots it. Importing this package imports
neither TVM nor anything else that is heavy: names are looked up when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from byocviz import backends, models
    from byocviz._replay import replay
    from byocviz._show import show
    from byocviz.backends import Backend
    from byocviz.building.build import build
    from byocviz.building.built import Build
    from byocviz.building.isolate import Cancel
    from byocviz.building.loaded import load_build
    from byocviz.errors import ByocvizError
    from byocviz.explorer import explore
    from byocviz.flow.record import record
    from byocviz.recording import PrunePolicy, Recording, load
    from byocviz.render import plots
    from byocviz.version import __version__

_HOMES = {
    "Backend": "byocviz.backends",
    "Build": "byocviz.building.built",
    "ByocvizError": "byocviz.errors",
    "Cancel": "byocviz.building.isolate",
    "PrunePolicy": "byocviz.recording",
    "Recording": "byocviz.recording",
    "__version__": "byocviz.version",
    "build": "byocviz.building.build",
    "explore": "byocviz.explorer",
    "load": "byocviz.recording",
    "load_build": "byocviz.building.loaded",
    "record": "byocviz.flow.record",
    "replay": "byocviz._replay",
    "show": "byocviz._show",
}
_MODULES = {
    "backends": "byocviz.backends",
    "models": "byocviz.models",
    "plots": "byocviz.render.plots",
}

__all__ = [
    "Backend",
    "Build",
    "ByocvizError",
    "Cancel",
    "PrunePolicy",
    "Recording",
    "__version__",
    "backends",
    "build",
    "explore",
    "load",
    "load_build",
    "models",
    "plots",
    "record",
    "replay",
    "show",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(_MODULES[name])
    if name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'byocviz' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
