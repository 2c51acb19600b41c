"""Marks every call of a Relay module with a number of its own.

The number lies in the call's span, which TVM's passes carry along: the module means the same.
"""

from __future__ import annotations

from typing import Any

import tvm
from tvm import relay
from tvm.ir import Span

from byocviz.flow.relay.compat import (
    SOURCE,
    functions_of,
    plain,
    with_functions,
)
from byocviz.flow.relay.scopes import Bodies, Item, has_callee, with_parts


class Tagger:
    """Hands out numbers; those already given stay.

    ``sources`` keeps what a call's span said before it was tagged, by number: the name that the
    importer gave it.
    """

    def __init__(self, bodies: Bodies | None = None) -> None:
        self.next = 0
        self.bodies = bodies or Bodies()
        self.sources: dict[int, str] = {}
        self._seen: set[int] = set()
        self._anew = False

    def new(self) -> int:
        self.next += 1
        return self.next - 1

    def tag(self, module: tvm.IRModule, *, entry: str = "main", anew: bool = False) -> tvm.IRModule:
        """The same module with each untagged call tagged; itself where all are.

        Its types are to be inferred before, and are after.

        A number that stands twice (a pass copied a call) is given anew at its second place.
        Numbers run from the entry function on, then by function name. ``anew`` disregards the
        numbers that are there: another recording's.
        """
        self._seen.clear()
        self._anew = anew
        functions = functions_of(module)
        changed = {}
        for name in sorted(functions, key=lambda n: (n != entry, n)):
            new = self._function(functions[name])
            if new is not functions[name]:
                changed[name] = new
        return with_functions(module, changed) if changed else module

    def _function(self, function: Any) -> Any:
        """The function with its calls tagged; itself where all are."""
        body = self.bodies.of(function)
        made: dict[int, Any] = {}
        changed: set[int] = set()
        for item in body.items.values():
            new = self._item(item, made, changed)
            if new is not item.expr:
                changed.add(item.key)
            made[item.key] = new
        if not isinstance(body.root, int) or body.root not in changed:
            return function
        return relay.function.FunctionWithFields(function, body=made[body.root])

    def _item(self, item: Item, made: dict[int, Any], changed: set[int]) -> Any:
        below = any(isinstance(child, int) and child in changed for child in item.children)
        if item.kind is relay.Call:
            return self._call(item, made, below)
        if not below:
            return item.expr
        parts = [made[child] if isinstance(child, int) else child for child in item.children]
        return with_parts(item, parts)

    def _call(self, item: Item, made: dict[int, Any], below: bool) -> Any:
        call, op = item.expr, item.op
        new_op = op
        count = len(item.children)
        if item.rule:
            new_op = self._function(op)  # its calls are tagged too, apart from the body's
        elif has_callee(item):
            count -= 1
            callee = item.children[count]
            new_op = made[callee] if isinstance(callee, int) else callee
        span = self._span(item)
        if span is None and not below and new_op is op:
            return call
        parts = [
            made[child] if isinstance(child, int) else child for child in item.children[:count]
        ]
        return relay.Call(new_op, parts, call.attrs, call.type_args, span or call.span)

    def _span(self, item: Item) -> Any:
        """A new span for a call; None where it keeps its own."""
        call, known = item.expr, item.tag
        if known >= 0 and known not in self._seen and not self._anew:
            self._seen.add(known)
            return None
        source = ""
        if known < 0 and isinstance(call.span, Span):
            source = plain(call.span.source_name.name)
        number = self.new()
        self._seen.add(number)
        if source:
            self.sources[number] = source
        return Span(SOURCE, number, number, 0, 0)
