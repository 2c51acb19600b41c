"""A backend: what it is called, which patterns it takes, what it gives back."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from byocviz.errors import BackendError
from byocviz.recording.schema import PrunePolicy

Patterns = Callable[[], Iterable[Any]] | Iterable[Any]
"""The backend's pattern table, or a function that makes it, in the order of priority: TVM's
``FusionPattern`` objects, or the tuples ``(name, pattern[, annotations[, check]])`` that TVM takes
for them."""


@dataclass(frozen=True)
class Rule:
    """One entry of a pattern table. ``fusion`` is TVM's own FusionPattern."""

    name: str
    fusion: Any
    enabled: bool = True


@dataclass(frozen=True)
class Backend:
    """A backend of the BYOC flow.

    ``patterns`` is the table; a function is called anew for each recording, so that a table
    registered later is seen. The name of each pattern is ``<backend>.<rule>``: TVM takes what
    stands before the first full stop as the name of the codegen. ``prune`` says which subgraphs go
    back to TVM; by default none does.

    ``table`` is the Python text that makes the list of patterns when pasted; it becomes part of
    the calls that a recording shows.
    """

    name: str
    patterns: Patterns
    prune: PrunePolicy = field(default_factory=PrunePolicy)
    options: Mapping[str, str] = field(default_factory=dict)
    off: frozenset[str] = frozenset()
    """Names of rules that are switched off unless a recording switches them on."""
    table: str = ""
    source: str = ""
    """Where the table comes from, for people."""
    lowers: bool = False
    """Whether its rules take only what byocviz can lower to ONNX: see `lowerable`."""

    def rules(self, switches: Mapping[str, bool] | Iterable[str] | None = None) -> list[Rule]:
        """The rules in TVM's order, switched for one recording.

        ``switches`` maps names to True or False; a plain collection of names leaves only those
        on. A name may be given without the backend's prefix.

        Raises `BackendError` for a name that no rule has, an empty table, or an entry that TVM
        does not take.
        """
        rules = [
            Rule(str.__str__(f.name), f, f.name not in self.off)
            for f in self._fusions(self._entries())
        ]
        if not rules:
            raise BackendError(
                f"The backend {self.name!r} has no rules: its pattern table is empty.",
                "Register its patterns first (tvm.relax.backend.pattern_registry"
                ".register_patterns), or import the module that does.",
            )
        if switches is None:
            return rules
        if isinstance(switches, str):
            switches = [switches]
        if not isinstance(switches, Mapping):
            chosen = {self._known(name, rules) for name in switches}
            return [replace(rule, enabled=rule.name in chosen) for rule in rules]
        wanted = {self._known(name, rules): bool(on) for name, on in switches.items()}
        return [replace(rule, enabled=wanted.get(rule.name, rule.enabled)) for rule in rules]

    def with_rules(self, *rules: Any, first: bool = False) -> Backend:
        """The same backend with more rules, after its own or (``first``) before them.

        What comes first has priority. A rule is what TVM's FusionPattern takes:
        ``(name, pattern[, annotations[, check]])``. Those added to a `lowerable` backend take
        only what can be lowered, as its own do.
        """

        def patterns() -> list[Any]:
            own = self._entries()
            more = list(rules)
            if self.lowers:
                more = self._only_lowerable(more)
            return [*more, *own] if first else [*own, *more]

        table = f"{self.table}\npatterns = [...]  # and the rules added by with_rules"
        return replace(self, patterns=patterns, table=table if self.table else "")

    def lowerable(self) -> Backend:
        """The same backend, whose rules take a match only if byocviz can lower it to ONNX.

        A subgraph that is shown as offloaded is then one that can be built. What each rule's own
        check refuses stays refused; what the lowering refuses has a reason of the code
        ``not-lowerable`` with the lowering's own cause and mend. A `lowerable` backend is returned
        as it is.
        """
        if self.lowers:
            return self

        def patterns() -> list[Any]:
            return self._only_lowerable(self._entries())

        table = self.table or "patterns = [...]  # the backend's own table"
        table += (
            "\nfrom byocviz.backends.lowerable import only_lowerable\n"
            "patterns = only_lowerable(patterns)"
        )
        return replace(self, patterns=patterns, table=table, lowers=True)

    def _entries(self) -> list[Any]:
        made = self.patterns() if callable(self.patterns) else self.patterns
        try:
            return list(made)
        except TypeError as error:
            raise BackendError(
                f"The table of the backend {self.name!r} is {type(made).__name__}, not a list of "
                "patterns.",
                "Give a list of (name, pattern, ...) tuples, or a function that returns one.",
            ) from error

    def _only_lowerable(self, entries: list[Any]) -> list[Any]:
        from byocviz.backends.lowerable import only_lowerable
        from byocviz.backends.relay_lowerable import of_relay

        return only_lowerable(entries if of_relay(entries) else self._fusions(entries))

    def _fusions(self, entries: list[Any]) -> list[Any]:
        from tvm.relax.transform import FusionPattern

        fusions = []
        for index, entry in enumerate(entries):
            if isinstance(entry, FusionPattern):
                fusion = entry
            else:
                try:
                    fusion = FusionPattern(*entry)
                except Exception as error:
                    raise BackendError(
                        f"Rule {index} of the backend {self.name!r} is no pattern that TVM takes: "
                        f"{entry!r} ({error})",
                        "Give (name, pattern), (name, pattern, annotations) or (name, pattern, "
                        "annotations, check), or a tvm.relax.transform.FusionPattern.",
                    ) from error
            name = str(fusion.name)
            if name.partition(".")[0] != self.name or not name.partition(".")[2]:
                raise BackendError(
                    f"The rule {name!r} does not belong to the backend {self.name!r} by its name.",
                    f"Name it '{self.name}.{name.partition('.')[2] or name}': TVM takes what "
                    "stands before the first full stop as the codegen's name.",
                )
            fusions.append(fusion)
        return fusions

    def _known(self, name: str, rules: list[Rule]) -> str:
        names = {rule.name for rule in rules}
        for candidate in (name, f"{self.name}.{name}"):
            if candidate in names:
                return candidate
        near = difflib.get_close_matches(name, sorted(names), n=3)
        raise BackendError(
            f"The backend {self.name!r} has no rule {name!r}.",
            f"Did you mean {' or '.join(near)}?"
            if near
            else f"Its rules: {', '.join(sorted(names))}",
        )

    @classmethod
    def from_tvm(cls, prefix: str, *, prune: PrunePolicy | None = None) -> Backend:
        """The backend whose patterns are in TVM's own registry under ``prefix``.

        The module of TVM that registers them is imported where it is known; a table that someone
        else registered is found as well. Raises `BackendError` where the TVM at hand has none.
        """
        from byocviz.backends.tvm_table import from_registry

        return from_registry(prefix, prune)
