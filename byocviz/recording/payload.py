"""How a recording lies in a file: as `RecordingData`, but for what is drawn.

TVM names a merged function after every operator in it, so a name can have a hundred thousand
characters, and each operator of that function names it twice at every step. In the file, the
strings of nodes and places are numbers into one table, and what is loaded shares them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import msgspec

from byocviz.recording.recording import Recording
from byocviz.recording.schema import Edge, Graph, Node, Place, RecordingData

Drawn = TypeVar("Drawn", Node, Place)

# MessagePack's items by their first byte: bytes of the whole item, or (for those of any length)
# of the length that follows. A container is only its head: what it holds follows as items.
_FIXED = bytes(
    {
        0xC4: 0, 0xC5: 0, 0xC6: 0, 0xC7: 0, 0xC8: 0, 0xC9: 0, 0xD9: 0, 0xDA: 0, 0xDB: 0,
        0xCA: 5, 0xCB: 9, 0xCC: 2, 0xCD: 3, 0xCE: 5, 0xCF: 9, 0xD0: 2, 0xD1: 3, 0xD2: 5, 0xD3: 9,
        0xD4: 3, 0xD5: 4, 0xD6: 6, 0xD7: 10, 0xD8: 18, 0xDC: 3, 0xDD: 5, 0xDE: 3, 0xDF: 5,
    }.get(first, first - 0x9F if 0xA0 <= first < 0xC0 else 1)
    for first in range(256)
)  # fmt: skip
_LENGTH = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xC7: 1, 0xC8: 2, 0xC9: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}
_EXTENSIONS = (0xC7, 0xC8, 0xC9)  # a byte of kind lies between length and contents
_CONTAINERS = bytes([*range(0x80, 0xA0), 0xDC, 0xDD, 0xDE, 0xDF])


def _strings_of(kind: type) -> list[int]:
    """The positions of a struct's fields that are strings."""
    fields = enumerate(msgspec.structs.fields(kind))
    return [position for position, field in fields if field.type is str]


def _numbered(kind: type) -> Any:
    """The struct with a number for each string. Made from the schema, so that a field added
    there is never forgotten here."""
    index = Annotated[int, msgspec.Meta(ge=0)]
    fields = [
        (field.name, index if field.type is str else field.type)
        for field in msgspec.structs.fields(kind)
    ]
    return msgspec.defstruct(f"Numbered{kind.__name__}", fields, array_like=True)


NumberedNode = _numbered(Node)
NumberedPlace = _numbered(Place)


class NumberedGraph(msgspec.Struct, array_like=True):
    nodes: list[NumberedNode]  # type: ignore[valid-type]
    edges: list[Edge]


class Drawings(msgspec.Struct, array_like=True):
    """What is drawn of one step."""

    places: dict[int, NumberedPlace]  # type: ignore[valid-type]
    graphs: list[NumberedGraph | None]
    """One a function of the step."""


class Payload(msgspec.Struct):
    recording: Recording
    """Its steps without places, their functions without graphs."""
    drawings: list[Drawings]
    """One a step."""
    strings: list[str]


def encode(recording: RecordingData) -> bytes:
    """The recording as MessagePack. Raises as msgspec does where it holds no plain data."""
    table: dict[str, int] = {}

    def number(kind: type) -> Callable[[Any], list[Any]]:
        positions = _strings_of(kind)

        def row(one: Any) -> list[Any]:
            values = list(msgspec.structs.astuple(one))
            for position in positions:
                values[position] = table.setdefault(values[position], len(table))
            return values

        return row

    node, place = number(Node), number(Place)
    drawings = [
        (
            {key: place(one) for key, one in step.places.items()},
            [
                view.graph and (list(map(node, view.graph.nodes)), view.graph.edges)
                for view in step.functions
            ],
        )
        for step in recording.steps
    ]
    replace = msgspec.structs.replace
    steps = [
        replace(step, places={}, functions=[replace(view, graph=None) for view in step.functions])
        for step in recording.steps
    ]
    return msgspec.msgpack.encode(
        {
            "recording": replace(recording, steps=steps),
            "drawings": drawings,
            "strings": list(table),
        }
    )


def crowded(payload: bytes, items: int, containers: int) -> bool:
    """Whether MessagePack holds more than so many items, or lists, maps and structs among them.

    An empty list is one byte of a file and 64 of memory, and an empty struct ten times that: what
    decoding takes follows from these two figures, not from the bytes. Builds no objects.
    """
    # At C's speed: no more items than bytes, no more containers than bytes that could start one.
    heads = len(payload) - len(payload.translate(None, _CONTAINERS))
    if len(payload) <= items and heads <= containers:
        return False
    fixed, position, end = _FIXED, 0, len(payload)
    seen = 0
    while position < end:
        first = payload[position]
        seen += 1
        size = fixed[first]
        if not size:
            at = position + 1 + _LENGTH[first]
            size = int.from_bytes(payload[position + 1 : at], "big") + at - position
            size += first in _EXTENSIONS
        elif 0x80 <= first < 0xA0 or 0xDC <= first < 0xE0:
            containers -= 1
            if containers < 0:
                return True
        position += size
        if seen > items:
            return True
    return False


def assemble(payload: Payload) -> Recording:
    """The recording of a decoded payload. Raises ValueError or IndexError where its parts do not
    belong together."""
    strings = payload.strings

    def restore(kind: type[Drawn]) -> Callable[[Any], Drawn]:
        positions = _strings_of(kind)

        def one(row: Any) -> Drawn:
            values = list(msgspec.structs.astuple(row))
            for position in positions:
                values[position] = strings[values[position]]
            return kind(*values)

        return one

    node, place = restore(Node), restore(Place)
    for step, drawn in zip(payload.recording.steps, payload.drawings, strict=True):
        step.places = {key: place(row) for key, row in drawn.places.items()}
        for view, graph in zip(step.functions, drawn.graphs, strict=True):
            if graph is not None:
                view.graph = Graph(list(map(node, graph.nodes)), graph.edges)
    return payload.recording
