"""Reads a Relax module into graphs: plain nodes and edges, and who feeds whom.

TVM's arrays are read as ``array[:]``: one call an element where iterating takes four.

Composite and external functions are read at each place where they are called, inside a box, so
that an operator has one node a call even where equal subgraphs share one function.
"""

from __future__ import annotations

import contextlib
from typing import Any

import tvm
from tvm import relax
from tvm.ir import GlobalVar, Op

from byocviz.errors import ModuleError
from byocviz.flow.reading import Origin, Reading, Site, Value
from byocviz.flow.relax.compat import (
    Constant,
    attribute,
    is_tensor_constant,
    plain,
    tensor_of,
)
from byocviz.flow.relax.macs import type_text
from byocviz.flow.relax.tag import tag_of
from byocviz.recording.schema import Edge, Node

MOST_INLINED = 200_000
"""More calls of composite and external functions than this are refused: a module in which each
function calls the one before twice would unfold without end."""

CALL_INTO = {"relax.call_tir", "relax.call_tir_inplace", "relax.call_dps_packed"}


def read_module(
    module: tvm.IRModule,
    entry: str,
    *,
    outlined: bool = False,
    uncalled: frozenset[str] | None = None,
) -> list[Reading]:
    """Read every Relax function that is not drawn inside another, the entry first.

    ``outlined`` draws external functions by themselves and their calls as single nodes.
    ``uncalled`` names the composite and external functions that are read even if nothing calls
    them: those that were given. A pass's own leftovers are dead code. None reads them all.
    """
    functions = {
        plain(var.name_hint): function
        for var, function in module.functions.items()
        if isinstance(function, relax.Function)
    }
    boxed = {
        name
        for name, function in functions.items()
        if attribute(function, "Composite") or attribute(function, "Codegen")
    }
    reader = _Reader(functions, boxed, outlined)
    own = sorted((n for n in functions if n not in boxed), key=lambda n: (n != entry, n))
    readings = [reader.read(name) for name in own]
    if outlined:
        called = {site.function for reading in readings for site in reading.sites}
        readings += [reader.read(name) for name in sorted(called)]
    left = boxed - reader.drawn
    readings += [reader.read(n) for n in sorted(left) if uncalled is None or n in uncalled]
    return readings


