"""Relay's rules, taking a match only where byocviz can lower it to ONNX."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial, update_wrapper
from typing import Any

from byocviz.backends.lowerable import MOST_KEPT, said_of
from byocviz.backends.refusal import Refusal, refuse


def of_relay(entries: Iterable[Any]) -> bool:
    """Whether these are Relay's rules: tuples with one of its patterns, or an operator's name."""
    return any(
        isinstance(entry, tuple)
        and len(entry) > 1
        and (isinstance(entry[1], str) or type(entry[1]).__module__.startswith("tvm.relay"))
        for entry in entries
    )


def only_lowerable(rules: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """See `byocviz.backends.lowerable.only_lowerable`; rules are ``(name, pattern[, check])``, and
    an operator's name may stand for the pattern."""
    answers = _Answers()
    return [
        (name, pattern, _asking(pattern, check[0] if check else None, answers))
        for name, pattern, *check in rules
    ]


def _asking(pattern: Any, own: Any, answers: _Answers) -> Callable[[Any], bool]:
    made = partial(_check, pattern, own, answers)
    # Where it stands, and what it logs, is asked of a check.
    return update_wrapper(made, own) if own is not None else made


def _check(pattern: Any, own: Any, answers: _Answers, expr: Any) -> bool:
    if own is not None and not own(expr):
        return False
    refusal = answers.of(pattern, expr)
    return True if refusal is None else refuse(refusal)


class _Answers:
    """Each match is asked about once: a reason asks again."""

    def __init__(self) -> None:
        self.known: dict[tuple[int, int], tuple[Any, Any, Refusal | None]] = {}

    def of(self, pattern: Any, expr: Any) -> Refusal | None:
        key = id(pattern), int(expr.handle.value)
        found = self.known.get(key)
        if found is None:
            if len(self.known) >= MOST_KEPT:
                self.known.clear()
            # Both are held on to: others may not get their addresses.
            found = self.known[key] = pattern, expr, _lowering(pattern, expr)
        return found[2]


def _lowering(pattern: Any, expr: Any) -> Refusal | None:
    from byocviz.building.relay.lower import check
    from byocviz.errors import last_line
    from byocviz.flow.relay.compat import aside

    try:
        with aside():
            errors = check(function_of(pattern, expr))
    except Exception as error:
        return Refusal(
            "not-lowerable",
            f"what it takes cannot be looked at by itself: {last_line(error)}",
            "Run relay.transform.InferType on the module, or switch the rule off.",
        )
    return said_of(errors) if errors else None


def function_of(pattern: Any, expr: Any) -> Any:
    """The Relay function of a match that ends in ``expr``, as MergeComposite outlines it, but for
    its constants, which stay in place. ``pattern`` may be an operator's name: the call alone.

    Raises `LookupError` where the pattern does not match, and what TVM raises.
    """
    from tvm import relay

    from byocviz.flow.relay.compat import attribute
    from byocviz.flow.relay.patterns import depth_of

    if isinstance(pattern, str):
        body = _cut(expr, 1)
        return _typed(relay.Function(relay.analysis.free_vars(body), body))
    deepest = depth_of(pattern)
    # Another match further up may overlap with this one where it is seen alone: less is seen then.
    for depth in [None] if deepest is None else range(deepest, 0, -1):
        body = expr if depth is None else _cut(expr, depth)
        whole = _typed(relay.Function(relay.analysis.free_vars(body), body))
        made = pattern.partition(whole.body)
        function = made.op if isinstance(made, relay.Call) else None
        if isinstance(function, relay.Function) and attribute(function, "PartitionedFromPattern"):
            return _typed(_bound(function, made.args))
    raise LookupError("the pattern does not match it alone")


def _bound(function: Any, args: Any) -> Any:
    """The function with the constants among the arguments in place of its parameters, and the types
    of the others given to theirs."""
    from tvm import relay

    values = {
        param: arg
        if isinstance(arg, relay.Constant)
        else relay.Var(param.name_hint, arg.checked_type)
        for param, arg in zip(function.params, args, strict=True)
    }
    params = [value for value in values.values() if isinstance(value, relay.Var)]
    return relay.Function(params, relay.bind(function.body, values))


def _typed(function: Any) -> Any:
    import tvm

    from byocviz.flow.relay.compat import typed

    return typed(tvm.IRModule.from_expr(function))["main"]


def _cut(expr: Any, depth: int) -> Any:
    """The expression down to so many calls and elements one above the other; what lies deeper, but
    for constants, is a variable of its type."""
    from tvm import relay

    made: dict[tuple[int, int], Any] = {}

    def cut(one: Any, left: int) -> Any:
        if isinstance(one, (relay.Constant, relay.Var)):
            return one
        key = int(one.handle.value), left
        if key not in made:
            made[key] = rebuilt(one, left)
        return made[key]

    def rebuilt(one: Any, left: int) -> Any:
        if isinstance(one, relay.Tuple):
            return relay.Tuple([cut(field, left) for field in one.fields], one.span)
        if left and isinstance(one, relay.TupleGetItem):
            return relay.TupleGetItem(cut(one.tuple_value, left - 1), one.index, one.span)
        if left and isinstance(one, relay.Call):
            args = [cut(arg, left - 1) for arg in one.args]
            return relay.Call(one.op, args, one.attrs, one.type_args, one.span)
        return relay.Var("value", one.checked_type)

    return cut(expr, depth)
