"""Rules as plain Python trees: what a `DFPattern` wants, readable without further FFI calls.

A rule is a ``relax.transform.FusionPattern``. `Book` indexes a list of them by the operators that
their patterns name, so that an operator meets only the rules that could ever take it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import tvm
from tvm.relax.dpl import pattern as dpl

# TypePattern was StructInfoPattern before TVM 0.25; whichever is there.
_TYPE = getattr(dpl, "TypePattern", None) or dpl.StructInfoPattern

# Patterns that constrain the very expression that another pattern matches, by field.
_SAME_EXPRESSION: dict[Any, tuple[str, str]] = {
    dpl.AttrPattern: ("attr", "pattern"),
    dpl.DataTypePattern: ("dtype", "pattern"),
    dpl.ShapePattern: ("shape", "pattern"),
    _TYPE: ("type", "pattern"),
    dpl.NotPattern: ("not", "reject"),
}
_LEAVES: dict[Any, str] = {
    dpl.WildcardPattern: "wildcard",
    dpl.ConstantPattern: "constant",
    dpl.DataflowVarPattern: "dataflow_var",
    dpl.VarPattern: "var",
    dpl.GlobalVarPattern: "global_var",
    dpl.ExternFuncPattern: "extern",
    dpl.PrimArrPattern: "prim_array",
}


FUNCTION = "<call>"
"""Stands for an operator's name where a function is called: of the module, external or local."""


def _called(callee: Pat) -> str:
    if callee.kind in ("extern", "global_var", "var", "dataflow_var", "function"):
        return FUNCTION
    return callee.op if callee.kind == "op" else ""


class Pat:
    """One node of a pattern.

    ``kind`` is ``call``, ``op``, ``expr``, ``wildcard``, ``constant``, ``var``, ``dataflow_var``,
    ``global_var``, ``extern``, ``prim_array``, ``tuple``, ``unordered_tuple``, ``get``, ``attr``,
    ``dtype``, ``shape``, ``type``, ``not``, ``and``, ``or``, ``function`` or ``other``.
    ``args`` are the parts: a call's argument patterns, a tuple's fields, what a constraint is on.
    """

    __slots__ = ("args", "callee", "depth", "key", "kind", "names", "op", "pattern", "size")

    def __init__(self, pattern: Any, kind: str, args: list[Pat], callee: Pat | None = None) -> None:
        self.pattern = pattern
        self.kind = kind
        self.args = args
        self.callee = callee
        self.key = hash(pattern)
        self.op = ""
        """Of a call, the operator that it wants, `FUNCTION` where it wants a call of a function,
        "" where it takes several or any; of an ``op``, its name."""
        if kind == "op":
            self.op = str(pattern.expr.name)
        elif callee is not None:
            self.op = _called(callee)
        parts = args if callee is None else [callee, *args]
        self.names: frozenset[str] = frozenset().union(*(p.names for p in parts))
        if kind == "op":
            self.names |= {self.op}
        self.depth: int = max((p.depth for p in parts), default=0) + (kind not in _CONSTRAINTS)
        inside = [p.size for p in args]
        """How many agreements a whole match counts; see `matcher.Outcome`."""
        self.size: int = (min(inside) if kind == "or" else sum(inside)) + (kind in _COUNTED)

    def open_ended(self) -> bool:
        """Whether a call pattern leaves further arguments free.

        TVM does not show the field to Python; its printer does, as a last ``...``.
        """
        return str(self.pattern).endswith("...)")

    def say(self) -> str:
        """What it wants, in few words: ``relax.add``, ``a constant``, ``a tuple of 2``."""
        kind = self.kind
        if kind == "call":
            if self.op and self.op != FUNCTION:
                return self.op
            return f"a call of {self.callee.say()}" if self.callee else "a call"
        if kind == "op":
            return self.op
        if kind in ("attr", "dtype", "shape", "type"):
            return f"{self.args[0].say()} with {self.detail()}"
        if kind == "or":
            return f"{self.args[0].say()} or {self.args[1].say()}"
        if kind == "and":
            return f"{self.args[0].say()} and {self.args[1].say()}"
        if kind == "not":
            return f"anything but {self.args[0].say()}"
        if kind in ("tuple", "unordered_tuple"):
            return f"a tuple of {len(self.args)}"
        if kind == "get":
            index = int(self.pattern.index)
            return f"element {index} of a tuple" if index >= 0 else "an element of a tuple"
        if kind in ("var", "dataflow_var"):
            what = "a variable" if kind == "var" else "a variable of a dataflow block"
            return f"{what} {self.pattern.name}".rstrip()
        if kind == "extern":
            return f"the external function {self.pattern.global_symbol}".rstrip()
        if kind == "global_var":
            return f"the function {self.label()}" if self.label() else "a function of the module"
        if kind == "prim_array":
            return f"the shape {shape_text(self.pattern.fields)}"
        if kind == "expr":
            return f"exactly {str(self.pattern.expr)[:60]}"
        return {"wildcard": "anything", "constant": "a constant", "function": "a function"}.get(
            kind, "something else"
        )

    def label(self) -> str:
        """The name in a ``global_var`` pattern, which TVM shows to its printer only."""
        return str(self.pattern).partition("(")[2].rstrip(")")

    def detail(self) -> str:
        """What a constraint asks for: ``groups 1``, ``dtype float32``."""
        if self.kind == "attr":
            return ", ".join(f"{k} {shown(v)}" for k, v in dict(self.pattern.attrs).items())
        if self.kind == "dtype":
            return f"dtype {self.pattern.dtype}"
        if self.kind == "shape":
            return f"shape {shape_text(self.pattern.shape)}"
        return f"type {str(self.pattern.ty)[:80]}"


