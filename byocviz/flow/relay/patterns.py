"""Relay's dataflow patterns, read: which operators they name, and where a match departs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tvm import relay
from tvm.ir import Op
from tvm.relay import dataflow_pattern as dfp

from byocviz.flow.relay.compat import composite_of, plain
from byocviz.flow.relay.types import type_text


def parts(pattern: Any) -> list[Any]:
    """The patterns that a pattern is made of."""
    kind = type(pattern)
    if kind is dfp.CallPattern:
        return [pattern.op, *(pattern.args if pattern.args is not None else ())]
    if kind is dfp.AltPattern:
        return [pattern.left, pattern.right]
    if kind in (dfp.AttrPattern, dfp.TypePattern, dfp.DataTypePattern, dfp.ShapePattern):
        return [pattern.pattern]
    if kind is dfp.TuplePattern:
        return list(pattern.fields) if pattern.fields is not None else []
    if kind is dfp.TupleGetItemPattern:
        return [pattern.tuple]
    if kind is dfp.DominatorPattern:
        return [pattern.parent, pattern.path, pattern.child]
    if kind is dfp.FunctionPattern:
        return [*(pattern.params if pattern.params is not None else ()), pattern.body]
    if kind is dfp.IfPattern:
        return [pattern.cond, pattern.true_branch, pattern.false_branch]
    if kind is dfp.LetPattern:
        return [pattern.var, pattern.value, pattern.body]
    return []


def names_in(pattern: Any) -> set[str]:
    """The operators that a pattern names."""
    found: set[str] = set()
    stack = [pattern]
    while stack:
        one = stack.pop()
        if type(one) is dfp.ExprPattern and isinstance(one.expr, Op):
            found.add(plain(one.expr.name))
        stack += parts(one)
    return found


def roots_of(pattern: Any) -> set[str]:
    """The operators whose call a match of the pattern can end in."""
    kind = type(pattern)
    if kind is dfp.CallPattern:
        return _operators(pattern.op)
    if kind is dfp.AltPattern:
        return roots_of(pattern.left) | roots_of(pattern.right)
    if kind in (dfp.AttrPattern, dfp.TypePattern, dfp.DataTypePattern, dfp.ShapePattern):
        return roots_of(pattern.pattern) or _operators(pattern.pattern)
    if kind is dfp.TupleGetItemPattern:
        return roots_of(pattern.tuple)
    if kind is dfp.DominatorPattern:
        return roots_of(pattern.child)
    return set()


def certain_ends(pattern: Any) -> set[str] | None:
    """The operators one of which every match ends in; None where it may end in anything."""
    kind = type(pattern)
    if kind is dfp.CallPattern:
        return _certain_operators(pattern.op)
    if kind is dfp.AltPattern:
        return _either(certain_ends(pattern.left), certain_ends(pattern.right))
    if kind in (dfp.AttrPattern, dfp.TypePattern, dfp.DataTypePattern, dfp.ShapePattern):
        return certain_ends(pattern.pattern)
    if kind is dfp.TupleGetItemPattern:
        return certain_ends(pattern.tuple)
    if kind is dfp.DominatorPattern:
        return certain_ends(pattern.child)
    return None


def depth_of(pattern: Any) -> int | None:
    """How many calls and elements a match may have one above the other; None: there is no bound."""
    if type(pattern) in (dfp.DominatorPattern, dfp.FunctionPattern, dfp.IfPattern, dfp.LetPattern):
        return None
    below = [depth_of(part) for part in parts(pattern)]
    if None in below:
        return None
    own = type(pattern) in (dfp.CallPattern, dfp.TupleGetItemPattern)
    return own + max((depth for depth in below if depth is not None), default=0)


def _certain_operators(pattern: Any) -> set[str] | None:
    kind = type(pattern)
    if kind is dfp.ExprPattern and isinstance(pattern.expr, Op):
        return {plain(pattern.expr.name)}
    if kind is dfp.AltPattern:
        return _either(_certain_operators(pattern.left), _certain_operators(pattern.right))
    if kind is dfp.AttrPattern:
        return _certain_operators(pattern.pattern)
    return None


def _either(one: set[str] | None, other: set[str] | None) -> set[str] | None:
    return None if one is None or other is None else one | other


def _operators(pattern: Any) -> set[str]:
    kind = type(pattern)
    if kind is dfp.ExprPattern:
        return {plain(pattern.expr.name)} if isinstance(pattern.expr, Op) else set()
    if kind is dfp.AltPattern:
        return _operators(pattern.left) | _operators(pattern.right)
    if kind is dfp.AttrPattern:
        return _operators(pattern.pattern)
    return set()


def ends_in_element(pattern: Any) -> bool:
    """Whether a match ends in a tuple's element rather than a call."""
    return type(pattern) is dfp.TupleGetItemPattern


