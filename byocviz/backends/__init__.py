"""Backends and the registry of them.

A package brings its own by an entry point of the group ``byocviz.backends`` whose value is a
`Backend` or a function that returns one.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from byocviz.backends.base import Backend, Rule
from byocviz.errors import BackendError, ByocvizError

__all__ = ["GROUP", "Backend", "Rule", "get", "names", "register"]

GROUP = "byocviz.backends"

_BUILT_IN = {
    name: EntryPoint(name, f"byocviz.backends.{name}:backend", GROUP)
    for name in ("onnxruntime", "tensorrt", "tutorial")
}
_registered: dict[str, Backend | Callable[[], Backend]] = {}


def register(backend: Backend | Callable[[], Backend], name: str | None = None) -> None:
    """Make a backend known in this process, before those of entry points.

    ``name`` is needed where ``backend`` is a function that makes one.
    """
    if isinstance(backend, Backend):
        _registered[name or backend.name] = backend
    elif name:
        _registered[name] = backend
    else:
        raise BackendError(
            "A backend given as a function needs a name.", "register(make_backend, name='mychip')"
        )


def _entry_points() -> dict[str, EntryPoint]:
    return _BUILT_IN | {point.name: point for point in entry_points(group=GROUP)}


def names() -> list[str]:
    """The backends known by name: registered ones and those of installed packages."""
    return sorted({*_registered, *_entry_points()})


def get(backend: str | Backend) -> Backend:
    """A backend by name; a `Backend` is returned as it is.

    A name that nobody registered is looked up in TVM's own pattern registry, as
    `Backend.from_tvm` does. Raises `BackendError` where there is none.
    """
    if isinstance(backend, Backend):
        return backend
    if not isinstance(backend, str):
        raise BackendError(
            f"A backend is a name or a byocviz.Backend, not {type(backend).__name__}.",
            f"Known: {', '.join(names())}",
        )
    made: object = _registered.get(backend)
    if made is None and (point := _entry_points().get(backend)):
        try:
            made = point.load()
        except Exception as error:
            raise BackendError(
                f"The backend {backend!r} of {point.value} cannot be loaded: {error}",
                "Mend or uninstall the package that brings it.",
            ) from error
    if made is None:
        try:
            return Backend.from_tvm(backend)
        except BackendError as error:
            near = difflib.get_close_matches(backend, names(), n=1)
            raise BackendError(
                f"There is no backend {backend!r}.",
                (f"Did you mean {near[0]!r}? " if near else "")
                + f"Known: {', '.join(names())}. {error.message} {error.mend}",
            ) from error
    found = made if isinstance(made, Backend) else made()  # type: ignore[operator]
    if not isinstance(found, Backend):
        raise BackendError(
            f"The entry point of the backend {backend!r} gives {type(found).__name__}.",
            "It must be a byocviz.Backend or a function that returns one.",
        )
    return found


def by_name(backend: Backend) -> str:
    """Python text that gives a Relax backend; ``backend`` where no name gives one of its rules,
    as for an object that nobody registered."""
    try:
        named = [rule.name for rule in get(backend.name).rules()]
    except ByocvizError:
        return "backend"
    same = named == [rule.name for rule in backend.rules()]
    return f'byocviz.backends.get("{backend.name}")' if same else "backend"


def __getattr__(name: str) -> Any:
    if name == "relay_table":  # mends name it, and it may be imported by none yet
        return importlib.import_module("byocviz.backends.relay_table")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
