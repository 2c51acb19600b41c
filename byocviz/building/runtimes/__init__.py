"""Runtimes: what executes a subgraph. One file each, behind the interface of `base`.

Nothing here imports TVM: native libraries build in a process that has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from byocviz.building.errors import RuntimeMissing
from byocviz.building.runtimes.base import Engine, Runtime, Tell

__all__ = ["Choice", "Engine", "Runtime", "Tell", "auto", "choose", "get", "names", "of_stand_in"]

_HOMES = {
    "onnxruntime": "byocviz.building.runtimes.onnxruntime",
    "tensorrt": "byocviz.building.runtimes.tensorrt",
    "tensorrt-rtx": "byocviz.building.runtimes.tensorrt_rtx",
}

_MEANT = {
    "tensorrt": ("TensorRT", ("tensorrt", "tensorrt-rtx")),
    "onnxruntime": ("ONNX Runtime", ("onnxruntime",)),
}
"""Of a backend: what its subgraphs are meant for, as people write it, and the runtimes that are
that."""


@dataclass(frozen=True)
class Choice:
    """A runtime, and whether it is the one that the backend is for."""

    runtime: Runtime
    stands_in_for: str = ""
    """What was meant, as people write it, where this runtime stands in for it."""
    why: str = ""
    """Why this one was taken; "" where it is simply what was meant."""


def names() -> list[str]:
    """The runtimes known by name, installed or not."""
    return sorted(_HOMES)


def get(runtime: str | Runtime) -> Runtime:
    """A runtime by name; one that is given is returned. Raises `RuntimeMissing`."""
    if not isinstance(runtime, str):
        return runtime
    if runtime not in _HOMES:
        raise RuntimeMissing(
            f"There is no runtime {runtime!r}.", f"Known: {', '.join(names())}, auto."
        )
    made: Runtime = import_module(_HOMES[runtime]).runtime()
    return made


def auto(wanted: str = "tensorrt") -> Choice:
    """The best runtime of this machine for a backend, ``wanted``.

    For ``tensorrt``: TensorRT where it and a GPU are there, else TensorRT-RTX where it can run,
    else ONNX Runtime, which stands in. For all others ONNX Runtime.
    """
    title, own = _MEANT.get(wanted, (wanted, ()))
    missing: list[str] = []
    for name in own:
        runtime = get(name)
        reason = runtime.supports()
        if reason is None:
            return Choice(runtime, why=" ".join(missing))
        missing.append(_said(runtime.title, reason))
    fallback = get("onnxruntime")
    if fallback.name in own:
        return Choice(fallback)
    why = missing[0] if missing else f"byocviz has no runtime for the backend {wanted!r}."
    return Choice(fallback, title, why)


def choose(runtime: str | Runtime | None, backend: str) -> Choice:
    """The runtime that is asked for; ``"auto"`` and None leave it to `auto`.

    Raises `RuntimeMissing` for an unknown name.
    """
    if runtime is None or runtime == "auto":
        return auto(backend)
    found = get(runtime)
    title, own = _MEANT.get(backend, (backend, ()))
    if found.name in own:
        return Choice(found)
    return Choice(found, title, f"{found.title} was asked for.")


def of_stand_in(choice: Choice, backend: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options without those that only the runtime knows which ``choice`` stands in for, so
    that a script runs on a machine without it too. Others stay, to be refused where unknown."""
    if not choice.stands_in_for:
        return dict(options)
    _, own = _MEANT.get(backend, (backend, ()))
    meant = {name for runtime in own for name in get(runtime).options}
    return {n: v for n, v in options.items() if n in choice.runtime.options or n not in meant}


def _said(title: str, reason: str) -> str:
    """What `supports` says of a runtime, as one sentence of its own."""
    if reason.startswith("It is not installed"):
        return f"{title} is not installed."
    return f"{title}: {reason}"
