"""What a person can change while exploring, as one value, and which step each change touches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from byocviz import backends
from byocviz.backends import Backend, Rule
from byocviz.errors import ArgumentError
from byocviz.explorer.rulebox import AddedRule
from byocviz.recording.schema import STEPS, PrunePolicy

TOUCHES = {
    "prepare": "prepare",
    "backend": "composite",
    "rules": "composite",
    "lowerable": "composite",
    "held": "composite",
    "added": "composite",
    "prune": "prune",
}
"""The first step that each setting touches."""


@dataclass(frozen=True)
class Settings:
    """One choice of everything. Fields are those of `byocviz.record`, and two more."""

    backend: str | Backend = "tensorrt"
    rules: Mapping[str, bool] = field(default_factory=dict)
    """Rules that are switched, by their full name; the others are as the backend has them."""
    prepare: bool | Mapping[str, bool] = True
    prune: bool | PrunePolicy = True
    lowerable: bool = False
    held: frozenset[int] = frozenset()
    """Operators after which nothing is offloaded, by id: they, and all that depends on them."""
    added: tuple[AddedRule, ...] = ()
    """Rules of the person's own, which come before the backend's."""

    def changed(self, **changes: Any) -> Settings:
        """These settings with some changed. Raises `ArgumentError` for a name that is none."""
        for name in changes:
            if name not in TOUCHES:
                raise ArgumentError(
                    f"There is no setting {name!r}.", f"There are: {', '.join(TOUCHES)}."
                )
        if "held" in changes:
            changes["held"] = frozenset(changes["held"])
        if "added" in changes:
            changes["added"] = tuple(changes["added"])
        return replace(self, **changes)

    def touched(self, other: Settings) -> str:
        """The first step that differs under other settings; "" where none does."""
        steps = [
            step for name, step in TOUCHES.items() if getattr(self, name) != getattr(other, name)
        ]
        return min(steps, key=STEPS.index, default="")

    def resolve(self) -> Resolved:
        """The backend with all that was added, its rules switched, and the policy.

        Raises `BackendError` for an unknown backend or rule.
        """
        chosen = backends.get(self.backend)
        if self.lowerable:
            chosen = chosen.lowerable()
        for rule in reversed(self.added):
            chosen = rule.onto(chosen)
        policy = (
            self.prune
            if isinstance(self.prune, PrunePolicy)
            else chosen.prune
            if self.prune
            else None
        )
        return Resolved(chosen, chosen.rules(self.rules), policy)


@dataclass(frozen=True)
class Resolved:
    """Settings, looked up."""

    backend: Backend
    rules: list[Rule]
    policy: PrunePolicy | None