@dataclass
class Trial:
    """How far a pattern goes along with an expression."""

    calls: list[Any] = field(default_factory=list)
    """The operators' calls that it takes in."""
    inner: list[Any] = field(default_factory=list)
    """Those of them whose value is used within the match."""
    text: str = ""
    """Where they part; "" where they do not, as far as is seen here."""
    mend: str = ""


def attempt(pattern: Any, expr: Any) -> Trial:
    """Compare a pattern with an expression from its end on, as Relay's matcher does.

    Dominator, function, branch and let patterns are not looked into. Of the ways in which the
    arguments of add and multiply can stand, the better is taken.
    """
    trial = Trial()
    _walk(pattern, expr, trial, "it")
    return trial


def _walk(pattern: Any, expr: Any, trial: Trial, what: str) -> bool:
    kind = type(pattern)
    if kind is dfp.WildcardPattern:
        return True
    if kind is dfp.AltPattern:
        return _best([[(pattern.left, expr)], [(pattern.right, expr)]], trial, what, lambda _: what)
    if kind is dfp.AttrPattern:
        return _walk(pattern.pattern, expr, trial, what) and _attrs(pattern, expr, trial, what)
    if kind in (dfp.TypePattern, dfp.DataTypePattern, dfp.ShapePattern):
        return _walk(pattern.pattern, expr, trial, what) and _type(pattern, expr, trial, what)
    if kind is dfp.ConstantPattern:
        if isinstance(expr, relay.Constant):
            return True
        trial.text = f"{what} is {said(expr)}, and the pattern wants a constant"
        trial.mend = (
            "Bind the weights (record(params=...)), or let what computes it be folded "
            "(relay.transform.FoldConstant)."
        )
        return False
    if kind is dfp.TupleGetItemPattern:
        if not isinstance(expr, relay.TupleGetItem):
            trial.text = f"{what} is {said(expr)}, and the pattern wants a tuple's element"
            return False
        index = int(pattern.index) if pattern.index is not None else -1
        if index >= 0 and int(expr.index) != index:
            trial.text = f"{what} is element {expr.index}, and the pattern wants element {index}"
            return False
        return _walk(pattern.tuple, expr.tuple_value, trial, what)
    if kind is dfp.TuplePattern:
        return _tuple(pattern, expr, trial, what)
    if kind is dfp.CallPattern:
        return _call(pattern, expr, trial, what)
    if kind is dfp.VarPattern:
        if isinstance(expr, relay.Var):
            return True
        trial.text = f"{what} is {said(expr)}, and the pattern wants a variable"
        return False
    if pattern.match(expr):
        return True
    trial.text = f"{what} is {said(expr)}, which the pattern does not take"
    return False


def _best(choices: list[list[tuple[Any, Any]]], trial: Trial, what: str, name: Any) -> bool:
    """Take the first choice that fits, else that which goes furthest."""
    best: Trial | None = None
    for choice in choices:
        other = Trial(list(trial.calls), list(trial.inner))
        fits = all(
            _walk(pattern, expr, other, name(index)) for index, (pattern, expr) in enumerate(choice)
        )
        if fits:
            trial.calls, trial.inner = other.calls, other.inner
            return True
        if best is None or len(other.calls) > len(best.calls):
            best = other
    assert best is not None
    trial.calls, trial.inner, trial.text, trial.mend = best.calls, best.inner, best.text, best.mend
    return False


