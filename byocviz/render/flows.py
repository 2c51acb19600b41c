"""What a figure draws of a function: its nodes, the boxes round them and the values that flow.

Constants become words on their reader, and the plumbing of tuples is left out: an operator that
takes element 1 of a tuple is drawn as taking it from where the element was made. A whole tuple
that several read stays a node, or n readers of m elements would be n x m edges.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from byocviz.recording.schema import Edge, Graph, Node

BOXES = frozenset({"composite", "region", "branch", "function"})
_SOURCES = frozenset({"const", "shape", "prim"})
_THROUGH = frozenset({"tuple", "get", "cast"})
MAX_DEPTH = 40
"""Boxes that are drawn inside each other; what lies deeper lies in the last of them. Graphviz
walks clusters by recursion."""


class Flow(NamedTuple):
    """A value from one drawn node (or box) to another."""

    src: int
    dst: int
    slot: int
    out: int


@dataclass
class Drawn:
    """Indices are those of `Graph.nodes`."""

    nodes: list[int] = field(default_factory=list)
    """In order; boxes are not among them."""
    boxes: list[int] = field(default_factory=list)
    parent: list[int] = field(default_factory=list)
    """The box in which each node or box is drawn, -1 for none; one a node of the graph."""
    flows: list[Flow] = field(default_factory=list)
    constants: dict[int, list[str]] = field(default_factory=dict)
    """What each drawn node reads of constants: their values where they are scalars, else
    ``const``."""


def drawn(graph: Graph) -> Drawn:
    """Linear in nodes and edges. Takes any graph: an edge or parent that names nothing is left
    out, and boxes that lie in themselves are drawn at the top."""
    nodes, size = graph.nodes, len(graph.nodes)
    into: list[list[Edge]] = [[] for _ in nodes]
    whole = [0] * size  # readers that take all of a tuple; what passes it on may have several
    for edge in graph.edges:
        if 0 <= edge.src < size and 0 <= edge.dst < size:
            into[edge.dst].append(edge)
            whole[edge.src] += {"get": 0, "cast": 2, "tuple": 2}.get(nodes[edge.dst].kind, 1)
    hidden = [_hidden(node, into[i], whole[i]) for i, node in enumerate(nodes)]
    maker = _Maker(nodes, into, hidden)
    found = Drawn(parent=_parents(nodes))
    for i, node in enumerate(nodes):
        if node.kind in BOXES:
            found.boxes.append(i)
        elif not hidden[i]:
            found.nodes.append(i)
        if not hidden[i]:
            _read(i, maker, found)
    return found


def _hidden(node: Node, into: list[Edge], readers: int) -> bool:
    if node.kind in _SOURCES:
        return not node.ops and not into
    if node.kind == "tuple":
        return not node.ops and readers < 2
    return node.kind in _THROUGH and not node.ops and bool(into)


def _parents(nodes: list[Node]) -> list[int]:
    """The nearest box round each node, at most `MAX_DEPTH` deep."""
    size = len(nodes)
    box = [-1] * size
    depth = [-1] * size  # of a box inside others; -1 while it is not known
    for start in range(size):
        chain: list[int] = []
        at = start
        # -2 marks what is on this chain: met again, the boxes lie in themselves.
        while 0 <= at < size and depth[at] == -1:
            depth[at] = -2
            chain.append(at)
            at = nodes[at].parent
        around = at if 0 <= at < size and depth[at] >= 0 else -1
        for one in reversed(chain):
            if around >= 0 and nodes[around].kind not in BOXES:
                around = box[around]
            if around >= 0 and depth[around] >= MAX_DEPTH - 1:
                around = box[around] if nodes[one].kind in BOXES else around
            box[one] = around
            depth[one] = depth[around] + 1 if around >= 0 else 0
            around = one
    return box


def _read(reader: int, maker: _Maker, found: Drawn) -> None:
    """The flows into one drawn node."""
    constants: list[str] = []
    for edge in maker.into[reader]:
        for src, out in maker.of(edge):
            node = maker.nodes[src]
            if not maker.hidden[src]:
                if src != reader:
                    found.flows.append(Flow(src, reader, edge.slot, out))
            elif node.kind == "const":
                constants.append(node.label if node.type.endswith("[]") else "const")
    if constants:
        found.constants[reader] = constants


class _Maker:
    """Finds where an edge's value was made."""

    def __init__(self, nodes: list[Node], into: list[list[Edge]], hidden: list[bool]) -> None:
        self.nodes, self.into, self.hidden = nodes, into, hidden
        self.fields: dict[int, dict[int, Edge]] = {}

    def of(self, edge: Edge) -> Iterator[tuple[int, int]]:
        """The drawn nodes or hidden sources, each with the number of its result."""
        todo = [(edge.src, edge.out)]
        seen: set[int] = set()
        while todo:
            at, out = todo.pop()
            if not self.hidden[at] or self.nodes[at].kind in _SOURCES:
                yield at, out
            elif at not in seen:  # a cycle of plumbing is in no module, but may be in a file
                seen.add(at)
                todo.extend(self._behind(at))

    def _behind(self, at: int) -> list[tuple[int, int]]:
        into = self.into[at]
        if self.nodes[at].kind != "get":
            return [(one.src, one.out) for one in reversed(into)]
        first = into[0]
        if self.nodes[first.src].kind != "tuple" or not self.hidden[first.src]:
            return [(first.src, first.out)]
        fields = self.fields.get(first.src)
        if fields is None:
            fields = self.fields[first.src] = {one.slot: one for one in self.into[first.src]}
        field = fields.get(first.out)
        return [(field.src, field.out)] if field else []
