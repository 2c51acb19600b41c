"""The converters by the operator's name."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from byocviz.building.lower.call import Call
    from byocviz.building.lower.graph import Graph, Tensor

    Result = Tensor | list[Tensor]
    Converter = Callable[[Graph, Call], Result]

_converters: dict[str, Converter] = {}


def converter(*names: str) -> Callable[[Converter], Converter]:
    """Register the decorated function for the operators of these names.

    It adds nodes to the graph and returns the call's result: a tensor, or a list of them where
    the operator gives a tuple. A converter registered later for the same name wins.
    """

    def register(function: Converter) -> Converter:
        for name in names:
            _converters[name] = function
        return function

    return register


@lru_cache(maxsize=1)
def _load() -> None:
    package = import_module("byocviz.building.lower.convert")
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