def _tuple(pattern: Any, expr: Any, trial: Trial, what: str) -> bool:
    if not isinstance(expr, relay.Tuple):
        trial.text = f"{what} is {said(expr)}, and the pattern wants a tuple written in place"
        return False
    if pattern.fields is None:
        return True
    wanted, fields = list(pattern.fields), list(expr.fields)
    if len(wanted) != len(fields):
        trial.text = f"{what} has {len(fields)} fields, and the pattern {len(wanted)}"
        return False
    return all(
        _walk(p, e, trial, f"field {i} of {what}")
        for i, (p, e) in enumerate(zip(wanted, fields, strict=True))
    )


def _call(pattern: Any, expr: Any, trial: Trial, what: str) -> bool:
    names = _operators(pattern.op)
    if not isinstance(expr, relay.Call) or not isinstance(expr.op, Op):
        wanted = " or ".join(sorted(names)) or "a call"
        trial.text = f"{what} is {said(expr)}, and the pattern wants {wanted}"
        return False
    name = plain(expr.op.name)
    if names and name not in names:
        trial.text = f"{what} comes from {name}, and the pattern wants {' or '.join(sorted(names))}"
        return False
    if type(pattern.op) is dfp.AttrPattern and not pattern.op.match(expr.op):
        trial.text = f"{name} has not the attributes that the pattern asks of it"
        return False
    inner = bool(trial.calls)
    trial.calls.append(expr)
    if inner:
        trial.inner.append(expr)
    if pattern.args is None:
        return True
    named, args = list(pattern.args), list(expr.args)
    if len(named) != len(args):
        trial.text = (
            f"{name} has {_count(len(args), 'argument')}, and the pattern names {len(named)}"
        )
        trial.mend = (
            "The pattern never matches this operator as Relay writes it; a rule with as many "
            "arguments would."
        )
        return False
    orders = [list(zip(named, args, strict=True))]
    if name in ("add", "multiply") and len(args) == 2:
        orders.append(list(zip(named, reversed(args), strict=True)))
    return _best(orders, trial, what, lambda index: f"argument {index} of {name}")


def _attrs(pattern: Any, expr: Any, trial: Trial, what: str) -> bool:
    if pattern.match(expr):
        return True
    wanted = {plain(key): plain(value) for key, value in pattern.attrs.items()}
    source = expr.attrs if isinstance(expr, relay.Call) else None
    for key, value in wanted.items():
        have = getattr(source, key, None) if source is not None else None
        if plain(have) != value:
            trial.text = (
                f"attribute {key} of {what} is {plain(have)}, and the pattern wants {value}"
            )
            return False
    trial.text = f"the attributes of {what} are not those that the pattern wants: {wanted}"
    return False


def _type(pattern: Any, expr: Any, trial: Trial, what: str) -> bool:
    if pattern.match(expr):
        return True
    wanted: Any = (
        getattr(pattern, "dtype", None)
        or getattr(pattern, "shape", None)
        or getattr(pattern, "type", None)
    )
    have = type_text(expr.checked_type)
    trial.text = f"{what} has the type {have}, and the pattern wants {plain(wanted)}"
    return False


def said(expr: Any) -> str:
    """An expression in a few words."""
    if isinstance(expr, relay.Var):
        return f"the parameter {plain(expr.name_hint)}"
    if isinstance(expr, relay.Call):
        if isinstance(expr.op, Op):
            return f"the result of {plain(expr.op.name)}"
        rule = composite_of(expr.op)
        if rule:
            return f"a composite function of {rule}"
        return f"the result of a call of {plain(getattr(expr.op, 'name_hint', 'a function'))}"
    words = {
        relay.Constant: "a constant",
        relay.Tuple: "a tuple",
        relay.TupleGetItem: "an element of a tuple",
        relay.If: "the result of a branch",
        relay.Function: "a function",
    }
    return words.get(type(expr), f"a {type(expr).__name__}")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
