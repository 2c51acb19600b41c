"""The expressions of a Relay function in order, and the scope that each belongs to.

Relay writes a function as a graph: an expression that is used twice is one object with two users.
Where both branches of an If use it, it is computed before the If; so an expression belongs to
the innermost scope that holds all its users. TVM's ToANormalForm places it there too.

Nothing here recurses: a network is some hundred calls deep.
"""

from __future__ import annotations

import contextlib
from typing import Any

from tvm import relay
from tvm.ir import Op

from byocviz.flow.relay.compat import composite_of, items_of, key_of, plain, tag_of
from byocviz.flow.relay.types import Types

_LEAVES = (relay.Var, relay.Constant, relay.GlobalVar, relay.Constructor, Op)


class Item:
    """One expression of a body."""

    __slots__ = ("_tag", "_ty", "children", "expr", "key", "kind", "name", "op", "rule", "scope")

    def __init__(self, expr: Any, key: int) -> None:
        self.expr = expr
        self.key = key
        self.kind = type(expr)
        self.op: Any = None
        """The callee of a call."""
        self.name = ""
        """Of the operator that is called; "" where it is none."""
        self.rule = ""
        """Of the composite function literal that is called; "" where it is none."""
        self._tag = -2
        self._ty: Any = None
        self.children: list[Any] = []
        """Keys of the expressions that it uses, in order; a leaf (variable, constant, global
        variable, constructor, operator) is there itself. A call's callee that is no leaf comes
        after its arguments."""
        self.scope = 0

    # What is asked of TVM is kept: each question is a call through ctypes.

    @property
    def tag(self) -> int:
        """The number of a call."""
        if self._tag == -2:
            self._tag = tag_of(self.expr)
        return self._tag

    @property
    def ty(self) -> Any:
        """The expression's type."""
        if self._ty is None:
            self._ty = self.expr.checked_type
        return self._ty


class Scope:
    """Index 0 is the body itself; others are branches and local functions."""

    __slots__ = ("depth", "index", "owner", "parent", "slot")

    def __init__(self, index: int, parent: int, depth: int, owner: int, slot: int) -> None:
        self.index = index
        self.parent = parent
        self.depth = depth
        self.owner = owner
        """Key of the If, Match or Function that opens it."""
        self.slot = slot
        """Which branch or clause it is, from 1 on; 0 for a function's body."""


class Body:
    """A function's body, read once: ``items`` in the order in which they are computed."""

    def __init__(self, root: Any) -> None:
        self.items: dict[int, Item] = {}
        self.scopes = [Scope(0, -1, 0, -1, 0)]
        self.root: Any = None
        """Key of the result, or the leaf that is the result."""
        self.lets: dict[int, Any] = {}
        """By the key of a let-bound variable: the key (or leaf) of what it is bound to."""
        self._order(root)
        self._place()

    def _order(self, root: Any) -> None:
        if isinstance(root, _LEAVES):
            self.root = root
            return
        self.root = key_of(root)
        seen: dict[int, Item] = {}
        stack: list[tuple[Item, list[Any]]] = []

        def enter(expr: Any) -> Any:
            if isinstance(expr, _LEAVES):
                return expr
            key = key_of(expr)
            if key not in seen:
                item = seen[key] = Item(expr, key)
                pending = children_of(item)
                if item.kind is relay.Let:
                    self.lets[key_of(expr.var)] = pending[0]
                pending.reverse()
                stack.append((item, pending))
            return key

        enter(root)
        while stack:
            item, pending = stack[-1]
            if pending:
                item.children.append(enter(pending.pop()))
            else:
                stack.pop()
                self.items[item.key] = item
        self.lets = {
            var: bound if isinstance(bound, _LEAVES) else key_of(bound)
            for var, bound in self.lets.items()
        }

    def _place(self) -> None:
        inner: dict[tuple[int, int], int] = {}
        placed: set[int] = set()
        for item in reversed(self.items.values()):
            first = _opens_at(item)
            for slot, child in enumerate(item.children):
                if not isinstance(child, int):
                    continue
                scope = item.scope
                if first is not None and slot >= first:
                    scope = inner.get((item.key, slot), -1)
                    if scope < 0:
                        scope = inner[item.key, slot] = len(self.scopes)
                        outer = self.scopes[item.scope]
                        # A function's body is slot 0 of it, a branch slot 1 or more of an If.
                        self.scopes.append(
                            Scope(scope, outer.index, outer.depth + 1, item.key, slot)
                        )
                used = self.items[child]
                used.scope = self._common(used.scope, scope) if child in placed else scope
                placed.add(child)

    def _common(self, a: int, b: int) -> int:
        one, other = self.scopes[a], self.scopes[b]
        while one.index != other.index:
            if one.depth >= other.depth:
                one = self.scopes[one.parent]
            else:
                other = self.scopes[other.parent]
        return one.index

    def inner(self, item: Item) -> dict[int, int]:
        """The scopes that an item opens, by slot; one whose body is a leaf has none."""
        return {s.slot: s.index for s in self.scopes[1:] if s.owner == item.key}


