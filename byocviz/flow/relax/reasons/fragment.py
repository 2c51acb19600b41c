"""A matched piece of a module, cut out so that it can be varied and matched again.

The calls of a match become plain descriptions over *leaves*: what enters from outside, by type.
`build` makes a module of one function from them, with or without changes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import tvm
from tvm import relax
from tvm.ir import GlobalVar, Op, SourceName, Span, make_node

from byocviz.flow.relax.compat import Constant, tensor_of
from byocviz.flow.relax.reasons.graph import Index, type_text
from byocviz.flow.relax.reasons.patterns import Rule
from byocviz.flow.relax.tag import TAG

_LARGEST_CONSTANT = 16 << 20
"""Bytes; a weight above it is not tried as a constant."""


@dataclass(frozen=True)
class Leaf:
    """What enters: ``kind`` is ``variable``, ``constant`` or ``fixed`` (a shape, number, string or
    function that stands in the call itself). ``value`` is its expression as it was found, ``name``
    the argument that it is, which is the same for every match of the kind."""

    kind: str
    type: Any
    value: Any
    name: str = ""


@dataclass(frozen=True)
class Step:
    """A call, a tuple or an element of one. ``args`` are ("leaf", i), ("step", i) or nested
    ("tuple", (...)) references."""

    kind: str
    args: tuple[Any, ...]
    op: Any = None
    attrs: Any = None
    ty_args: Any = ()
    index: int = 0
    name: str = ""
    title: str = ""
    """The operator, and which one of them where the match holds several: ``the 2nd relax.add``."""


@dataclass(frozen=True)
class Fragment:
    """``steps`` in order, the match's last call at the end. ``leaking`` are steps whose results
    are used outside too."""

    leaves: tuple[Leaf, ...]
    steps: tuple[Step, ...]
    leaking: tuple[int, ...] = ()
    bound: tuple[tuple[Any, int], ...] = ()
    """Symbolic dimensions that `build` replaces by numbers."""

    def with_leaf(self, number: int, **changes: Any) -> Fragment:
        leaves = list(self.leaves)
        leaves[number] = replace(leaves[number], **changes)
        return replace(self, leaves=tuple(leaves))

    def with_attr(self, number: int, name: str, value: Any) -> Fragment:
        """Raises whatever TVM raises for a value that the attribute cannot hold."""
        step = self.steps[number]
        fields = attributes(step.attrs)
        fields[name] = value
        attrs = make_node(type(step.attrs).__tvm_ffi_type_info__.type_key, **fields)
        steps = list(self.steps)
        steps[number] = replace(step, attrs=attrs)
        return replace(self, steps=tuple(steps))

    def build(self, leak: bool = False) -> Any:
        """A module with the one function ``main`` that does these steps in a dataflow block.

        ``leak`` returns the leaking steps' results as well. Raises whatever TVM raises where the
        types do not go together. Each step's call is tagged with its number.
        """
        entries = [
            relax.Var(f"p{number}", leaf.type) if leaf.kind == "variable" else leaf.value
            for number, leaf in enumerate(self.leaves)
        ]
        params = [e for e in entries if isinstance(e, relax.Var)]
        # Bound by hand: a BlockBuilder that an error leaves with open blocks warns on stderr.
        types = relax.BlockBuilder()
        outputs = {len(self.steps) - 1, *(self.leaking if leak else ())}
        made: list[Any] = []
        bindings = []
        for number, step in enumerate(self.steps):
            value = types.normalize(self._value(step, number, entries, made))
            variable = relax.Var if number in outputs else relax.DataflowVar
            made.append(variable(f"s{number}", value.ty))
            bindings.append(relax.VarBinding(made[-1], value))
        results = [made[number] for number in sorted(outputs)]
        result = results[0] if len(results) == 1 else relax.Tuple(results)
        body = types.normalize(relax.SeqExpr([relax.DataflowBlock(bindings)], result))
        module = tvm.IRModule({"main": relax.Function(params, body)})
        if self.bound:
            module = relax.transform.BindSymbolicVars(dict(self.bound), "main")(module)
        return module

    @staticmethod
    def _value(step: Step, number: int, entries: list[Any], made: list[Any]) -> Any:
        def read(reference: Any) -> Any:
            kind, what = reference
            if kind == "leaf":
                return entries[what]
            if kind == "step":
                return made[what]
            return relax.Tuple([read(part) for part in what])

        args = [read(reference) for reference in step.args]
        if step.kind == "get":
            return relax.TupleGetItem(args[0], step.index)
        span = Span(SourceName(TAG), number, number, 0, 0)
        return relax.Call(step.op, args, step.attrs, step.ty_args, span)


def attributes(attrs: Any) -> dict[str, Any]:
    """An operator's attributes by name."""
    if attrs is None:
        return {}
    info = getattr(type(attrs), "__tvm_ffi_type_info__", None)
    return {f.name: getattr(attrs, f.name) for f in info.fields} if info is not None else {}


