"""Walks over an ONNX graph, the branches of its nodes included."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def branches(node: Any) -> Iterator[Any]:
    """The graphs within a node: the branches of an ``If``, the body of a ``Loop``."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def all_nodes(graph: Any) -> Iterator[Any]:
    """Each node, then those within it."""
    for node in graph.node:
        yield node
        for branch in branches(node):
            yield from all_nodes(branch)


def reads(node: Any) -> Iterator[str]:
    """Names that a node reads, those that its branches take from outside included."""
    yield from node.input
    for branch in branches(node):
        yield from reads_within(branch)


def reads_within(graph: Any) -> Iterator[str]:
    """Names that a graph's nodes read, and its outputs."""
    for node in graph.node:
        yield from reads(node)
    for value in graph.output:
        yield value.name
