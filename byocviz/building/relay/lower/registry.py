"""The converters of Relay's operators by name."""

from __future__ import annotations

from typing import Any

from byocviz.building.lower import registry as relax

REGISTRY = relax.Registry("byocviz.building.relay.lower.convert")
converter, converters, find = REGISTRY.converter, REGISTRY.converters, REGISTRY.find


def shared(name: str) -> Any:
    """Relax's converter of that operator (without ``relax.``)."""
    function = relax.find(f"relax.{name}")
    assert function is not None, name
    return function
