"""Marks every call of a Relax module with a number of its own.

The number lies in the call's span, which TVM's passes carry along and its printer does not show:
the module means the same, prints the same and is partitioned the same as before.
"""

from __future__ import annotations

from typing import Any

import tvm
from tvm import relax
from tvm.ir import SourceName, Span

from byocviz.flow.relax.compat import plain
from byocviz.flow.relax.surgery import rebind, with_body

TAG = "byocviz"
_SOURCE = SourceName(TAG)


def tag_of(call: Any) -> int:
    """The number of a call, or -1 where it has none."""
    span = call.span
    if span is None or not isinstance(span, Span) or span.source_name.name != TAG:
        return -1
    return int(span.line)


class Tagger:
    """Hands out numbers; those already given stay.

    ``sources`` keeps what a call's span said before it was tagged, by number: the name that the
    importer gave it.
    """

    def __init__(self) -> None:
        self.next = 0
        self.sources: dict[int, str] = {}
        self._seen: set[int] = set()
        self._anew = False

    def new(self) -> int:
        self.next += 1
        return self.next - 1

    def tag(self, module: tvm.IRModule, *, entry: str = "main", anew: bool = False) -> tvm.IRModule:
        """The same module with each untagged call tagged; itself where none was untagged.

        A number that stands twice (a pass copied a call) is given anew at its second place.
        Numbers run from the entry function on, then by function name. ``anew`` disregards the
        numbers that are there: another recording's.
        """
        self._seen.clear()
        self._anew = anew
        changed = False
        functions: dict[Any, Any] = {}
        in_order = sorted(
            module.functions.items(), key=lambda f: (f[0].name_hint != entry, f[0].name_hint)
        )
        for name, function in in_order:
            new = self._function(function) if isinstance(function, relax.Function) else function
            changed = changed or new is not function
            functions[name] = new
        if not changed:
            return module
        tagged = tvm.IRModule(functions, attrs=module.attrs, global_infos=module.global_infos)
        # Rebuilt sequences lack their types; Normalize fills them in and changes nothing else.
        return relax.transform.Normalize()(tagged)

    # Each method returns the very object that it was given where nothing below it changed.

    def _function(self, function: Any) -> Any:
        body = function.body
        new = self._expression(body)
        if new is body:
            return function
        return with_body(function, new)

    def _expression(self, expr: Any) -> Any:
        if isinstance(expr, relax.Call):
            return self._call(expr)
        if isinstance(expr, relax.SeqExpr):
            return self._sequence(expr)
        if isinstance(expr, relax.If):
            branches = expr.true_branch, expr.false_branch
            then, other = (self._expression(branch) for branch in branches)
            if then is branches[0] and other is branches[1]:
                return expr
            return relax.If(expr.cond, then, other, expr.span)
        if isinstance(expr, relax.Function):
            return self._function(expr)
        return expr

    def _call(self, call: Any) -> Any:
        known = tag_of(call)
        if known >= 0 and known not in self._seen and not self._anew:
            self._seen.add(known)
            return call
        source = ""
        if known < 0 and isinstance(call.span, Span):
            source = plain(call.span.source_name.name)
        number = self.new()
        self._seen.add(number)
        if source:
            self.sources[number] = source
        span = Span(_SOURCE, number, number, 0, 0)
        return relax.Call(call.op, call.args, call.attrs, call.ty_args, span, ret_ty=call.ty)

    def _sequence(self, seq: Any) -> Any:
        changed = False
        blocks = []
        for block in seq.blocks[:]:
            bindings = []
            for binding in block.bindings[:]:
                value = binding.value
                new = self._expression(value)
                if new is value:
                    bindings.append(binding)
                else:
                    changed = True
                    bindings.append(rebind(binding, new))
            blocks.append(type(block)(bindings, block.span))
        result = seq.body
        body = self._expression(result)
        if not changed and body is result:
            return seq
        return relax.SeqExpr(blocks, body, seq.span)
