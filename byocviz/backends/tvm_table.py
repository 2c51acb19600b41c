"""Backends out of TVM's pattern registry: its tables are read at run time, never copied."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path
from typing import Any

from byocviz.backends.base import Backend
from byocviz.errors import BackendError, missing
from byocviz.recording.schema import PrunePolicy

_HOMES = (
    "tvm.relax.backend.contrib",
    "tvm.relax.backend.cuda",
    "tvm.relax.backend.rocm",
    "tvm.relax.backend.metal",
)


def _import_home(prefix: str) -> str:
    """Import the module of TVM that registers this table; its name, or "" where none does."""
    for package in _HOMES:
        try:
            home = importlib.import_module(package)
        except ImportError:
            continue
        for module in pkgutil.iter_modules(home.__path__):
            if module.name == prefix:
                name = f"{package}.{prefix}"
                try:
                    importlib.import_module(name)
                except ImportError as error:
                    raise BackendError(
                        f"TVM's table for {prefix!r} cannot be imported: {error}",
                        "This TVM lacks what the table needs; use one that was built with it.",
                    ) from error
                return name
    return ""


def prefixes() -> list[str]:
    """The prefixes of all patterns that are registered now."""
    from tvm.relax.backend.pattern_registry import get_patterns_with_prefix

    return sorted({str(p.name).partition(".")[0] for p in get_patterns_with_prefix("")})


POLICIES = {"tensorrt": PrunePolicy(require_macs=True)}
"""Of TVM's tables by prefix; none goes back to TVM for the others. TensorRT's is the one which
Relay's ``partition_for_tensorrt`` calls ``remove_no_mac_subgraphs``; TVM's Relax flow has none."""


def loadable() -> list[str]:
    """The prefixes of tables that this TVM can register, whether or not it has yet."""
    found = set(prefixes())
    for package in _HOMES:
        try:
            home = importlib.import_module(package)
        except ImportError:
            continue
        for module in pkgutil.iter_modules(home.__path__):
            path = getattr(module.module_finder, "path", None)
            source = Path(path, f"{module.name}.py") if path else None
            if source and source.is_file() and "register_patterns(" in source.read_text("utf-8"):
                found.add(module.name)
    return sorted(found)


def any_call(operator: str) -> Any:
    """The pattern of every call of an operator, whatever its arguments are."""
    from tvm.relax.dpl import is_op, wildcard

    if operator in ("relax.multiply", "relax.divide"):
        # Of these FuseOpsByPattern looks at the pattern's arguments itself, and fails without.
        return is_op(operator)(wildcard(), wildcard())
    return is_op(operator)(varg_default_wildcard=True)


def from_registry(prefix: str, prune: PrunePolicy | None = None) -> Backend:
    """See `Backend.from_tvm`."""
    try:
        from tvm.relax.backend.pattern_registry import get_patterns_with_prefix
    except ImportError as error:
        raise missing(
            "TVM with Relax (apache-tvm)", "relax", "to read a backend's table"
        ) from error
    home = _import_home(prefix)

    def patterns() -> list[Any]:
        return [
            p for p in get_patterns_with_prefix(prefix) if str(p.name).partition(".")[0] == prefix
        ]

    if not patterns():
        raise BackendError(
            f"TVM has no patterns with the prefix {prefix!r}.",
            f"It has: {', '.join(loadable()) or 'none'}. Import the module that registers yours "
            "first.",
        )
    lines = [f"import {home}"] if home else []
    lines += [
        "from tvm.relax.backend.pattern_registry import get_patterns_with_prefix",
        f"patterns = list(get_patterns_with_prefix({prefix + '.'!r}))",
    ]
    policy = prune or POLICIES.get(prefix, PrunePolicy())
    return Backend(
        prefix, patterns, policy, table="\n".join(lines), source=home or "TVM's registry"
    )
