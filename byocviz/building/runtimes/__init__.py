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
from byocviz.building.runtimes.options import chosen, fitting, mapping, shown
from byocviz.errors import ArgumentError

__all__ = [
    "Choice",
    "Engine",
    "Runtime",
    "Tell",
    "auto",
    "choose",
    "chosen_for",
    "get",
    "names",
    "of_stand_in",
]

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


_NEEDED = ("name", "title", "options", "serializes", "supports", "refuse", "plan", "load",
           "target", "fingerprint")  # fmt: skip
"""What is used of a `Runtime`."""


def names() -> list[str]:
    """The runtimes known by name, installed or not."""
    return sorted(_HOMES)


def get(runtime: str | Runtime) -> Runtime:
    """A runtime by name; one that is given is returned.

    Raises `RuntimeMissing` for an unknown name, `ArgumentError` for what is no runtime.
    """
    if not isinstance(runtime, str):
        lacks = [name for name in _NEEDED if not hasattr(runtime, name)]
        if isinstance(runtime, type) or lacks:
            what = f"no {lacks[0]}" if lacks else "to be made first: it is a class"
            raise ArgumentError(
                f"{shown(runtime)} is no runtime: it has {what}.",
                f"Name one ({', '.join(names())}, auto), or give an object like "
                "byocviz.building.runtimes.Runtime.",
            )
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
    that a script runs on a machine without it too. Others stay, to be refused where unknown.

    Raises `ArgumentError` for a value that the runtime which was meant does not take either.
    """
    if not choice.stands_in_for:
        return dict(options)
    _, own = _MEANT.get(backend, (backend, ()))
    meant = {name: one for one in map(get, reversed(own)) for name in one.options}
    kept = {}
    for name, value in options.items():
        if name in choice.runtime.options or name not in meant:
            kept[name] = value
        else:
            fitting(meant[name], name, value)
    return kept


def chosen_for(
    runtime: str | Runtime | None, backend: str, options: Mapping[str, Any] | None
) -> tuple[Choice, dict[str, Any]]:
    """The runtime that is asked for, and its options as given: those of a runtime that it stands
    in for are left out.

    Raises what `choose` and `chosen` raise.
    """
    given = mapping(options)
    choice = choose(runtime, backend)
    if runtime is None or runtime == "auto":
        given = of_stand_in(choice, backend, given)
    chosen(choice.runtime, given)
    return choice, given


def _said(title: str, reason: str) -> str:
    """What `supports` says of a runtime, as one sentence of its own."""
    if reason.startswith("It is not installed"):
        return f"{title} is not installed."
    return f"{title}: {reason}"
