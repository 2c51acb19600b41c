"""The boxes of a body's scopes: branches, clauses and local functions, drawn when something in
them is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tvm import relay

from byocviz.flow.relay.compat import key_of, plain
from byocviz.flow.relay.scopes import Body, Item, Param

if TYPE_CHECKING:
    from byocviz.flow.relay.reader import Reader


class Boxes:
    """The boxes of one body, as it is read in one place."""

    def __init__(self, reader: Reader, body: Body, parent: int) -> None:
        self.reader = reader
        self.body = body
        self._boxes: dict[int, int] = {0: parent}
        self._owners: dict[int, int] = {}
        self._names: dict[int, str] | None = None

    def of(self, scope: int) -> int:
        """The box of a scope; it, and what opens it, is drawn when something in it is."""
        box = self._boxes.get(scope)
        if box is None:
            about = self.body.scopes[scope]
            owner = self.body.items[about.owner]
            outer = self.of(about.parent)
            if owner.kind is relay.Function:
                box = self._boxes[scope] = self.function(owner, outer)
            else:
                node = self.branching(owner)
                label = self._branch_label(owner, about.slot)
                box = self._boxes[scope] = self.reader.node("branch", label, outer)
                self.reader.nodes[box].owner = node
                if owner.kind is relay.Match:
                    self._pattern(owner.expr.clauses[about.slot - 1].lhs, box)
        return box

    def _branch_label(self, owner: Item, slot: int) -> str:
        if owner.kind is relay.If:
            return "then" if slot == 1 else "else"
        return _pattern_text(owner.expr.clauses[slot - 1].lhs)

    def branching(self, item: Item) -> int:
        """The node of an If or Match, drawn once."""
        node = self._owners.get(item.key)
        if node is None:
            outer = self.of(item.scope)
            label = "if" if item.kind is relay.If else "match"
            node = self._owners[item.key] = self.reader.node("if", label, outer)
            self.reader.r.ifs.append(node)
        return node

    def function(self, item: Item, outer: int) -> int:
        node = self._owners.get(item.key)
        if node is None:
            names = [
                var for var, bound in self.body.lets.items() if bound == item.key
            ]  # a recursive function is bound to the variable by which it calls itself
            label = self.names.get(names[0], "function") if names else "function"
            node = self._owners[item.key] = self.reader.node("function", label, outer)
            for param in self.reader.bodies.params(item.expr):
                self.reader.param(param, node)
        return node

    @property
    def names(self) -> dict[int, str]:
        """Names of the let-bound variables."""
        if self._names is None:
            self._names = {
                key_of(item.expr.var): plain(item.expr.var.name_hint)
                for item in self.body.items.values()
                if item.kind is relay.Let
            }
        return self._names

    def _pattern(self, pattern: Any, box: int) -> None:
        """Draw the variables that a clause binds."""
        for var in _bound(pattern):
            self.reader.param(Param(var), box)


def _bound(pattern: Any) -> Iterator[Any]:
    """The variables of a Match clause's pattern."""
    if isinstance(pattern, relay.PatternVar):
        yield pattern.var
    for part in getattr(pattern, "patterns", None) or ():
        yield from _bound(part)


def _pattern_text(pattern: Any) -> str:
    if isinstance(pattern, relay.PatternConstructor):
        return plain(pattern.constructor.name_hint)
    if isinstance(pattern, relay.PatternVar):
        return plain(pattern.var.name_hint)
    return "_" if isinstance(pattern, relay.PatternWildcard) else "tuple"
