"""What a person can change while exploring, as one value, and which step each change touches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from byocviz.backends import Backend
from byocviz.errors import ArgumentError
from byocviz.explorer import dialects
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
    ir: str = "relax"
    """The graph language; it is the module's, and never changes."""

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
            names = {rule.name for rule in dialects.named(self.ir).rules(bare, None)}
            moved = {f"{bare.name}.{n.partition('.')[2]}": on for n, on in made.rules.items()}
            made = replace(made, rules={name: on for name, on in moved.items() if name in names})
        return made

    def differing(self, other: Settings) -> dict[str, Any]:
        """The settings that differ under other ones, as `changed` takes them."""
        return {
            name: getattr(other, name)
            for name in TOUCHES
            if getattr(self, name) != getattr(other, name)
        }

    def touched(self, other: Settings) -> str:
        """The first step that differs under other settings; "" where none does."""
        steps = [TOUCHES[name] for name in self.differing(other)]
        if self.ir == "relay" and self.backend != other.backend:
            steps.append("prepare")  # some of its rewrites are of one backend alone
        return min(steps, key=STEPS.index, default="")

    def plain(self) -> dict[str, Any]:
        """The settings as plain data, for another process; `of` reads it. The backend must be
        given by name."""
        prune = self.prune
        return {
            "backend": self.backend,
            "rules": dict(self.rules),
            "prepare": self.prepare if isinstance(self.prepare, bool) else dict(self.prepare),
            "prune": prune if isinstance(prune, bool) else msgspec.structs.asdict(prune),
            "lowerable": self.lowerable,
            "held": sorted(self.held),
            "added": [[rule.name, rule.source] for rule in self.added],
            "ir": self.ir,
        }

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Settings:
        """The settings that `plain` gave."""
        prune = plain["prune"]
        return cls(
            plain["backend"],
            plain["rules"],
            plain["prepare"],
            prune if isinstance(prune, bool) else PrunePolicy(**prune),
            plain["lowerable"],
            frozenset(plain["held"]),
            tuple(AddedRule(*one) for one in plain["added"]),
            plain["ir"],
        )

    def resolve(self) -> Resolved:
        """The backend with all that was added, its rules switched, and the policy.

        Raises `BackendError` for an unknown backend or rule.
        """
        dialect = dialects.named(self.ir)
        chosen = dialect.backend(self.backend)
        if self.lowerable:
            chosen = dialect.lowerable(chosen)
        for rule in reversed(self.added):
            chosen = rule.onto(chosen, dialect)
        policy = (
            self.prune
            if isinstance(self.prune, PrunePolicy)
            else chosen.prune
            if self.prune
            else None
        )
        return Resolved(chosen, dialect.rules(chosen, self.rules), policy)


@dataclass(frozen=True)
class Resolved:
    """Settings, looked up."""

    backend: Backend
    rules: list[Any]
    """`Rule`, or on Relay `RelayRule`; each with ``name`` and ``enabled``."""
    policy: PrunePolicy | None