class _Reader:
    def __init__(self, functions: dict[str, Any], boxed: set[str], outlined: bool) -> None:
        self.functions = functions
        self.boxed = boxed
        self.outlined = outlined
        self.drawn: set[str] = set()
        self.env: dict[Any, Value] = {}
        self.locals: dict[Any, Any] = {}
        self.constants: dict[tuple[int, Any], int] = {}
        self.inlined = 0

    # -- one function

    def read(self, name: str) -> Reading:
        self.r = Reading(name)
        self.nodes = self.r.graph.nodes
        self.edges = self.r.graph.edges
        self.parent = -1
        self.home = name
        self.rule = ""
        self.site = -1
        # What an external function calls is part of it, an external function too.
        self.within = bool(attribute(self.functions[name], "Codegen"))
        self.block = 0
        self.block_count = 0
        self.constants.clear()
        function = self.functions[name]
        self.drawn.add(name)
        for param in function.params:
            self._param(param)
        result = self._body(function.body)
        out = self._node("output", "result")
        self._feed(result, out)
        self.r.results += [leaf.origin for leaf in result.leaves()]
        return self.r

    def _node(self, kind: str, label: str, type_: str = "", callee: str = "") -> int:
        # TVM's strings are a subclass of str, which a file of plain data does not take.
        self.nodes.append(Node(kind, plain(label), [], self.parent, type_, plain(callee)))
        return len(self.nodes) - 1

    def _param(self, param: Any) -> None:
        node = self._node("param", param.name, type_text(param.ty))
        self.env[param] = Value(node, None, expr=param)

    def _feed(self, value: Value, node: int, slot: int = 0) -> int:
        """Draw the edges of one argument; returns the next free slot."""
        if value.node >= 0:
            self.edges.append(Edge(value.node, node, slot, value.out))
            return slot + 1
        for field in value.fields or ():
            slot = self._feed(field, node, slot)
        return slot

    # -- expressions

    def _body(self, expr: Any) -> Value:
        if not isinstance(expr, relax.SeqExpr):
            return self._value(expr, "")
        outer = self.block
        for block in expr.blocks[:]:
            self.block_count += 1
            self.block = self.block_count
            for binding in block.bindings[:]:
                var = binding.var
                if isinstance(binding, relax.MatchCast):
                    value = self._cast(binding)
                else:
                    value = self._value(binding.value, var)
                if value.expr is None and value.fields is None:
                    value.expr = var
                self.env[var] = value
        result = self._value(expr.body, "")
        self.block = outer
        return result

    def _value(self, expr: Any, var: Any) -> Value:
        """The value of an expression that is bound to ``var`` (empty: it is used in place)."""
        kind = type(expr)
        if issubclass(kind, relax.Var):
            found = self.env.get(expr)
            return found if found is not None else Value(self._node("other", expr.name), None)
        if issubclass(kind, relax.Call):
            return self._call(expr, var)
        if issubclass(kind, Constant):
            if not is_tensor_constant(expr):
                return Value(-1, None, 0, [])
            return Value(self._constant(expr), None, expr=expr)
        if issubclass(kind, relax.Tuple):
            fields = [self._value(field, "") for field in expr.fields[:]]
            if var == "" or self.rule or self.site >= 0:
                return Value(-1, None, 0, fields)
            node = self._node("tuple", var.name)
            for slot, field in enumerate(fields):
                self._feed(field, node, slot)
            return Value(node, None, 0, fields)
        if issubclass(kind, relax.TupleGetItem):
            return self._element(expr, var)
        if issubclass(kind, relax.If):
            return self._if(expr, var)
        if issubclass(kind, relax.Function):
            return self._local(expr, var)
        if issubclass(kind, relax.SeqExpr):
            return self._body(expr)
        if issubclass(kind, relax.ShapeExpr):
            if var == "":
                return Value(-1, None, 0, [])
            return Value(self._node("shape", var.name, type_text(expr.ty)), None)
        if issubclass(kind, GlobalVar):
            return Value(self._node("other", expr.name_hint, callee=expr.name_hint), None)
        if var == "":
            return Value(-1, None, 0, [])  # a number, string or dtype written in place
        return Value(self._node("prim", var.name), None)

    def _constant(self, expr: Any) -> int:
        key = (self.parent, expr)
        node = self.constants.get(key)
        if node is None:
            type_ = type_text(expr.ty)
            label = "const"
            if type_.endswith("[]"):
                with contextlib.suppress(ValueError):  # a vector type has no one value
                    label = str(tensor_of(expr).numpy().item())
            node = self.constants[key] = self._node("const", label, type_)
        return int(node)

    def _element(self, expr: Any, var: Any) -> Value:
        whole = self._value(expr.tuple_value, "")
        index = int(expr.index)
        field = whole.fields[index] if whole.fields is not None else None
        if whole.node < 0 and field is not None:
            return field  # the results of a function drawn in place
        node = self._node("get", getattr(var, "name", f"[{index}]"))
        self.edges.append(Edge(whole.node, node, 0, index))
        if field is None:
            return Value(node, whole.origin)
        return Value(node, field.origin, 0, field.fields)

    def _cast(self, binding: Any) -> Value:
        source = self._value(binding.value, "")
        node = self._node("cast", binding.var.name, type_text(binding.ty))
        self._feed(source, node)
        return Value(node, source.origin, 0, source.fields)

    def _if(self, expr: Any, var: Any) -> Value:
        node = self._node("if", getattr(var, "name", "if"))
        self.r.ifs.append(node)
        condition = self._value(expr.cond, "")
        self._feed(condition, node, 0)
        inputs = [leaf.origin for leaf in condition.leaves()]
        outer = self.parent
        for slot, (label, branch) in enumerate(
            (("then", expr.true_branch), ("else", expr.false_branch)), start=1
        ):
            self.parent = outer
            self.parent = self._node("branch", label)
            self.nodes[self.parent].owner = node
            result = self._body(branch)
            self.parent = outer
            for leaf in result.leaves():
                if leaf.node >= 0:
                    self.edges.append(Edge(leaf.node, node, slot, leaf.out))
                inputs.append(leaf.origin)
        self.r.inputs[node] = inputs
        return Value(node, node)

    def _local(self, function: Any, var: Any) -> Value:
        if attribute(function, "Composite"):
            self.locals[var] = function
            return Value(-1, None, 0, [])  # drawn where it is called
        outer = self.parent
        box = self.parent = self._node("function", getattr(var, "name", "function"))
        if var != "":
            self.env[var] = Value(box, None)
        for param in function.params:
            self._param(param)
        result = self._body(function.body)
        self._feed(result, self._node("output", "result"))
        self.parent = outer
        self.r.results += [leaf.origin for leaf in result.leaves()]
        return Value(box, None)

    # -- calls

    def _call(self, call: Any, var: Any) -> Value:
        op = call.op
        kind = type(op)
        if kind is Op:
            name = op.name
            if name in CALL_INTO:
                arguments = call.args[1]
                args = arguments.fields[:] if isinstance(arguments, relax.Tuple) else [arguments]
                args += call.args[2:]
                target = call.args[0]
                callee = getattr(target, "name_hint", None) or getattr(target, "global_symbol", "")
                return self._operator(call, var, "op", args, plain(callee))
            return self._operator(call, var, "op", call.args[:], "")
        if kind is GlobalVar:
            name = plain(op.name_hint)
            if name in self.boxed:
                function = self.functions[name]
                outside = self.outlined and not self.within
                if not (outside and attribute(function, "Codegen")):
                    return self._inline(function, call, name)
                value = self._operator(call, var, "call", call.args[:], name)
                self._outlined_site(call, name, function, value)
                return value
            return self._operator(call, var, "call", call.args[:], name)
        if issubclass(kind, relax.Function):
            return self._inline(op, call, self.home)
        if op in self.locals:
            return self._inline(self.locals[op], call, self.home)
        value = self._operator(
            call, var, "call", call.args[:], getattr(op, "name", None) or op.global_symbol
        )
        if issubclass(kind, relax.Var) and op in self.env:
            self._feed(self.env[op], value.node, len(call.args))
        return value

    def _operator(self, call: Any, var: Any, kind: str, args: Any, callee: str) -> Value:
        r = self.r
        label = plain(getattr(var, "name", ""))
        env = self.env
        values = [env.get(a) or self._value(a, "") for a in args]
        node = self._node(kind, label, "", callee)
        inputs: list[Origin] = []
        slot = 0
        for value in values:
            slot = self._feed(value, node, slot)
            if value.fields is None:
                inputs.append(value.origin)
            else:
                inputs += [leaf.origin for leaf in value.leaves()]
        r.calls[node] = call
        r.tags[node] = tag_of(call)
        r.variables[node] = label
        r.inputs[node] = inputs
        r.values[node] = values
        r.homes[node] = self.home
        r.blocks[node] = self.block
        if self.rule:
            r.composites[node] = self.rule
        if self.site >= 0:
            r.site_of[node] = self.site
            r.sites[self.site].nodes.append(node)
        return Value(node, node)

    def _inline(self, function: Any, call: Any, name: str) -> Value:
        """Read a composite or external function at one of its calls, inside a box."""
        arguments = [self._value(argument, "") for argument in call.args[:]]
        codegen, composite = attribute(function, "Codegen"), attribute(function, "Composite")
        outer = self.parent, self.home, self.rule, self.site
        self.drawn.add(name)
        self.home = name
        self.inlined += 1
        if self.inlined > MOST_INLINED:
            raise ModuleError(
                f"The module calls composite and external functions {MOST_INLINED} times and more, "
                "counted as they unfold: each calls the one before several times, or itself.",
                "Inline such functions, or take their attributes Composite and Codegen away, "
                "before recording.",
            )
        if codegen and self.site < 0 and not self.within:
            self.parent = self._node("region", name, "", name)
            site = Site(name, plain(codegen), outer[1], self.parent, call)
            site.arguments = arguments
            self.site = len(self.r.sites)
            self.r.sites.append(site)
        if composite:
            self.rule = plain(composite)
            self.parent = self._node("composite", self.rule, "", name)
        for param, value in zip(function.params[:], arguments, strict=True):
            self.env[param] = value
        result = self._body(function.body)
        if self.site >= 0 and outer[3] < 0:
            self.r.sites[self.site].result = result
        self.parent, self.home, self.rule, self.site = outer
        if result.fields is not None:
            return Value(-1, None, 0, result.fields)
        return result

    def _outlined_site(self, call: Any, name: str, function: Any, value: Value) -> None:
        site = Site(name, plain(attribute(function, "Codegen")), self.home, value.node, call)
        self.r.sites.append(site)
