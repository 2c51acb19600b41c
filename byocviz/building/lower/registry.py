"""The converters by the operator's name."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from byocviz.building.lower.graph import Graph, Tensor

    Result = Tensor | list[Tensor]
    Converter = Callable[[Graph, Any], Result]


class Registry:
    """One dialect's converters; those of ``package`` are imported when one is first asked for."""

    def __init__(self, package: str) -> None:
        self._package = package
        self._converters: dict[str, Converter] = {}
        self._loaded = False

    def converter(self, *names: str) -> Callable[[Converter], Converter]:
        """Register the decorated function for the operators of these names.

        It adds nodes to the graph and returns the call's result: a tensor, or a list of them
        where the operator gives a tuple. A converter registered later for the same name wins.
        """

        def register(function: Converter) -> Converter:
            for name in names:
                self._converters[name] = function
            return function

        return register

    def _load(self) -> None:
        if self._loaded:
            return
        package = import_module(self._package)
        for module in iter_modules(package.__path__):
            import_module(f"{package.__name__}.{module.name}")
        self._loaded = True  # at the end: another thread must not find the half of them

    def converters(self) -> dict[str, Converter]:
        """All converters by the operator's name."""
        self._load()
        return dict(sorted(self._converters.items()))

    def find(self, name: str) -> Converter | None:
        """The converter of that operator, or None."""
        self._load()
        return self._converters.get(name)


REGISTRY = Registry("byocviz.building.lower.convert")
converter, converters, find = REGISTRY.converter, REGISTRY.converters, REGISTRY.find
