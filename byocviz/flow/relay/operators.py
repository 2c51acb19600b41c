"""What is written down of one Relay call: name, attributes, types, work, parameters."""

from __future__ import annotations

from typing import Any

from tvm import relay

from byocviz.flow.identity import Ids
from byocviz.flow.reading import Reading
from byocviz.flow.relay.compat import key_of, plain
from byocviz.flow.relay.macs import macs
from byocviz.flow.relay.types import Types
from byocviz.recording.schema import Operator

_MAX_TEXT = 200


def clipped(value: Any) -> str:
    text = plain(value)
    return text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 1] + "…"


def attributes(attrs: Any) -> dict[str, str]:
    """A call's attributes as text; those that are not set are left out."""
    if not hasattr(attrs, "keys"):
        return {}
    found = {}
    for name in attrs.keys():  # noqa: SIM118
        value = getattr(attrs, name, None)
        if value is not None and plain(value) != "":
            found[plain(name)] = clipped(value)
    return found


class Operators:
    """Writes down operators once each, by id."""

    def __init__(self, weights: set[int], sources: dict[int, str], types: Types) -> None:
        self.types = types
        self.weights = weights
        """Keys of the entry's parameters that are weights still to be bound."""
        self.sources = sources
        self.read: dict[int, list[tuple[Any, int, int]]] = {}
        """The constants and weights that each operator reads: (tensor, elements, bytes)."""
        self._held: list[Any] = []
        """Constants whose keys are in ``read``: held, that no other gets one's address."""
        self._attrs: dict[int, dict[str, str]] = {}

    def describe(self, identity: int, reading: Reading, node: int) -> Operator:
        call = reading.calls[node]
        arguments = self._tensors(reading, node)
        read = self._parameters(arguments)
        if read:
            self.read[identity] = read
        operator = reading.graph.nodes[node].kind == "op"
        return Operator(
            identity,
            reading.names[node],
            function=reading.name,
            kind="operator" if operator else "call",
            var=reading.variables[node],
            source=self.sources.get(identity, ""),
            attrs=self._attributes(call) if operator else {},
            arg_types=[self._text(leaf) for leaf in arguments],
            out_types=self._results(call.checked_type),
            macs=macs(call, reading.names[node]) if operator else 0,
            param_count=sum(n for _, n, _ in read),
            param_bytes=sum(size for _, _, size in read),
        )

    def _attributes(self, call: Any) -> dict[str, str]:
        attrs = call.attrs
        if attrs is None:
            return {}
        key = key_of(attrs)
        found = self._attrs.get(key)
        if found is None:
            found = self._attrs[key] = attributes(attrs)
            self._held.append(attrs)
        return found

    def refresh(self, ops: dict[int, Operator], readings: list[Reading], ids: Ids) -> None:
        """Write types, attributes and parameters anew, where a rewrite changed them."""
        for reading in readings:
            for node, call in reading.calls.items():
                old = ops[ids[reading.name, node]]
                arguments = self._tensors(reading, node)
                read = self._parameters(arguments)
                self.read.pop(old.id, None)
                if read:
                    self.read[old.id] = read
                before = old.arg_types, old.out_types, old.attrs
                old.arg_types = [self._text(leaf) for leaf in arguments]
                old.out_types = self._results(call.checked_type)
                old.param_count = sum(n for _, n, _ in read)
                old.param_bytes = sum(size for _, _, size in read)
                if old.kind == "operator":
                    old.attrs = self._attributes(call)
                    if (old.arg_types, old.out_types, old.attrs) != before:
                        old.macs = macs(call, reading.names[node])

    def _tensors(self, reading: Reading, node: int) -> list[Any]:
        return [leaf for value in reading.values[node] for leaf in value.leaves()]

    def _text(self, leaf: Any) -> str:
        ty = getattr(leaf, "ty", None)
        if ty is None:
            return "?"
        text = self.types.text(ty)
        if isinstance(leaf.expr, relay.Constant):
            return f"{text} const"
        if isinstance(leaf.expr, relay.Var) and key_of(leaf.expr) in self.weights:
            return f"{text} parameter"
        return text

    def _results(self, ty: Any) -> list[str]:
        if isinstance(ty, relay.TupleType):
            return [text for field in ty.fields for text in self._results(field)]
        return [self.types.text(ty)]

    def _parameters(self, arguments: list[Any]) -> list[tuple[Any, int, int]]:
        found = []
        for leaf in arguments:
            expr = leaf.expr
            constant = isinstance(expr, relay.Constant)
            if not constant and not (isinstance(expr, relay.Var) and key_of(expr) in self.weights):
                continue
            count, size = self.types.size(leaf.ty)
            if count is not None:
                self._held.append(expr)
                found.append((key_of(expr), count, size or 0))
        return found
