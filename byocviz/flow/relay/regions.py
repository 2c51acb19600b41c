"""The regions that ``compiler_begin`` and ``compiler_end`` mark in a body."""

from __future__ import annotations

from typing import Any

from byocviz.flow.relay.compat import BEGIN, END, plain
from byocviz.flow.relay.scopes import Body

DEFAULT = "default"
"""What AnnotateTarget calls the compiler of all that stays on TVM."""


class Regions:
    """Expressions that are connected without a border between them, for one compiler.

    As TVM's AnnotatedRegionSet has them, but for those that stay on TVM.
    """

    def __init__(self, body: Body) -> None:
        self.backend: dict[int, str] = {}
        """By region: its root's key."""
        self._parent: dict[int, int] = {}
        self._begins: set[int] = set()
        borders = {k: i.name for k, i in body.items.items() if i.name in (BEGIN, END)}
        self._begins = {key for key, name in borders.items() if name == BEGIN}
        for key, name in borders.items():
            if name != END:
                continue
            item = body.items[key]
            compiler = plain(item.expr.attrs.compiler)
            inside = item.children[0]
            if compiler == DEFAULT or not isinstance(inside, int) or inside in borders:
                continue
            self._gather(body, inside, borders)
            self.backend[self._root(inside)] = compiler

    def _gather(self, body: Body, start: int, borders: dict[int, Any]) -> None:
        """Join all that leads to ``start`` without a border."""
        stack = [start]
        self._parent.setdefault(start, start)
        while stack:
            key = stack.pop()
            for child in body.items[key].children:
                if not isinstance(child, int) or child in borders:
                    continue
                fresh = child not in self._parent
                self._parent.setdefault(child, child)
                one, other = self._root(key), self._root(child)
                if one != other:
                    self._parent[other] = one
                    if other in self.backend:
                        self.backend[one] = self.backend.pop(other)
                if fresh:
                    stack.append(child)

    def _root(self, key: int) -> int:
        while self._parent[key] != key:
            self._parent[key] = self._parent[self._parent[key]]
            key = self._parent[key]
        return key

    def of(self, key: int) -> int | None:
        """The region of an expression, or None."""
        return self._root(key) if key in self._parent else None

    def begins(self, key: int) -> bool:
        """Whether the expression is a ``compiler_begin``."""
        return key in self._begins
