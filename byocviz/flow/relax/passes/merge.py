"""MergeCompositeFunctions on every function of a module.

TVM's pass reads the function named ``main`` alone and stops at a branch or a local function
(TVM 0.27: "Variable gv could not be found in any group", "Do not have a default for ...If").
So a module that holds more than a plain ``main`` is taken apart: each function without branches,
and each dataflow block of one with branches, is given to the pass as the ``main`` of a module of
its own, and what comes back is put in its place.
"""

from __future__ import annotations

from typing import Any

import tvm
from tvm import relax
from tvm.ir import GlobalVar

from byocviz.flow.relax.compat import attribute
from byocviz.flow.relax.passes.inline import substitute
from byocviz.flow.relax.passes.standins import StandIns, stub, typed
from byocviz.flow.relax.surgery import map_blocks, rebind, with_body

CALL = "from tvm import relax\nmod = relax.transform.MergeCompositeFunctions()(mod)"
CALL_IN_PARTS = (
    "from byocviz.flow.relax.passes import merge_in_parts\n"
    "mod = merge_in_parts(mod)  # relax.transform.MergeCompositeFunctions on each block"
)


def merge(module: tvm.IRModule) -> tuple[tvm.IRModule, str]:
    """The module with the composite functions merged into external ones, and the call's text."""
    if is_plain(module):
        try:
            return relax.transform.MergeCompositeFunctions()(module), CALL
        except Exception:
            # It has no case for some expressions; parts hold stand-ins for those. Where that
            # fails too, TVM's own error is the one to tell of.
            try:
                return merge_in_parts(module), CALL_IN_PARTS
            except Exception:
                pass
            raise
    return merge_in_parts(module), CALL_IN_PARTS


def is_plain(module: tvm.IRModule) -> bool:
    """Whether TVM's pass takes the module whole: a straight ``main`` and nothing beside it."""
    own = [(v.name_hint, f) for v, f in module.functions.items() if _is_own(f)]
    return [name for name, _ in own] == ["main"] and not _is_compound(own[0][1])


def merge_in_parts(module: tvm.IRModule) -> tvm.IRModule:
    """`relax.transform.MergeCompositeFunctions` on each function and each branch's blocks."""
    return _Parts(module).run()


def _is_own(function: Any) -> bool:
    return (
        isinstance(function, relax.Function)
        and not attribute(function, "Composite")
        and not attribute(function, "Codegen")
    )


def _is_compound(function: Any) -> bool:
    """Whether it holds a branch or a local function."""
    return any(
        isinstance(binding.value, (relax.If, relax.Function))
        for block in function.body.blocks
        for binding in block.bindings
    )


def _calls_composite(expr: Any, module: tvm.IRModule) -> bool:
    return (
        isinstance(expr, relax.Call)
        and isinstance(expr.op, GlobalVar)
        and bool(attribute(module[expr.op], "Composite"))
    )


def _has_composites(function: Any, module: tvm.IRModule) -> bool:
    found = False

    def visit(expr: Any) -> None:
        nonlocal found
        found = found or _calls_composite(expr, module)

    relax.analysis.post_order_visit(function, visit)
    return found


class _Parts:
    def __init__(self, module: tvm.IRModule) -> None:
        self.module = module
        self.names = {var.name_hint for var in module.get_global_vars()}
        self.external: dict[Any, Any] = {}

    def run(self) -> tvm.IRModule:
        merged: dict[Any, Any] = {}
        for var, function in self.module.functions.items():
            if not isinstance(function, relax.Function) or attribute(function, "Codegen"):
                merged[var] = function
            elif not attribute(function, "Composite"):
                merged[var] = self._function(function)
        merged.update(self.external)
        module = tvm.IRModule(
            merged, attrs=self.module.attrs, global_infos=self.module.global_infos
        )
        return relax.transform.Normalize()(module)

    def _function(self, function: Any) -> Any:
        if not _has_composites(function, self.module):
            return function
        if _is_compound(function):
            return map_blocks(function, self._block)
        body = self._merge(function.params, function.body, function.ret_ty, function.is_pure)
        return with_body(function, body)

    def _block(self, block: Any) -> list[Any]:
        """The block merged by itself; those of branches and local functions in it are already."""
        bindings = block.bindings[:]
        if not isinstance(block, relax.DataflowBlock) or not any(
            _calls_composite(b.value, self.module) for b in bindings
        ):
            return [block]
        outputs = [b.var for b in bindings if not isinstance(b.var, relax.DataflowVar)]
        result = relax.Tuple(outputs)
        seq = relax.SeqExpr([block], result)
        inputs = list(relax.analysis.free_vars(seq))
        types = relax.TupleType([var.ty for var in outputs])
        merged = self._merge(inputs, seq, types, True)
        fields = merged.body
        blocks = list(merged.blocks)
        if isinstance(fields, relax.Var):  # the tuple was given a name, in a block of its own
            last = blocks[-1].bindings[-1]
            fields = last.value
            rest = list(blocks[-1].bindings)[:-1]
            blocks = blocks[:-1] + ([type(blocks[-1])(rest)] if rest else [])
        # What the rest of the function reads keeps its variable.
        renamed = {
            new: old for new, old in zip(fields.fields, outputs, strict=True) if new is not old
        }
        return [
            type(b)(
                [
                    rebind(x, substitute(x.value, renamed), renamed.get(x.var, x.var))
                    for x in b.bindings
                ]
            )
            for b in blocks
        ]

    def _merge(self, params: Any, body: Any, ret_ty: Any, pure: bool) -> Any:
        """Merge one body as the ``main`` of a module of its own."""
        main = GlobalVar("main")
        function = relax.Function(params, body, ret_ty, pure).with_attr("global_symbol", "main")
        functions: dict[Any, Any] = {}
        back: dict[Any, Any] = {}
        for var, other in self.module.functions.items():
            if var.name_hint != "main":
                functions[var] = stub(other) if _is_own(other) else other
                continue
            # The module's own main, which the part may call, goes by another name meanwhile.
            stand_in = stub(other)
            aside = typed(GlobalVar(self._unused("main_of_module")), stand_in)
            functions[aside] = stand_in
            function = with_body(function, substitute(function.body, {var: aside}))
            back[aside] = var
        away = StandIns(self._unused)
        functions[main] = away.put(function)
        functions.update(away.functions)
        part = relax.transform.Normalize()(tvm.IRModule(functions))
        part = relax.transform.MergeCompositeFunctions()(part)
        for var, function in part.functions.items():
            if attribute(function, "Codegen") and var not in self.module.functions:
                name = self._unused(var.name_hint)
                self.names.add(name)
                if name != var.name_hint:
                    function = function.with_attr("global_symbol", name)
                new = var
                if name != var.name_hint:
                    new = typed(GlobalVar(name), function)
                    back[var] = new
                self.external[new] = function
        return substitute(away.take(part["main"].body), back)

    def _unused(self, name: str) -> str:
        candidate, count = name, 0
        while candidate in self.names:
            count += 1
            candidate = f"{name}_{count}"
        return candidate
