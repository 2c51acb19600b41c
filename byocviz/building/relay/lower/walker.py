"""Walks the body of an external function and has each call converted. Nothing here recurses but
into functions that are called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from tvm import relay

from byocviz.building.errors import LoweringError
from byocviz.building.lower.graph import Graph, Tensor, onnx_type
from byocviz.building.lower.lowered import Lowered, Port
from byocviz.building.lower.model import OPSETS, clean, written
from byocviz.building.relay.lower.call import RelayCall
from byocviz.building.relay.lower.registry import find
from byocviz.errors import ModuleError
from byocviz.flow.relay.compat import attribute, functions_of, key_of, plain, tag_of
from byocviz.flow.relay.scopes import Body, Item, has_callee
from byocviz.flow.relay.types import dims, type_text

_FIXED = "Give the module fixed shapes before it is recorded (relay.Any is none)."
_KINDS = (relay.Call, relay.Tuple, relay.TupleGetItem, relay.Let)
_DEEPEST = 64
"""Functions that call each other."""


def lower(
    function: Any,
    *,
    name: str | None = None,
    opset: int = 17,
    module: Any = None,
    operators: Sequence[int] | None = None,
) -> Lowered:
    """The ONNX model of a Relay function.

    ``function`` is an external function as PartitionGraph leaves it, a composite function or a
    plain one, its types inferred. Functions that it calls may be literals, or functions of
    ``module``. ``name`` is by default its global symbol. ``operators`` are the ids of its calls in
    order (a recording's ``Subgraph.op_ids``); by default those in the calls' spans.

    Raises `LoweringError` for the first call that cannot be expressed with the same meaning, and
    `ModuleError` for what is no Relay function or an opset out of `OPSETS`.
    """
    return _Walker(function, name, opset, module, None, operators).finish()


def check(function: Any, *, opset: int = 17, module: Any = None) -> list[LoweringError]:
    """Everything in a Relay function that `lower` would refuse, in order; none: it lowers."""
    errors: list[LoweringError] = []
    _Walker(function, None, opset, module, errors)
    return errors


class _Walker:
    """``errors`` gathers what is refused; None raises the first."""

    def __init__(
        self,
        function: Any,
        name: str | None,
        opset: int,
        module: Any,
        errors: list[LoweringError] | None,
        operators: Sequence[int] | None = None,
    ) -> None:
        if not isinstance(function, relay.Function):
            raise ModuleError(
                f"A Relay function is wanted, not {type(function).__name__}.",
                "Give module[name] of a partitioned module.",
            )
        if opset not in OPSETS:
            raise ModuleError(
                f"The opset {opset} is not written here.",
                f"Choose one from {OPSETS.start} to {OPSETS.stop - 1}.",
            )
        self.name = name or plain(attribute(function, "global_symbol") or "subgraph")
        self.graph = Graph(opset)
        self.functions = functions_of(module) if module is not None else {}
        self.errors = errors
        self.constants: dict[int, Tensor] = {}
        self.held: list[Any] = []
        """Keys are addresses: what they are of must not go."""
        self.inputs: list[Port] = []
        self.given = list(operators) if operators is not None else None
        self.calls = 0
        self.depth = 0
        env: dict[int, Any] = {}
        for index, param in enumerate(function.params):
            env[key_of(param)] = self._input(plain(param.name_hint), param.checked_type, index, ())
            self.held.append(param)
        result = self._body(function, env)
        if self.given is not None and len(self.given) != self.calls:
            raise ModuleError(
                f"{self.name} has {self.calls} operators and {len(self.given)} ids are given.",
                "Give the op_ids of the subgraph whose function it is.",
            )
        self.tuple_output = isinstance(result, list)
        self.outputs: list[tuple[Port, Tensor]] = []
        self._output(result, ())

    # -- the edges of the model

    def _refused(self, error: LoweringError) -> None:
        if self.errors is None:
            raise error
        self.errors.append(error)

    def _input(self, name: str, ty: Any, index: int, path: tuple[int, ...]) -> Any:
        if isinstance(ty, relay.TupleType):
            return [
                self._input(f"{name}_{i}", field, index, (*path, i))
                for i, field in enumerate(ty.fields)
            ]
        shape, dtype = self._known("parameter", name, ty)
        tensor = self.graph.input(clean(name), dtype, shape)
        self.inputs.append(Port(tensor.name, dtype, shape, index, path))
        return tensor

    def _known(self, what: str, name: str, ty: Any) -> tuple[tuple[int, ...], str]:
        """Shape and element type of a tensor type; placeholders for what is refused."""
        shape, dtype = dims(ty), str(getattr(ty, "dtype", ""))
        if shape is None:
            self._refused(
                LoweringError(
                    what, -1, name, "type", type_text(ty), "Engines are built for fixed shapes.",
                    _FIXED,
                )
            )  # fmt: skip
            shape = [1] * len(getattr(ty, "shape", ()))
        try:
            onnx_type(dtype)
        except KeyError:
            self._refused(
                LoweringError(what, -1, name, "dtype", dtype or "unknown", "ONNX has no such type.")
            )
            dtype = "float32"
        return tuple(shape), dtype

    def _output(self, value: Any, path: tuple[int, ...]) -> None:
        if isinstance(value, list):
            for index, field in enumerate(value):
                self._output(field, (*path, index))
            return
        if not isinstance(value, Tensor):
            self._refused(
                LoweringError(
                    "result", -1, "", "value", type(value).__name__,
                    "A subgraph gives tensors, or tuples of them.",
                )
            )  # fmt: skip
            return
        name = self.graph.unique(f"output_{len(self.outputs)}")
        self.outputs.append((Port(name, value.dtype, value.dims, -1, path), value))

    # -- expressions

    def _body(self, function: Any, env: dict[int, Any]) -> Any:
        """The value of a function's body; ``env`` holds its parameters' by key."""
        body = Body(function.body)
        made: dict[int, Any] = {}

        def value(child: Any) -> Any:
            if isinstance(child, int):
                return made[child]
            if isinstance(child, relay.Constant):
                return self._constant(child)
            if isinstance(child, relay.Var):
                key = key_of(child)
                return env[key] if key in env else value(body.lets[key])
            return child

        odd = next((i for i in body.items.values() if i.kind not in _KINDS or has_callee(i)), None)
        if odd is not None:
            local = odd.kind is relay.Call or odd.kind is relay.Function
            kind = "A local function" if local else odd.kind.__name__
            self._refused(
                LoweringError(
                    kind, -1, "", "", "",
                    "A subgraph has operators and tuples only: all else runs in TVM.",
                )
            )  # fmt: skip
            return self._placeholder(function.body.checked_type)
        for item in body.items.values():
            made[item.key] = self._item(item, [value(child) for child in item.children])
        return value(body.root)

    def _item(self, item: Item, parts: list[Any]) -> Any:
        expr, kind = item.expr, item.kind
        if kind is relay.Call:
            return self._call(item, parts)
        if kind is relay.Tuple:
            return parts
        if kind is relay.TupleGetItem:
            return parts[0][int(expr.index)]
        return parts[1]  # of a let

    def _constant(self, expr: Any) -> Tensor:
        key = key_of(expr)
        found = self.constants.get(key)
        if found is None:
            self.held.append(expr)
            shape, dtype = self._known("constant", "", expr.checked_type)
            data = expr.data
            found = self.constants[key] = self.graph.lazy(
                dtype, shape, lambda: np.asarray(data.numpy())
            )
        return found

    def _call(self, item: Item, parts: list[Any]) -> Any:
        if item.name:
            return self._operator(item, parts)
        function = item.op
        if isinstance(function, relay.GlobalVar):
            function = self.functions.get(plain(function.name_hint), function)
        if isinstance(function, relay.Function) and self.depth < _DEEPEST:
            self.held += [function, *function.params]
            env = {key_of(p): v for p, v in zip(function.params, parts, strict=True)}
            self.depth += 1
            result = self._body(function, env)
            self.depth -= 1
            return result
        name = plain(getattr(function, "name_hint", type(function).__name__))
        self._refused(
            LoweringError(
                "call", tag_of(item.expr), "", "function", name,
                "Its body is not a Relay function of this subgraph.",
                "Give the module that holds it: lower(function, module=module).",
            )
        )  # fmt: skip
        return self._placeholder(item.ty)

    def _operator(self, item: Item, parts: list[Any]) -> Any:
        identity = self._identity(item)
        self.graph.begin(identity, item.name)
        view = RelayCall(self.graph, item.expr, item.ty, parts, identity, "")
        try:
            return self._converted(view)
        except LoweringError as error:
            self._refused(error)
            return self._placeholder(item.ty)

    def _identity(self, item: Item) -> int:
        number = self.calls
        self.calls += 1
        if self.given is not None and number < len(self.given):
            return int(self.given[number])
        return item.tag

    def _converted(self, view: RelayCall) -> Any:
        function = find(view.name)
        if function is None:
            raise view.refuse("", "", "It has no converter.", "Register one: @converter(name).")
        try:
            result = function(self.graph, view)
        except LoweringError:
            raise
        except Exception as error:  # models come from strangers: whatever it stumbles over
            raise view.refuse(
                "converter",
                function.__name__,
                f"It failed: {type(error).__name__}: {error}",
                "Please report it, with the subgraph's text.",
            ) from error
        if isinstance(result, Tensor):
            return self._typed(view, result, view.dtype, view.shape)
        given = zip(result, view.dtypes, view.shapes, strict=True)
        return [self._typed(view, *one) for one in given]

    def _typed(self, view: RelayCall, tensor: Tensor, dtype: str, shape: tuple[int, ...]) -> Tensor:
        """The tensor with the type that Relay gives the result."""
        if tensor.dtype != dtype or (tensor.shape is not None and tensor.shape != shape):
            raise view.refuse(
                "result",
                f"{tensor.dtype}{list(tensor.shape or ())}",
                f"Relay gives {dtype}{list(shape)}: the converter is wrong.",
                "Please report it, with the subgraph's text.",
            )
        return tensor if tensor.shape is not None else Tensor(tensor.name, dtype, shape)

    def _placeholder(self, ty: Any) -> Any:
        """Stands for what was refused, so that the rest can be asked."""
        if isinstance(ty, relay.TupleType):
            return [self._placeholder(field) for field in ty.fields]
        shape = dims(ty)
        if shape is None:
            shape = [1] * len(getattr(ty, "shape", ()))
        return Tensor(
            self.graph.unique("refused"), str(getattr(ty, "dtype", "float32")), tuple(shape)
        )

    # -- the model

    def finish(self) -> Lowered:
        return written(self.name, self.graph, self.inputs, self.outputs, self.tuple_output)
