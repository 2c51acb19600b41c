"""Rules that take a match only where it can be built: see `Backend.lowerable`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from graphlib import TopologicalSorter
from typing import Any

from byocviz.backends.refusal import Refusal, refuse

Ask = Callable[[Any], Refusal | None]
"""Is asked about a match as a Relax function; says why it is not taken, or None."""

MOST_KEPT = 4096
"""Answers kept at a time."""


def only_lowerable(patterns: Iterable[Any]) -> list[Any]:
    """The same FusionPatterns, which take a match only if byocviz can lower it to ONNX.

    A pattern may be the tuple that TVM takes for one. Its own check is asked first. Where the
    lowering refuses, the check says why (`byocviz.backends.refusal`), and the reason in a recording
    has the code ``not-lowerable``. Relay's rules are taken as well.
    """
    from byocviz.backends import relay_lowerable

    rules = list(patterns)
    if relay_lowerable.of_relay(rules):
        return relay_lowerable.only_lowerable(rules)
    return guarded(rules, lowering)


def guarded(patterns: Iterable[Any], ask: Ask) -> list[Any]:
    """The same FusionPatterns, each asking ``ask`` as well after its own check."""
    from tvm.relax.transform import FusionPattern

    answers = _Answers(ask)
    made = []
    for pattern in patterns:
        own = pattern if isinstance(pattern, FusionPattern) else FusionPattern(*pattern)
        made.append(
            FusionPattern(
                own.name,
                own.pattern,
                own.annotation_patterns,
                _check(own.check, answers),
                own.attrs_getter,
            )
        )
    return made


def _check(own: Any, answers: _Answers) -> Callable[[Any], Any]:
    def check(context: Any) -> Any:
        said = own(context) if own is not None else True
        if not isinstance(said, bool | int) or not said:
            return said  # what is no answer is TVM's to refuse
        refusal = answers.of(context)
        return True if refusal is None else refuse(refusal)

    return check


class _Answers:
    """Each match is asked about once: the composite and the annotate step meet the same."""

    def __init__(self, ask: Ask) -> None:
        self.ask = ask
        self.known: dict[tuple[Any, ...], Refusal | None] = {}

    def of(self, context: Any) -> Refusal | None:
        bindings = [(var, value) for var, value in context.matched_bindings.items()]
        # By the very expressions, which are held on to: another may not get one's address.
        key = tuple(part for binding in bindings for part in binding)
        if key not in self.known:
            if len(self.known) >= MOST_KEPT:
                self.known.clear()
            self.known[key] = self.ask(function_of(bindings, context.matched_expr))
        return self.known[key]


def function_of(bindings: Sequence[tuple[Any, Any]], result: Any) -> Any:
    """The Relax function of a match, as ``FuseOpsByPattern(bind_constants=True)`` outlines it.

    ``bindings`` are the matched variables with their values, in any order; ``result`` is the
    value that it returns. What enters by a variable becomes a parameter; constants stay in place.
    """
    from tvm import relax
    from tvm.relax.analysis import free_vars

    values = dict(bindings)
    # Symbolic dimensions are free as well, and no parameters.
    uses = {
        var: [used for used in free_vars(value) if isinstance(used, relax.Var)]
        for var, value in bindings
    }
    # Static order of a sorter is that of insertion where nothing else decides.
    order = list(
        TopologicalSorter(
            {v: [u for u in used if u in values] for v, used in uses.items()}
        ).static_order()
    )
    params: dict[Any, None] = {}
    for var in order:
        params.update((used, None) for used in uses[var] if used not in values)
    last = next((var for var, value in bindings if value.same_as(result)), order[-1])
    block = relax.DataflowBlock([relax.VarBinding(var, values[var]) for var in order])
    return relax.Function(list(params), relax.SeqExpr([block], last), last.ty, True)


def lowering(function: Any) -> Refusal | None:
    """The first thing for which `byocviz.building.lower.lower` would refuse the function."""
    from byocviz.building.lower import check

    errors = check(function)
    return said_of(errors) if errors else None


def convertible(operator: str) -> bool:
    """Whether there is a converter for the operator of that name, so that a rule for it could take
    some of its calls."""
    from byocviz.building.lower.registry import find

    return find(operator) is not None


def said_of(errors: Sequence[Any]) -> Refusal:
    """A refusal in the words of the `LoweringError`s, first of all those of the first.

    Neither ids nor variables of calls are in it: operators with the same cause share one.
    """
    first = errors[0]
    subject, what = _phrase(first)
    evidence = {"operator": first.operator}
    if first.attribute:
        evidence[first.attribute] = _short(first.value)
    for number, more in enumerate(errors[1:4], 2):
        evidence[str(number)] = ": ".join(filter(None, (*_phrase(more), more.why)))
    what = f": {what}" if what else ""
    return Refusal(
        "not-lowerable",
        f"{subject} cannot be lowered to ONNX{what}. {first.why}".rstrip(),
        first.mend,
        tuple(evidence.items()),
    )


def _phrase(error: Any) -> tuple[str, str]:
    """What cannot be lowered, and what of it is in the way."""
    subject = error.operator
    if error.operator in ("parameter", "constant"):
        # No operator: only its variable tells which one it is.
        subject = "its input" if error.operator == "parameter" else "its constant"
        subject += f" {error.variable}" if error.variable else ""
    return subject, f"{error.attribute} = {_short(error.value)}" if error.attribute else ""


def _short(value: Any) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= 200 else f"{text[:199]}…"
