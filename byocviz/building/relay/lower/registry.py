"""The converters of Relay's operators by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from byocviz.building.lower import registry as relax

if TYPE_CHECKING:
    from byocviz.building.lower.graph import Graph, Tensor
    from byocviz.building.relay.lower.call import RelayCall

    Result = Tensor | list[Tensor]
    Converter = Callable[[Graph, RelayCall], Result]

_converters: dict[str, Any] = {}


def converter(*names: str) -> Callable[[Converter], Converter]:
    """Register the decorated function for the operators of these names. See
    `byocviz.building.lower.converter`; a converter registered later for the same name wins."""

    def register(function: Converter) -> Converter:
        for name in names:
            _converters[name] = function
        return function

    return register


def shared(name: str) -> Any:
    """Relax's converter of that operator (without ``relax.``)."""
    function = relax.find(f"relax.{name}")
    assert function is not None, name
    return function


@lru_cache(maxsize=1)
def _load() -> None:
    package = import_module("byocviz.building.relay.lower.convert")
    for module in iter_modules(package.__path__):
        import_module(f"{package.__name__}.{module.name}")


def converters() -> dict[str, Converter]:
    """All converters by the operator's name."""
    _load()
    return dict(sorted(_converters.items()))


def find(name: str) -> Converter | None:
    """The converter of that operator, or None."""
    _load()
    return _converters.get(name)
