"""Runtimes: what executes a subgraph. One file each, behind the interface of `base`."""

from __future__ import annotations

from importlib import import_module

from byocviz.building.errors import RuntimeMissing
from byocviz.building.runtimes.base import Engine, Runtime, Tell

__all__ = ["Engine", "Runtime", "Tell", "get", "names"]

_HOMES = {
    "onnxruntime": "byocviz.building.runtimes.onnxruntime",
    "tensorrt": "byocviz.building.runtimes.tensorrt",
    "tensorrt-rtx": "byocviz.building.runtimes.tensorrt_rtx",
}


def names() -> list[str]:
    """The runtimes known by name, installed or not."""
    return sorted(_HOMES)


def get(runtime: str | Runtime) -> Runtime:
    """A runtime by name; one that is given is returned. Raises `RuntimeMissing`."""
    if not isinstance(runtime, str):
        return runtime
    if runtime not in _HOMES:
        raise RuntimeMissing(f"There is no runtime {runtime!r}.", f"Known: {', '.join(names())}.")
    made: Runtime = import_module(_HOMES[runtime]).runtime()
    return made
