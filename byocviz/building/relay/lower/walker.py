"""Walks the body of an external function and has each call converted. Nothing here recurses but
into functions that are called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from tvm import relay

from byocviz.building.errors import LoweringError
from byocviz.building.lower.base import DEEPEST, BaseWalker
from byocviz.building.lower.graph import Tensor
from byocviz.building.lower.lowered import Lowered
from byocviz.building.relay.lower.call import RelayCall
from byocviz.building.relay.lower.registry import find
from byocviz.errors import ModuleError
from byocviz.flow.relay.compat import attribute, functions_of, key_of, plain, tag_of
from byocviz.flow.relay.scopes import Body, Item, has_callee
from byocviz.flow.relay.types import dims, type_text

_KINDS = (relay.Call, relay.Tuple, relay.TupleGetItem, relay.Let)


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


class _Walker(BaseWalker):
    dialect = "Relay"
    fixed = "Give the module fixed shapes before it is recorded (relay.Any is none)."

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
        name = name or plain(attribute(function, "global_symbol") or "subgraph")
        super().__init__(name, opset, errors, operators)
        self.functions = functions_of(module) if module is not None else {}
        self.constants: dict[int, Tensor] = {}
        self.held: list[Any] = []
        """Keys are addresses: what they are of must not go."""
        env: dict[int, Any] = {}
        for index, param in enumerate(function.params):
            env[key_of(param)] = self._input(plain(param.name_hint), param.checked_type, index, ())
            self.held.append(param)
        self._edges(self._body(function, env))

    # -- types

    def _fields(self, ty: Any) -> list[Any] | None:
        return list(ty.fields) if isinstance(ty, relay.TupleType) else None

    def _shape(self, ty: Any) -> tuple[int, ...] | None:
        shape = dims(ty)
        return None if shape is None else tuple(shape)

    def _dtype(self, ty: Any) -> str:
        return str(getattr(ty, "dtype", ""))

    def _rank(self, ty: Any) -> int:
        return len(getattr(ty, "shape", ()))

    def _text(self, ty: Any) -> str:
        return type_text(ty)

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
        if isinstance(function, relay.Function) and self.depth < DEEPEST:
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
        identity = self._identity(item.tag)
        self.graph.begin(identity, item.name)
        view = RelayCall(self.graph, item.expr, item.ty, parts, identity, "")
        try:
            return self._converted(view, find(view.name))
        except LoweringError as error:
            self._refused(error)
            return self._placeholder(item.ty)
