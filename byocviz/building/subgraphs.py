"""The subgraphs of a partitioned module, lowered and built; the same for Relax and Relay."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from byocviz.building.cache import EngineCache
from byocviz.building.engines import BuiltEngine, build_engines
from byocviz.building.errors import BuildError
from byocviz.building.isolate import Cancel
from byocviz.building.lower.lowered import Lowered
from byocviz.building.runtimes import Runtime, get

Tell = Callable[[str, int, int], None]
"""Progress: what is done now, as the so-maniest of so many parts."""


def of_backend(backends: Mapping[str, str], backend: str) -> None:
    """Refuse external functions, by symbol, that are of another backend."""
    others = [symbol for symbol, name in backends.items() if name != backend]
    if others:
        raise BuildError(
            f"The subgraph {others[0]} is not of the backend {backend!r}.",
            "Build the module with the backend that it was partitioned for.",
        )


@dataclass
class Subgraphs:
    """All mappings are by the subgraph's symbol."""

    lowered: dict[str, Lowered] = field(default_factory=dict)
    built: dict[str, BuiltEngine] = field(default_factory=dict)
    lower_seconds: float = 0.0


def build_subgraphs(
    functions: Mapping[str, Any],
    lower: Callable[[str, Any], Lowered],
    runtime: str | Runtime,
    options: Mapping[str, Any] | None,
    *,
    time_limit: float | None,
    isolate: bool,
    cache: EngineCache | None,
    cancel: Cancel | None,
    tell: Tell | None,
) -> Subgraphs:
    """Lower and build external functions; ``lower`` takes a symbol and its function.

    ``tell`` hears of it as of a whole that TVM's compiling of the rest ends. Raises what ``lower``
    and `byocviz.building.engines.build_engines` raise, and `BuildCancelled`.
    """
    say = tell or (lambda text, done, total: None)
    total = len(functions) + 2
    say("lowering to ONNX", 0, total)
    start = time.perf_counter()
    lowered = {symbol: lower(symbol, function) for symbol, function in functions.items()}
    seconds = time.perf_counter() - start
    built = build_engines(
        lowered,
        get(runtime),
        options,
        time_limit=time_limit,
        isolate=isolate,
        cache=cache,
        cancel=cancel,
        tell=lambda text, done, _: say(text, done + 1, total),
    )
    if cancel is not None:
        cancel.check()
    say("TVM compiles the rest", total - 1, total)
    return Subgraphs(lowered, built, seconds)
