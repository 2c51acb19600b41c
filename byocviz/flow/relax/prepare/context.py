"""What a rewrite of the prepare step is given, and what it reports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass
class PrepareContext:
    """Given to a rewrite with the module; it writes down what it did and what it left."""

    params: Any = None
    """Weights to bind, or None.

    A mapping from name to tensor (numpy's or TVM's), a list in the order of the entry's last
    parameters, or what ``tvm.relax.frontend.detach_params`` returned: lists by function name.
    """
    entry: str = "main"
    count: int = 0
    """Places that the rewrite changed."""
    left: dict[str, int] = field(default_factory=dict)
    """Places that look like its target but were left as they are: how many, by the cause."""

    def leave(self, cause: str, times: int = 1) -> None:
        """Count places that were left, and say why."""
        self.left[cause] = self.left.get(cause, 0) + times


@dataclass(frozen=True)
class RewriteSpec:
    """One named rewrite of the prepare step."""

    name: str
    text: str
    """What it does, in a sentence."""
    origin: Literal["tvm", "byocviz"]
    """Whose transformation it is."""
    assumes: str
    """What must hold for its result to equal the module before it; empty if nothing."""
    call: str
    """Python that does it when pasted where ``mod`` (and ``params``) are bound; entry ``main``."""
    run: Callable[[Any, PrepareContext], Any]
    """Gives the module after it, the same object if nothing changed. Never raises on a valid
    module, except for parameters that do not fit (`ModuleError`)."""

    def call_for(self, entry: str) -> str:
        """`call` for another entry function."""
        return self.call.replace('"main"', repr(entry))
