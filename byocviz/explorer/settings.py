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
        """These settings with some changed. With another backend, rules that it has as well (by
        the name without the backend's) stay switched as they are.

        Raises `ArgumentError` for a name that is no setting, `BackendError` for an unknown backend.
        """
        for name in changes:
            if name not in TOUCHES:
                raise ArgumentError(
                    f"There is no setting {name!r}.", f"There are: {', '.join(TOUCHES)}."
                )
        if "held" in changes:
            changes["held"] = frozenset(changes["held"])
        if "added" in changes:
            changes["added"] = tuple(changes["added"])
        made = replace(self, **changes)
        if made.rules and "backend" in changes and "rules" not in changes:
            bare = replace(made, rules={}).resolve().backend
            names = {rule.name for rule in bare.rules()}
            moved = {f"{bare.name}.{n.partition('.')[2]}": on for n, on in made.rules.items()}
            made = replace(made, rules={name: on for name, on in moved.items() if name in names})
        return made

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


def rewrites_of(prepare: bool | Mapping[str, bool]) -> dict[str, bool]:
    """Every rewrite of the prepare step by name, on or off."""
    from byocviz.flow.relax.prepare import REWRITES

    given = prepare if isinstance(prepare, Mapping) else {}
    other = prepare if isinstance(prepare, bool) else True
    return {spec.name: given.get(spec.name, other) for spec in REWRITES}
