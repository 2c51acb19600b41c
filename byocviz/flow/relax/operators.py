"""What is written down of one Relax call: name, attributes, types, work, parameters."""

from __future__ import annotations

from typing import Any

import tvm
from tvm import relax
from tvm.ir import GlobalVar, Op

from byocviz.flow.identity import Ids
from byocviz.flow.reading import Reading
from byocviz.flow.relax.compat import is_tensor_constant, plain
from byocviz.flow.relax.macs import macs, tensor_bytes, type_text
from byocviz.flow.relax.reader import CALL_INTO
from byocviz.recording.schema import Operator

_MAX_TEXT = 200
_FIELDS: dict[type, tuple[str, ...]] = {}


def call_name(call: Any) -> str:
    """TVM's name of the operator, or the callee's name where a function is called."""
    op = call.op
    if type(op) is Op:
        return plain(op.name)
    if type(op) is GlobalVar:
        return plain(op.name_hint)
    return plain(getattr(op, "name", None) or getattr(op, "global_symbol", None) or "function")


def is_operator(call: Any) -> bool:
    return type(call.op) is Op


def clipped(value: Any) -> str:
    text = plain(value)
    return text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 1] + "…"


def attributes(call: Any) -> dict[str, str]:
    """The call's attributes as text, and the arguments that are written in place as such."""
    found: dict[str, str] = {}
    attrs = call.attrs
    if attrs is not None:
        kind = type(attrs)
        names = _FIELDS.get(kind)
        if names is None:
            fields = getattr(kind, "__tvm_ffi_type_info__", None)
            names = _FIELDS[kind] = tuple(f.name for f in fields.fields) if fields else ()
        if names and names != ("__dict__",):
            for name in names:
                value = getattr(attrs, name, None)
                if value is not None:
                    found[name] = clipped(value)
    for index, argument in enumerate(call.args[:]):
        if isinstance(argument, relax.ShapeExpr):
            found[f"argument {index}"] = clipped(argument).removeprefix("R.shape")
        elif not is_tensor_constant(argument) and not isinstance(
            argument, (relax.Var, relax.Tuple, GlobalVar, relax.ExternFunc)
        ):
            found[f"argument {index}"] = clipped(argument)
    return found


class Operators:
    """Writes down operators once each, by id."""

    def __init__(self, module: tvm.IRModule, weights: set[Any], sources: dict[int, str]) -> None:
        self.module = module
        self.weights = weights
        """Parameters of the entry that are weights still to be bound."""
        self.sources = sources
        self.read: dict[int, list[tuple[Any, int, int]]] = {}
        """The constants and weights that each operator reads: (tensor, elements, bytes)."""
        self._types: dict[Any, str] = {}

    def describe(self, identity: int, reading: Reading, node: int) -> Operator:
        call = reading.calls[node]
        name = call_name(call)
        arguments = self._tensors(reading, node)
        read = self._parameters(arguments)
        if read:
            self.read[identity] = read
        operator = is_operator(call)
        return Operator(
            identity,
            name,
            function=reading.name,
            kind="operator" if operator else "call",
            var=reading.variables[node],
            source=self.sources.get(identity, ""),
            callee=reading.graph.nodes[node].callee if name in CALL_INTO else "",
            attrs=attributes(call),
            arg_types=[self._text(a) for a in arguments],
            out_types=self._results(call.ty),
            macs=macs(call, self.module) if operator else 0,
            param_count=sum(n for _, n, _ in read),
            param_bytes=sum(size for _, _, size in read),
        )

    def refresh(self, ops: dict[int, Operator], readings: list[Reading], ids: Ids) -> None:
        """Write the arguments' types and parameters anew, where a rewrite changed what feeds."""
        self._types.clear()
        for reading in readings:
            for node in reading.calls:
                operator = ops[ids[reading.name, node]]
                arguments = self._tensors(reading, node)
                read = self._parameters(arguments)
                if read:
                    self.read[operator.id] = read
                else:
                    self.read.pop(operator.id, None)
                operator.arg_types = [self._text(a) for a in arguments]
                operator.param_count = sum(n for _, n, _ in read)
                operator.param_bytes = sum(size for _, _, size in read)

    def _tensors(self, reading: Reading, node: int) -> list[Any]:
        """The tensors among the arguments, those in tuples one by one."""
        return [
            leaf.expr
            for value in reading.values[node]
            for leaf in value.leaves()
            if leaf.expr is not None
        ]

    def _text(self, expr: Any) -> str:
        text = self._types.get(expr)
        if text is None:
            text = type_text(expr.ty)
            if is_tensor_constant(expr):
                text += " const"
            elif expr in self.weights:
                text += " parameter"
            self._types[expr] = text
        return text

    def _results(self, ty: Any) -> list[str]:
        if isinstance(ty, relax.TupleType):
            return [text for field in ty.fields for text in self._results(field)]
        return [type_text(ty)]

    def _parameters(self, arguments: list[Any]) -> list[tuple[Any, int, int]]:
        found = []
        for argument in arguments:
            if not (is_tensor_constant(argument) or argument in self.weights):
                continue
            count = elements(argument.ty)
            if count is not None:
                found.append((argument, count, tensor_bytes(argument.ty) or 0))
        return found


def elements(ty: Any) -> int | None:
    """How many elements a tensor type has; None where its shape is not wholly known."""
    shape = getattr(ty, "shape", None)
    if shape is None:
        return None
    count = 1
    for dim in shape:
        value = getattr(dim, "value", None)
        if not isinstance(value, int):
            return None
        count *= value
    return count
