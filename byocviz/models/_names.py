"""Which ONNX node gave rise to which Relax call, kept as the call's span.

TVM's importer leaves no spans. It does keep, for every tensor of the ONNX graph, the expression
that stands for it. From there: what a node's outputs lead back to, up to the outputs of other
nodes, is what the importer emitted for that node. Only spans are added: the module stays
structurally equal to what the importer made.
"""

from __future__ import annotations

from typing import Any


def make_importer(base: type) -> type:
    """A subclass of TVM's ``ONNXGraphImporter`` that remembers where it is and what it made.

    ``at`` is the node being converted; ``inner`` lists (expression, name) of nodes in branches.
    """

    class NamingImporter(base):  # type: ignore[misc]
        at: Any = None
        depth = 0

        def _parse_value_proto(self, value_proto: Any) -> Any:
            if hasattr(value_proto, "op_type"):
                self.at = value_proto
            return super()._parse_value_proto(value_proto)

        def _convert_subgraph(self, bb: Any, graph: Any) -> Any:
            self.depth += 1
            outer = self.at
            result = super()._convert_subgraph(bb, graph)
            self.depth -= 1
            self.at = outer
            return result

        def _convert_operator(self, op_name: str, inputs: Any, attrs: Any, opset: Any) -> Any:
            self.op = op_name
            result = super()._convert_operator(op_name, inputs, attrs, opset)
            if self.depth:
                name = attrs.get("tvm_custom", {}).get("name", "")
                self.__dict__.setdefault("inner", []).append((result, name))
            return result

    return NamingImporter


def node_name(node: Any) -> str:
    """A node's name, or, where it has none, that of its first output."""
    return str(node.name or next((out for out in node.output if out), node.op_type))


def attach_names(mod: Any, graph: Any, importer: Any, entry: str = "main") -> Any:
    """``mod`` with a span on every call of ``entry`` whose ONNX node is known.

    Returns ``mod`` unchanged where TVM's internals are others than expected.
    """
    try:
        made = importer._nodes
        anchors: list[tuple[Any, str]] = []
        for node in graph.node:
            anchors.extend((made[out], node_name(node)) for out in node.output if out in made)
        # Branches after the main graph: what an outer node made is the outer node's.
        anchors.extend((e, n) for e, n in importer.__dict__.get("inner", []) if n)
        return _Attach(mod, entry, anchors).module()
    except Exception:  # names are a courtesy: never a reason to refuse a model
        return mod


class _Attach:
    def __init__(self, mod: Any, entry: str, anchors: list[tuple[Any, str]]) -> None:
        import tvm
        from tvm import relax

        self.tvm, self.relax = tvm, relax
        self.mod, self.entry = mod, entry
        self.function = mod[entry]
        self.bindings: list[Any] = []
        self.by_var: dict[int, int] = {}
        self.by_value: dict[int, int] = {}
        self._collect(self.function.body)
        self.anchors = anchors
        self.owner: dict[int, str] = {}
        self.sources: dict[str, Any] = {}

    def _collect(self, seq: Any) -> None:
        for block in seq.blocks:
            for binding in block.bindings:
                value = getattr(binding, "value", None)
                if isinstance(value, self.relax.If):
                    self._collect(value.true_branch)
                    self._collect(value.false_branch)
                index = len(self.bindings)
                self.bindings.append(binding)
                self.by_var[_key(binding.var)] = index
                if value is not None and not isinstance(value, self.relax.Var):
                    self.by_value.setdefault(_key(value), index)

    def _index(self, expr: Any) -> list[int]:
        """Bindings that an expression of the importer's stands for."""
        if isinstance(expr, self.relax.Tuple):
            return [i for field in expr.fields for i in self._index(field)]
        if not hasattr(expr, "__chandle__"):
            return []
        key = _key(expr)
        found = self.by_var.get(key, self.by_value.get(key))
        if found is not None:
            return [found]
        if isinstance(expr, self.relax.TupleGetItem):
            return self._index(expr.tuple_value)
        return []

    def _own(self) -> None:
        starts = []
        for expr, name in self.anchors:
            for index in self._index(expr):
                if index not in self.owner:
                    self.owner[index] = name
                    starts.append(index)
        for start in starts:
            name = self.owner[start]
            todo = [start]
            while todo:
                for used in self._uses(self.bindings[todo.pop()]):
                    if used not in self.owner:
                        self.owner[used] = name
                        todo.append(used)

    def _uses(self, binding: Any) -> list[int]:
        value = getattr(binding, "value", None)
        found: list[int] = []
        if isinstance(value, self.relax.If):
            for branch in (value.true_branch, value.false_branch):
                for block in branch.blocks:
                    found.extend(self.by_var[_key(b.var)] for b in block.bindings)
            return found
        todo = [value]
        while todo:
            expr = todo.pop()
            if isinstance(expr, self.relax.Call):
                todo.extend(expr.args)
            elif isinstance(expr, self.relax.Tuple):
                todo.extend(expr.fields)
            elif isinstance(expr, self.relax.TupleGetItem):
                todo.append(expr.tuple_value)
            elif isinstance(expr, self.relax.Var) and _key(expr) in self.by_var:
                found.append(self.by_var[_key(expr)])
        return found

    def module(self) -> Any:
        self._own()
        f = self.function
        body = self._sequence(f.body)
        new = self.relax.Function(f.params, body, f.ret_ty, f.is_pure, f.attrs, f.span)
        functions = {
            v: (new if v.name_hint == self.entry else g) for v, g in self.mod.functions.items()
        }
        mod = self.tvm.IRModule(functions, attrs=self.mod.attrs, global_infos=self.mod.global_infos)
        mod = self.relax.transform.Normalize()(mod)
        # The promise is that nothing but spans changed; where it cannot be kept, no names.
        self.tvm.ir.assert_structural_equal(mod, self.mod, map_free_vars=True)
        return mod

    def _sequence(self, seq: Any) -> Any:
        relax = self.relax
        blocks = []
        for block in seq.blocks:
            bindings = []
            for binding in block.bindings:
                value = getattr(binding, "value", None)
                name = self.owner.get(self.by_var[_key(binding.var)])
                if isinstance(value, relax.Call) and name is not None and value.span is None:
                    value = relax.Call(
                        value.op,
                        value.args,
                        value.attrs,
                        value.ty_args,
                        self._span(name),
                        ret_ty=value.ty,
                    )
                    bindings.append(relax.VarBinding(binding.var, value, binding.span))
                elif isinstance(value, relax.If):
                    value = relax.If(
                        value.cond,
                        self._sequence(value.true_branch),
                        self._sequence(value.false_branch),
                        value.span,
                    )
                    bindings.append(relax.VarBinding(binding.var, value, binding.span))
                else:
                    bindings.append(binding)
            blocks.append(type(block)(bindings, block.span))
        return relax.SeqExpr(blocks, seq.body, seq.span)

    def _span(self, name: str) -> Any:
        if name not in self.sources:
            source = self.tvm.ir.SourceName(name)
            self.sources[name] = self.tvm.ir.Span(source, 0, 0, 0, 0)
        return self.sources[name]


def _key(obj: Any) -> int:
    # TVM's ``==`` on expressions builds an expression; the handle is what tells them apart.
    return int(obj.__chandle__())
