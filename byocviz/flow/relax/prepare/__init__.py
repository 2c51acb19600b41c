"""The prepare step on Relax: named rewrites that undo what importers leave and help the rules.

Each rewrite says what it does, what it assumes, and counts what it changed and what it left for
want of a proof. `REWRITES` holds them in the order in which they are applied; `apply` runs one.
"""

from __future__ import annotations

from typing import Any

from byocviz.errors import StepMissing
from byocviz.flow.relax.prepare import (
    aliases,
    batch_norm,
    bind,
    clip,
    constants,
    dataflow,
    dead_code,
    decompose,
    fold,
    local_functions,
    nary,
)
from byocviz.flow.relax.prepare.context import PrepareContext, RewriteSpec

__all__ = ["REWRITES", "PrepareContext", "RewriteSpec", "apply", "apply_all", "rewrite"]

REWRITES: tuple[RewriteSpec, ...] = (
    bind.SPEC,
    dataflow.SPEC,
    local_functions.SPEC,
    clip.SPEC,
    nary.SPEC,
    constants.SPEC,
    batch_norm.SPEC,
    decompose.SPEC,
    aliases.SPEC,
    fold.SPEC,
    dead_code.SPEC,
)
"""All rewrites, in the order in which they are applied."""


def rewrite(name: str) -> RewriteSpec:
    """The rewrite of that name; raises `StepMissing` if there is none."""
    for spec in REWRITES:
        if spec.name == name:
            return spec
    raise StepMissing(
        f"There is no rewrite named {name!r}.",
        "There are: " + ", ".join(spec.name for spec in REWRITES) + ".",
    )


def apply(
    mod: Any, name: str, params: Any = None, entry: str = "main"
) -> tuple[Any, PrepareContext]:
    """One rewrite by name: the module after it (``mod`` itself if nothing changed), and counts.

    ``params`` is read by ``bind-parameters`` only. Raises `StepMissing` for an unknown name and
    `ModuleError` for parameters that do not fit.
    """
    ctx = PrepareContext(params=params, entry=entry)
    return rewrite(name).run(mod, ctx), ctx


def apply_all(mod: Any, params: Any = None, entry: str = "main") -> Any:
    """The module after all rewrites, in order. Raises as `apply` does."""
    for spec in REWRITES:
        mod, _ = apply(mod, spec.name, params, entry)
    return mod