_CONSTRAINTS = frozenset({"attr", "dtype", "shape", "type", "not", "and", "or"})
_COUNTED = frozenset(
    {"call", "constant", "prim_array", "tuple", "unordered_tuple", "get", "attr", "dtype", "shape",
     "type", "expr", "var", "dataflow_var", "global_var", "extern", "function"}
)  # fmt: skip


def tree(pattern: Any, seen: dict[int, Pat] | None = None) -> Pat:
    """The tree of a pattern. A pattern that stands in it twice is one node. Linear in its size.

    ``seen`` shares nodes between trees, by the pattern's hash. No recursion, so that a chain of
    thousands of calls is no deeper than Python allows.
    """
    seen = {} if seen is None else seen
    stack = [pattern]
    while stack:
        top = stack[-1]
        key = hash(top)
        if key in seen:
            stack.pop()
            continue
        kind, parts, callee = _parts(top)
        wanted = parts if callee is None else [callee, *parts]
        missing = [p for p in wanted if hash(p) not in seen]
        if missing:
            stack.extend(reversed(missing))
            continue
        made = None if callee is None else seen[hash(callee)]
        seen[key] = Pat(top, kind, [seen[hash(p)] for p in parts], made)
        stack.pop()
    return seen[hash(pattern)]


def _parts(pattern: Any) -> tuple[str, list[Any], Any]:
    made = type(pattern)
    if made is dpl.CallPattern:
        return "call", list(pattern.args), pattern.op
    if made is dpl.ExprPattern:
        return ("op" if isinstance(pattern.expr, tvm.ir.Op) else "expr"), [], None
    if made in _LEAVES:
        return _LEAVES[made], [], None
    if made in _SAME_EXPRESSION:
        kind, field = _SAME_EXPRESSION[made]
        return kind, [getattr(pattern, field)], None
    if made is dpl.OrPattern:
        return "or", [pattern.left, pattern.right], None
    if made is dpl.AndPattern:
        return "and", [pattern.left, pattern.right], None
    if made is dpl.TuplePattern:
        return "tuple", list(pattern.fields), None
    if made is dpl.UnorderedTuplePattern:
        return "unordered_tuple", list(pattern.fields), None
    if made is dpl.TupleGetItemPattern:
        return "get", [pattern.tuple], None
    if made is dpl.FunctionPattern:
        return "function", [*pattern.params, pattern.body], None
    return "other", [], None


