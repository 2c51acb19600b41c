"""A Relax build, and one that was kept: see `byocviz.building.dialect.Dialect`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tvm

from byocviz.building.codegen import Offloaded
from byocviz.building.compiled import device_of, target_of
from byocviz.building.engines import BuiltEngine
from byocviz.building.lower.lowered import Lowered
from byocviz.building.module import Runnable
from byocviz.building.module import build_module as build
from byocviz.building.signature import from_json, to_json

__all__ = ["build", "from_json", "restored", "target_of", "to_json"]


def restored(
    entry: str,
    signature: tvm.IRModule,
    module: Any,
    target: tvm.target.Target,
    lowered: dict[str, Lowered],
    built: dict[str, BuiltEngine],
    library: Path,
) -> tuple[Runnable, bool]:
    """What runs, and whether the library takes the parameters that the signature says."""
    device = device_of(target)
    runnable = Runnable(
        entry, Offloaded(signature), module, target, device, lowered, built, library=library
    )
    machine = runnable.vm.module
    count = int(machine["get_function_arity"](entry))
    names = [str(machine["get_function_param_name"](entry, n)) for n in range(count)]
    return runnable, names == runnable.names
