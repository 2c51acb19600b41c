"""Walks the body of an external function and has each call converted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tvm
from tvm import relax

from byocviz.building.errors import LoweringError
from byocviz.building.lower.base import DEEPEST, BaseWalker
from byocviz.building.lower.graph import Graph, Tensor
from byocviz.building.lower.lowered import Lowered
from byocviz.building.lower.model import OPSETS
from byocviz.building.lower.registry import find
from byocviz.building.lower.relax_call import RelaxCall
from byocviz.errors import ModuleError
from byocviz.flow.relax.compat import Constant, attribute, plain, tensor_of
from byocviz.flow.relax.surgery import dtype_of, static_shape
from byocviz.flow.relax.tag import tag_of

__all__ = ["OPSETS", "check", "examine", "lower"]

_FIXED = (
    "Give the module fixed shapes before it is recorded (relax.transform.BindSymbolicVars, or "
    "shapes= where the model is loaded)."
)
_LOWERED_ALREADY = ("relax.call_tir", "relax.call_dps_packed", "relax.call_pure_packed")


def lower(
    function: Any,
    *,
    name: str | None = None,
    opset: int = 17,
    module: Any = None,
    operators: Sequence[int] | None = None,
) -> Lowered:
    """The ONNX model of a Relax function.

    ``function`` is an external function as MergeCompositeFunctions leaves it, one of annotate's
    with a single composite function, a composite function, or a plain Relax function. Composite
    functions that it calls may be local ones, or functions of ``module``. ``name`` is by default
    its global symbol. ``operators`` are the ids of its calls in order (a recording's
    ``Subgraph.op_ids``); by default those in the calls' spans, where equal composite functions
    share theirs.

    Raises `LoweringError` for the first call that cannot be expressed with the same meaning, and
    `ModuleError` for what is no Relax function or an opset out of `OPSETS`.
    """
    return _Walker(function, name, opset, module, None, operators).finish()


def check(function: Any, *, opset: int = 17, module: Any = None) -> list[LoweringError]:
    """Everything in a Relax function that `lower` would refuse, in order; none: it lowers."""
    return examine(function, opset=opset, module=module)[0]


def examine(
    function: Any, *, opset: int = 17, module: Any = None
) -> tuple[list[LoweringError], Graph]:
    """What `check` gives, and the nodes that the function becomes where it is not refused."""
    errors: list[LoweringError] = []
    return errors, _Walker(function, None, opset, module, errors).graph


class _Walker(BaseWalker):
    dialect = "Relax"
    fixed = _FIXED

    def __init__(
        self,
        function: Any,
        name: str | None,
        opset: int,
        module: Any,
        errors: list[LoweringError] | None,
        operators: Sequence[int] | None = None,
    ) -> None:
        if not isinstance(function, relax.Function):
            raise ModuleError(
                f"A Relax function is wanted, not {type(function).__name__}.",
                "Give module[name] of a partitioned module.",
            )
        name = name or plain(attribute(function, "global_symbol") or "subgraph")
        super().__init__(name, opset, errors, operators)
        self.module = module
        self.env: dict[Any, Any] = {}
        self.constants: dict[Any, Tensor] = {}
        for index, param in enumerate(function.params):
            self.env[param] = self._input(param.name, param.ty, index, ())
        self._edges(self._body(function.body))

    # -- types

    def _fields(self, ty: Any) -> list[Any] | None:
        return list(ty.fields) if isinstance(ty, relax.TupleType) else None

    def _shape(self, ty: Any) -> tuple[int, ...] | None:
        return static_shape(ty)

    def _dtype(self, ty: Any) -> str:
        return dtype_of(ty)

    def _rank(self, ty: Any) -> int:
        return max(int(getattr(ty, "ndim", 1)), 0)

    def _text(self, ty: Any) -> str:
        return plain(ty)

    def _input(self, name: str, ty: Any, index: int, path: tuple[int, ...]) -> Any:
        if not isinstance(ty, relax.ShapeType):
            return super()._input(name, ty, index, path)
        if ty.values is not None:
            return relax.ShapeExpr(list(ty.values))
        self._refused(
            LoweringError(
                "parameter", -1, plain(name), "type", plain(ty), "Its shape is not known now.",
                _FIXED,
            )
        )  # fmt: skip
        return relax.ShapeExpr([1] * max(int(ty.ndim), 0))

    # -- expressions

    def _body(self, expr: Any) -> Any:
        if not isinstance(expr, relax.SeqExpr):
            return self._value(expr, "")
        for block in expr.blocks[:]:
            for binding in block.bindings[:]:
                if isinstance(binding, relax.MatchCast):
                    value = self._cast(binding)
                else:
                    value = self._value(binding.value, binding.var.name)
                self.env[binding.var] = value
        return self._value(expr.body, "")

    def _cast(self, binding: Any) -> Any:
        """A match_cast states what is known already, or nothing that an engine can check."""
        value = self._value(binding.value, binding.var.name)
        if isinstance(value, Tensor) and (
            static_shape(binding.ty) != value.shape or dtype_of(binding.ty) != value.dtype
        ):
            self._refused(
                LoweringError(
                    "match_cast", -1, plain(binding.var.name), "type", plain(binding.ty),
                    "It checks the shape when the module runs.", _FIXED,
                )
            )  # fmt: skip
        return value

    def _value(self, expr: Any, variable: str) -> Any:
        if isinstance(expr, relax.Var):
            return self.env.get(expr, expr)
        if isinstance(expr, Constant):
            return self._constant(expr)
        if isinstance(expr, relax.Tuple):
            return [self._value(field, "") for field in expr.fields[:]]
        if isinstance(expr, relax.TupleGetItem):
            whole = self._value(expr.tuple_value, "")
            if isinstance(whole, list):
                return whole[int(expr.index)]
        if isinstance(expr, relax.Call):
            return self._call(expr, plain(variable))
        if isinstance(expr, relax.SeqExpr):
            return self._body(expr)
        if isinstance(expr, relax.If):
            self._refused(
                LoweringError(
                    "if", -1, plain(variable), "branches", 2,
                    "A subgraph has no branches: they run in TVM's virtual machine.",
                )
            )  # fmt: skip
            return self._placeholder(expr.ty)
        return expr

    def _constant(self, expr: Any) -> Tensor:
        found = self.constants.get(expr)
        if found is None:
            shape, dtype = self._known("constant", "", expr.ty)
            data = tensor_of(expr)
            found = self.constants[expr] = self.graph.lazy(dtype, shape, lambda: _numpy(data))
        return found

    def _call(self, call: Any, variable: str) -> Any:
        op = call.op
        if isinstance(op, tvm.ir.Op):
            return self._operator(call, variable)
        function = self.env.get(op, op)
        if isinstance(op, tvm.ir.GlobalVar) and self.module is not None:
            function = self.module[op]
        if isinstance(function, relax.Function) and self.depth < DEEPEST:
            values = [self._value(a, "") for a in call.args[:]]
            self.env.update(zip(function.params[:], values, strict=True))
            self.depth += 1
            result = self._body(function.body)
            self.depth -= 1
            return result
        name = plain(getattr(op, "name_hint", None) or getattr(op, "global_symbol", None) or op)
        self._refused(
            LoweringError(
                "call", tag_of(call), variable, "function", name,
                "Its body is not a Relax function of this subgraph.",
                "Give the module that holds it: lower(function, module=module).",
            )
        )  # fmt: skip
        return self._placeholder(call.ty)

    def _operator(self, call: Any, variable: str) -> Any:
        identity = self._identity(tag_of(call))
        self.graph.begin(identity, plain(call.op.name), variable)
        args = [self._value(argument, "") for argument in call.args[:]]
        view = RelaxCall(self.graph, call, call.ty, args, identity, variable)
        try:
            result = self._call_converted(view, call)
        except LoweringError as error:
            self._refused(error)
            return self._placeholder(call.ty)
        return result

    def _call_converted(self, view: RelaxCall, call: Any) -> Any:
        function = find(view.name)
        if function is None and view.name in _LOWERED_ALREADY:
            callee = call.args[0]
            raise view.refuse(
                "function",
                plain(getattr(callee, "name_hint", None) or callee.global_symbol),
                "It is code already, no operator.",
                "Leave it on TVM: only operators have converters.",
            )
        return self._converted(view, function)


def _numpy(tensor: Any) -> np.ndarray:
    return np.asarray(tensor.numpy())