def cut(index: Index, rule: Rule, call: Any) -> Fragment | None:
    """The fragment of a rule's match at its last call; None where the match cannot be cut out."""
    near = index.near(call, rule.root.depth)
    matched = rule.pattern.extract_matched_expr(call, near)
    if matched is None:
        return None
    kinds = {node.key: node.kind for node in rule.nodes}
    inside = {
        hash(expr)
        for pattern, expr in dict(matched).items()
        if kinds.get(hash(pattern)) in ("call", "get")
    }
    leaves: list[Leaf] = []
    steps: list[Step] = []
    seen: dict[int, tuple[str, int]] = {}

    def leaf(expr: Any, name: str) -> tuple[str, Any]:
        key = hash(expr)
        if key not in seen:
            value = index.value(expr)
            constant: bool = isinstance(value, Constant)
            if constant:
                made = Leaf("constant", value.ty, value, name)
            elif isinstance(expr, relax.Var):
                made = Leaf("variable", expr.ty, expr, name)
            else:
                made = Leaf("fixed", getattr(expr, "ty", None), expr, name)
            leaves.append(made)
            seen[key] = "leaf", len(leaves) - 1
        return seen[key]

    def read(expr: Any, name: str) -> Any:
        value = index.value(expr)
        if hash(value) in inside:
            return step(value, expr)
        # A tuple is no call: the pass leaves it outside, and a pattern may look into it.
        if isinstance(value, relax.Tuple):
            return "tuple", tuple(
                read(part, f"element {i} of {name}") for i, part in enumerate(value.fields)
            )
        return leaf(expr, name)

    def step(value: Any, expr: Any) -> tuple[str, int]:
        key = hash(value)
        if key not in seen:
            name = str(expr.name) if isinstance(expr, relax.Var) else ""
            if isinstance(value, relax.TupleGetItem):
                args = (read(value.tuple_value, "the tuple"),)
                made = Step("get", args, index=int(value.index), name=name)
            else:
                title = titles.get(key, "the call")
                args = tuple(
                    read(arg, _argument(value, i, "" if alone else title))
                    for i, arg in enumerate(value.args)
                )
                made = Step("call", args, value.op, value.attrs, value.ty_args, 0, name, title)
            steps.append(made)
            seen[key] = "step", len(steps) - 1
            if isinstance(expr, relax.Var):
                users = [use.user for use in index.direct_uses(hash(expr))]
                if any(user is None or hash(user.value) not in inside for user in users):
                    leaking.append(len(steps) - 1)
        return seen[key]

    leaking: list[int] = []
    inside.add(hash(call))
    alone = len(inside) == 1
    titles = _titles(index, call, inside)
    step(call, call)
    if any(isinstance(s.op, GlobalVar | relax.Function) for s in steps):
        return None
    return Fragment(tuple(leaves), tuple(steps), tuple(leaking))


def _argument(call: Any, slot: int, of: str) -> str:
    named = getattr(call.op, "arguments", None)
    name = f"argument {slot + 1}"
    if named is not None and slot < len(named):
        name += f" ({named[slot].name})"
    return f"{name} of {of}" if of else name


def _titles(index: Index, call: Any, inside: set[int]) -> dict[int, str]:
    """What each call of a match is called, in the order in which they run."""
    order: dict[int, str] = {}

    def visit(expr: Any) -> None:
        value = index.value(expr)
        parts: Any = ()
        if isinstance(value, relax.Tuple):
            parts = value.fields
        elif hash(value) in inside and hash(value) not in order:
            get = isinstance(value, relax.TupleGetItem)
            parts = [value.tuple_value] if get else value.args
        for part in parts:
            visit(part)
        if isinstance(value, relax.Call) and hash(value) in inside:
            order.setdefault(hash(value), str(getattr(value.op, "name", "the call")))

    visit(call)
    names = list(order.values())
    titles = {}
    for number, (key, name) in enumerate(order.items()):
        nth = names[: number + 1].count(name)
        ending = {1: "st", 2: "nd", 3: "rd"}.get(nth, "th")
        titles[key] = f"the {nth}{ending} {name}" if names.count(name) > 1 else name
    return titles


def key_of(fragment: Fragment, rule: int) -> tuple[Any, ...]:
    """Equal for matches that a check cannot tell apart by what they are made of.

    Values of constants and names of symbolic dimensions count; which variables do not.
    """
    made: list[tuple[Any, ...]] = []
    for entry in fragment.leaves:
        if entry.kind == "variable":
            made.append(("variable", type_text(entry.type)))
        elif entry.kind == "constant":
            small = entry.type.shape is not None and count(entry.type) <= 16
            held = tensor_of(entry.value).numpy().tobytes() if small else b""
            made.append(("constant", type_text(entry.type), held))
        else:
            made.append(("fixed", str(entry.value)))
    done = [
        (s.kind, str(s.op.name) if isinstance(s.op, Op) else str(s.op), s.index, s.args,
         tuple((k, str(v)) for k, v in attributes(s.attrs).items()))
        for s in fragment.steps
    ]  # fmt: skip
    return (rule, tuple(made), tuple(done), fragment.leaking)


def count(ty: Any) -> int:
    """Elements of a tensor type, or -1 where it is symbolic."""
    if not isinstance(ty, relax.TensorType) or not isinstance(ty.shape, relax.ShapeExpr):
        return -1
    total = 1
    for dim in ty.shape.values:
        if not isinstance(dim, tvm.tirx.IntImm):
            return -1
        total *= int(dim.value)
    return total


def zeros(ty: Any) -> Any:
    """A constant of a tensor type, or None where it is too large or its shape is symbolic."""
    elements = count(ty)
    if elements < 0 or ty.dtype is None:
        return None
    try:
        array = np.zeros([int(d.value) for d in ty.shape.values], dtype=str(ty.dtype))
    except TypeError:  # a dtype that numpy lacks
        return None
    return relax.const(array, str(ty.dtype)) if array.nbytes <= _LARGEST_CONSTANT else None
