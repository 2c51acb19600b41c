"""What the steps hand on to each other."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import tvm

from byocviz.backends import Backend, Rule
from byocviz.recording.schema import PrunePolicy, Rewrite, Subgraph


@dataclass
class State:
    """One walk. ``module`` is the module of the last step that ran."""

    module: tvm.IRModule
    entry: str
    backend: Backend
    rules: list[Rule]
    params: Mapping[str, Any] | None
    rewrites: Mapping[str, bool]
    """Rewrites of the prepare step by name, on or off; one that is not named is on."""
    prepare: bool
    policy: PrunePolicy | None
    """None: nothing is pruned."""
    before_rewrite: Callable[[str], None]
    """Called with a rewrite's name before it runs (progress)."""
    after_rewrite: Callable[[tvm.IRModule, Rewrite], tvm.IRModule]
    """Takes a rewrite's module into the identity of operators; returns it tagged."""
    prepared: tvm.IRModule | None = None
    subgraphs: list[Subgraph] = field(default_factory=list)
    """Of the step before."""
    refusals: Any = None
    """What the rules' checks answered, for the reasons."""
    tvm_seconds: float = 0.0

    @contextmanager
    def in_tvm(self) -> Iterator[None]:
        """Count what runs inside as TVM's time."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.tvm_seconds += time.perf_counter() - start

    @property
    def enabled(self) -> list[Any]:
        """The FusionPatterns of the rules that are on, in order."""
        return [rule.fusion for rule in self.rules if rule.enabled]

    @property
    def table(self) -> str:
        """Python text that makes ``patterns`` as this walk uses them."""
        lines = [self.backend.table or "patterns = [...]  # the backend's own table"]
        off = sorted({rule.name for rule in self.rules if not rule.enabled})
        if off:
            lines.append(f"off = {set(off)!r}")
            # A backend's table may hold TVM's tuples.
            name = "p[0] if isinstance(p, tuple) else p.name"
            lines.append(f"patterns = [p for p in patterns if ({name}) not in off]")
        return "\n".join(lines)


@dataclass
class Outcome:
    """What a step gives."""

    module: tvm.IRModule
    call: str
    origin: str = "tvm"
    note: str = ""
    outlined: bool = False
    """Draw external functions by themselves rather than in place."""
    rewrites: list[Rewrite] = field(default_factory=list)
