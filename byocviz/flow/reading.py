"""What reading a function of a module gives, whichever IR it is written in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from byocviz.recording.schema import Graph

# An origin names what made a value: a node of the graph that is a call or an If. Parameters,
# constants and the like are None. The passes regroup calls, so origins outlive them.
Origin = int | None


class Value:
    """What an expression stands for: a drawn node, and the calls that it comes from."""

    __slots__ = ("expr", "fields", "node", "origin", "out")

    def __init__(
        self,
        node: int,
        origin: Origin,
        out: int = 0,
        fields: list[Value] | None = None,
        expr: Any = None,
    ) -> None:
        self.node = node
        """-1 for a tuple that is not drawn: its fields are."""
        self.origin = origin
        self.out = out
        self.fields = fields
        self.expr = expr
        """The constant or variable of the IR, where one stands for it."""

    def leaves(self) -> Iterator[Value]:
        if self.fields is None:
            yield self
        else:
            for field in self.fields:
                yield from field.leaves()


class Site:
    """One call of an external function: what becomes a subgraph."""

    __slots__ = (
        "arguments",
        "backend",
        "call",
        "caller",
        "function",
        "node",
        "nodes",
        "result",
    )

    def __init__(self, function: str, backend: str, caller: str, node: int, call: Any) -> None:
        self.function = function
        self.backend = backend
        self.caller = caller
        self.node = node
        self.call = call
        self.arguments: list[Value] = []
        self.result: Value | None = None
        self.nodes: list[int] = []
        """Its operators' nodes, in the order of the function's body."""


class Reading:
    """One function of the module, read."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.graph = Graph()
        self.calls: dict[int, Any] = {}
        """The TVM call of each node of kind ``op`` or ``call``, in the order of the text."""
        self.names: dict[int, str] = {}
        """What each call calls: filled where the reader has it at hand."""
        self.tags: dict[int, int] = {}
        self.variables: dict[int, str] = {}
        self.values: dict[int, list[Value]] = {}
        """The arguments of each call."""
        self.inputs: dict[int, list[Origin]] = {}
        """Origins of the arguments of each call and If, flattened."""
        self.ifs: list[int] = []
        self.results: list[Origin] = []
        self.sites: list[Site] = []
        self.homes: dict[int, str] = {}
        """The function of the module in whose body the call stands."""
        self.composites: dict[int, str] = {}
        """The rule of the composite function round each node, where there is one."""
        self.site_of: dict[int, int] = {}
        self.blocks: dict[int, int] = {}
        """The binding block that each call stands in: a number of its own in the function."""