def names_in(pattern: Any) -> set[str]:
    """The operators that a ``DFPattern`` names, anywhere in it; linear in the pattern's size."""
    return set(tree(pattern).names)


def root_names(root: Pat) -> frozenset[str] | None:
    """The operators of which a match's last call can be one; None where any call can be."""
    kind = root.kind
    if kind == "call":
        if root.op:
            return frozenset({root.op})
        return (root.callee.names if root.callee else frozenset()) or None
    if kind in ("attr", "dtype", "shape", "type"):
        return root_names(root.args[0])
    if kind in ("or", "and"):
        left, right = (root_names(part) for part in root.args)
        if kind == "or":
            return None if left is None or right is None else left | right
        if left is None or right is None:
            return right if left is None else left
        return left & right
    return None if kind in ("wildcard", "not", "expr", "other") else frozenset()


class Rule:
    """A rule with its pattern as a tree. ``index`` is its place in the list: first comes first."""

    __slots__ = ("check", "fusion", "index", "name", "nodes", "parents", "pattern", "root", "roots")

    def __init__(self, fusion: Any, index: int, seen: dict[int, Pat] | None = None) -> None:
        self.fusion = fusion
        self.index = index
        self.name = str(fusion.name)
        self.pattern = fusion.pattern
        self.check = fusion.check
        self.root = tree(fusion.pattern, seen)
        self.roots = root_names(self.root)
        self.parents: dict[int, list[tuple[Pat, int]]] | None = None
        self.nodes: list[Pat] = _all(self.root)
        """Every node of the pattern, once."""

    def parents_of(self, node: Pat) -> list[tuple[Pat, int]]:
        """The nodes of which it is a part, each with its position there."""
        if self.parents is None:
            self.parents = {}
            for parent in self.nodes:
                for slot, part in enumerate(parent.args):
                    self.parents.setdefault(part.key, []).append((parent, slot))
        return self.parents.get(node.key, [])


def _all(root: Pat) -> list[Pat]:
    found: dict[int, Pat] = {}
    stack = [root]
    while stack:
        node = stack.pop()
        if node.key not in found:
            found[node.key] = node
            stack.extend(node.args)
    return list(found.values())


class Book:
    """Rules in their order, by the operators that they name."""

    def __init__(self, fusions: Iterable[Any]) -> None:
        seen: dict[int, Pat] = {}
        self.rules: Sequence[Rule] = [Rule(f, i, seen) for i, f in enumerate(fusions)]
        self._by_name: dict[str, list[Rule]] = {}
        self._any: list[Rule] = [rule for rule in self.rules if rule.roots is None]
        for rule in self.rules:
            named = set(rule.root.names)
            if any(node.op == FUNCTION for node in rule.nodes):
                named.add(FUNCTION)
            for name in named:
                self._by_name.setdefault(name, []).append(rule)
        self.depth: int = max((rule.root.depth for rule in self.rules), default=0)

    def naming(self, op: str) -> list[Rule]:
        """Rules whose pattern names the operator, or whose last call can be of any operator."""
        named = self._by_name.get(op)
        if not self._any:
            return named or []
        chosen = {rule.index: rule for rule in (*(named or ()), *self._any)}
        return [chosen[index] for index in sorted(chosen)]

    def prefix(self) -> str:
        """What stands before the first dot of the rules' names: the backend, as a rule."""
        return self.rules[0].name.partition(".")[0] if self.rules else "backend"


def shape_text(dims: Any) -> str:
    return "(" + ", ".join(str(getattr(d, "value", d)) for d in dims) + ")"


def shown(value: Any) -> str:
    """An attribute's value as a script writes it: ``[1, 1]`` for what TVM prints as ``(1, 1)``."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        return str(value)
    return "[" + ", ".join(str(getattr(v, "value", v)) for v in value) + "]"
