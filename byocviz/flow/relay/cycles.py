"""Regions that feed themselves, of which TVM's PartitionGraph does not come back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tvm

from byocviz.backends.relay_table import RelayRule
from byocviz.flow.relay.compat import functions_of
from byocviz.flow.relay.regions import Regions
from byocviz.flow.relay.scopes import Body, Item

_MOST = 5


class RegionCycle(Exception):
    """A region takes what is made of its own results."""

    def __init__(self, message: str, mend: str) -> None:
        super().__init__(message)
        self.mend = mend


def check(module: tvm.IRModule, rules: Sequence[RelayRule]) -> None:
    """Raises `RegionCycle` where PartitionGraph would recurse until the stack is used up, which
    ends the process.

    MergeCompilerRegions of TVM 0.19 knows nothing of branches: where a call is used in one and
    after it as well, calls of both places become one region.
    """
    for name, function in functions_of(module).items():
        body = Body(function.body)
        regions = Regions(body, flattened=True)
        cycle = regions.cycle(body)
        if not cycle:
            continue
        shared = _shared(body, regions, cycle)
        names = list(dict.fromkeys(item.name or item.rule for item in shared))[:_MOST]
        known = {rule.op: rule.name for rule in rules if rule.pattern is None}
        off = {known.get(name, name): False for name in names}
        what = f" ({', '.join(names)})" if names else ""
        raise RegionCycle(
            f"A region of {name!r} takes what is made of its own results: TVM's "
            "MergeCompilerRegions joined calls in a branch with calls after it, because both use "
            f"the same result{what}. PartitionGraph would crash on it, so it was not run.",
            "Compute that result once for each place, by two calls"
            + (f", or leave it on TVM: record(..., rules={off!r})." if off else "."),
        )


def _shared(body: Body, regions: Regions, cycle: set[int]) -> list[Item]:
    """The calls of regions that are used in more than one scope."""
    used: dict[int, set[int]] = {}
    for item in body.items.values():
        for child in item.children:
            if isinstance(child, int) and regions.of(child) in cycle:
                used.setdefault(child, set()).add(item.scope)
    found: list[Any] = [body.items[key] for key, scopes in used.items() if len(scopes) > 1]
    return [item for item in found if item.name or item.rule]
