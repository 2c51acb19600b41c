"""The regions that ``compiler_begin`` and ``compiler_end`` mark in a body."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from typing import Any

from tvm import relay

from byocviz.flow.relay.compat import BEGIN, END, plain
from byocviz.flow.relay.scopes import Body

DEFAULT = "default"
"""What AnnotateTarget calls the compiler of all that stays on TVM."""


class Regions:
    """Expressions that are connected without a border between them, for one compiler.

    As TVM's AnnotatedRegionSet has them, but for those that stay on TVM. ``flattened``: as
    PartitionGraph has them, for which each field of a tuple that a region gives ends by itself.
    """

    def __init__(self, body: Body, *, flattened: bool = False) -> None:
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
            if compiler == DEFAULT or not isinstance(inside, int):
                continue
            ends = [inside]
            if flattened and body.items[inside].kind is relay.Tuple:
                ends = body.items[inside].children
            for end in ends:
                if isinstance(end, int) and end not in borders:
                    self._gather(body, end, borders)
                    self.backend[self._root(end)] = compiler

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

    def cycle(self, body: Body) -> set[int]:
        """Regions that wait for each other, or one that waits for itself; none: there are none."""
        waits: dict[int, set[int]] = {}
        """What each needs before it: regions by their root, all else by its own key."""
        for key, item in body.items.items():
            node = self._one(key)
            needed = waits.setdefault(node, set())
            needed.update(
                self._one(child)
                for child in item.children
                if isinstance(child, int) and self._one(child) != node
            )
        try:
            TopologicalSorter(waits).prepare()
        except CycleError as error:
            return {node for node in error.args[1] if node in self.backend}
        return set()

    def _one(self, key: int) -> int:
        root = self.of(key)
        return key if root is None else root
