"""A Relay build, and one that was kept: see `byocviz.building.dialect.Dialect`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tvm

from byocviz.building.engines import BuiltEngine
from byocviz.building.lower.lowered import Lowered
from byocviz.building.relay.compiled import loaded, target_of
from byocviz.building.relay.inputs import from_json, to_json
from byocviz.building.relay.module import RelayRunnable
from byocviz.building.relay.module import build_relay as build

__all__ = ["build", "from_json", "restored", "target_of", "to_json"]


def restored(
    entry: str,
    signature: Any,
    module: Any,
    target: tvm.target.Target,
    lowered: dict[str, Lowered],
    built: dict[str, BuiltEngine],
    library: Path,
) -> tuple[RelayRunnable, bool]:
    """What runs, and whether the library takes the parameters that the signature says.

    Raises `LookupError` where the library has no trampoline for an engine.
    """
    for symbol in built:
        if not module.implements_function(symbol, True):
            raise LookupError(f"the library calls no {symbol}")
    executable, fits = loaded(module, signature)
    runnable = RelayRunnable(
        entry, signature, {}, executable, target, lowered, built, library=library
    )
    return runnable, fits