class Param:
    """A parameter of a function."""

    __slots__ = ("_name", "_ty", "key", "var")

    def __init__(self, var: Any) -> None:
        self.var = var
        self.key = key_of(var)
        self._name: str | None = None
        self._ty: Any = None

    @property
    def name(self) -> str:
        if self._name is None:
            self._name = plain(self.var.name_hint)
        return self._name

    @property
    def ty(self) -> Any:
        if self._ty is None:
            self._ty = self.var.checked_type
        return self._ty


class Bodies:
    """Functions' bodies and parameters, each read once however often it is asked for: passes
    hand on what they do not change."""

    def __init__(self) -> None:
        self._bodies: dict[int, tuple[Any, Body]] = {}
        self._params: dict[int, tuple[Any, list[Param]]] = {}
        self._constants: dict[int, tuple[Any, Any, str, str]] = {}
        self.types = Types()

    def of(self, function: Any) -> Body:
        key = key_of(function)
        found = self._bodies.get(key)
        if found is None:
            # The function is held on to: another may not get its address.
            found = self._bodies[key] = function, Body(function.body)
        return found[1]

    def constant(self, expr: Any) -> tuple[Any, str, str]:
        """A constant's type, the type's text, and its label: the value of a scalar."""
        key = key_of(expr)
        found = self._constants.get(key)
        if found is None:
            ty = expr.checked_type
            text, label = self.types.text(ty), "const"
            if text.endswith("[]"):
                with contextlib.suppress(ValueError, TypeError):
                    label = str(expr.data.numpy().item())
            found = self._constants[key] = expr, ty, text, label
        return found[1:]

    def params(self, function: Any) -> list[Param]:
        key = key_of(function)
        found = self._params.get(key)
        if found is None:
            found = self._params[key] = (
                function,
                [Param(param) for param in items_of(function.params)],
            )
        return found[1]


def with_parts(item: Item, parts: list[Any]) -> Any:
    """An expression that is no call, made anew of its parts; see `children_of` for their order."""
    expr, kind = item.expr, item.kind
    if kind is relay.Tuple:
        return relay.Tuple(parts, expr.span)
    if kind is relay.TupleGetItem:
        return relay.TupleGetItem(parts[0], expr.index, expr.span)
    if kind is relay.If:
        return relay.If(*parts, expr.span)
    if kind is relay.Let:
        return relay.Let(expr.var, *parts, expr.span)
    if kind is relay.Function:
        return relay.function.FunctionWithFields(expr, body=parts[0])
    if kind is relay.Match:
        clauses = [
            relay.Clause(clause.lhs, part)
            for clause, part in zip(expr.clauses, parts[1:], strict=True)
        ]
        return relay.Match(parts[0], clauses, expr.complete)
    return kind(*parts, expr.span)


def _opens_at(item: Item) -> int | None:
    """The first of its children that stands in a scope of its own; None where none does."""
    if item.kind is relay.If or item.kind is relay.Match:
        return 1
    return 0 if item.kind is relay.Function else None


def children_of(item: Item) -> list[Any]:
    """The expressions that an item uses; the order is that of `Item.children`."""
    expr, kind = item.expr, item.kind
    if kind is relay.Call:
        item.op = op = expr.op
        found = items_of(expr.args)
        if isinstance(op, Op):
            item.name = plain(op.name)
        elif isinstance(op, relay.Function):
            item.rule = composite_of(op)
            if not item.rule:
                found.append(op)
        elif not isinstance(op, _LEAVES):
            found.append(op)
        return found
    if kind is relay.Tuple:
        return items_of(expr.fields)
    if kind is relay.TupleGetItem:
        return [expr.tuple_value]
    if kind is relay.If:
        return [expr.cond, expr.true_branch, expr.false_branch]
    if kind is relay.Let:
        return [expr.value, expr.body]
    if kind is relay.Function:
        return [expr.body]
    if kind is relay.Match:
        return [expr.data, *(clause.rhs for clause in expr.clauses)]
    if kind is relay.RefCreate:
        return [expr.value]
    if kind is relay.RefRead:
        return [expr.ref]
    if kind is relay.RefWrite:
        return [expr.ref, expr.value]
    return []


def has_callee(item: Item) -> bool:
    """Whether the last child of a call is what it calls."""
    return item.kind is relay.Call and not item.rule and not isinstance(item.op, _LEAVES)
