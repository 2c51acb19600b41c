"""Puts a hold on the rules of a walk that stands before the composite step."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from byocviz.backends import Backend, Rule
from byocviz.explorer.hold import downstream, held_back, numbers_of

if TYPE_CHECKING:
    from byocviz.explorer.settings import Resolved
    from byocviz.flow.relax.walk import Walk


def with_held(
    resolved: Resolved, walk: Walk, ids: Iterable[int], entry: str
) -> tuple[Backend, list[Rule]]:
    """The backend and rules that leave these operators, and all that depends on them, on TVM.

    An operator that the prepare step replaced stands for those that replaced it.
    """
    now = living(walk.data.ops, ids)
    stay = downstream(walk.wiring, now)
    fusions = held_back([rule.fusion for rule in resolved.rules], stay)
    rules = [replace(r, fusion=f) for r, f in zip(resolved.rules, fusions, strict=True)]
    numbers = numbers_of(walk.state.module, now, entry)
    named = "" if entry == "main" else f", {entry!r}"
    table = resolved.backend.table or "patterns = [...]  # the backend's own table"
    table += (
        "\nfrom byocviz.explorer.hold import stay_on_tvm\n"
        f"mod, patterns = stay_on_tvm(mod, patterns, {numbers!r}{named})"
    )
    return replace(resolved.backend, table=table), rules


def living(ops: dict[int, Any], ids: Iterable[int]) -> set[int]:
    """The operators that these are now: themselves, or what stands for them."""
    found: set[int] = set()
    seen: set[int] = set()
    todo = list(ids)
    while todo:
        identity = todo.pop()
        if identity in seen or identity not in ops:
            continue
        seen.add(identity)
        if ops[identity].fate:
            todo += ops[identity].replaced_by
        else:
            found.add(identity)
    return found
