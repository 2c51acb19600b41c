"""What the rules' own checks said: recorded as the pass asks them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tvm import relax

from byocviz.backends.refusal import Refusal, take
from byocviz.flow.relax.reasons.faults import fault
from byocviz.flow.relax.reasons.trace import error_text, is_answer, no_answer
from byocviz.flow.relax.tag import tag_of


class Verdict:
    """One answer of a rule's check.

    ``root`` is the tag of the match's last call, ``ops`` the tags of all calls of the match (of a
    refused match, or where the survey asked). ``error`` is what the check raised, as
    ``ValueError: ...``; ``refusal`` is what it said itself of why it refuses.
    """

    __slots__ = ("accepted", "error", "ops", "refusal", "root", "rule")

    def __init__(
        self,
        rule: int,
        root: int,
        ops: tuple[int, ...],
        accepted: bool,
        error: str = "",
        refusal: Refusal | None = None,
    ) -> None:
        self.rule = rule
        self.root = root
        self.ops = ops
        self.accepted = accepted
        self.error = error
        self.refusal = refusal


class Refusals:
    """The answers of a list of rules' checks in one run of ``FuseOpsByPattern``."""

    def __init__(self) -> None:
        self.verdicts: list[Verdict] = []
        self._by_op: dict[int, list[Verdict]] | None = None
        self._counted = 0
        self._fault: tuple[str, str] | None = None

    def fault(self) -> tuple[str, str] | None:
        """What was wrong with the last check that raised or returned no bool, and the mend.

        Such a check ends the pass. None where every check answered.
        """
        return self._fault

    def note_fault(self, rule: Any, context: Any) -> None:
        """Ask the check that just failed once more, watched, and keep what is said of it."""
        self._fault = fault(rule, context)

    def add(self, verdict: Verdict) -> None:
        self.verdicts.append(verdict)

    def of(self, op: int) -> list[Verdict]:
        """Refusals of matches that would have taken the operator, rules in their order."""
        if self._by_op is None or self._counted != len(self.verdicts):
            self._by_op = {}
            self._counted = len(self.verdicts)
            for verdict in self.verdicts:
                if not verdict.accepted:
                    for tag in verdict.ops:
                        self._by_op.setdefault(tag, []).append(verdict)
            for found in self._by_op.values():
                found.sort(key=lambda verdict: verdict.rule)
        return self._by_op.get(op, [])


def record_checks(rules: Iterable[Any]) -> tuple[list[Any], Refusals]:
    """The same rules with checks that note their answers, and where they note them.

    Run ``FuseOpsByPattern(wrapped)`` in place of ``FuseOpsByPattern(rules)``: its result is the
    same, and what a check raises is still raised. Rules without a check are returned themselves.
    """
    refusals = Refusals()
    wrapped = []
    for number, rule in enumerate(rules):
        if rule.check is None:
            wrapped.append(rule)
            continue
        wrapped.append(with_check(rule, _noting(rule, number, refusals)))
    return wrapped, refusals


def with_check(rule: Any, check: Any) -> Any:
    """A ``FusionPattern`` like another one, with another check."""
    return relax.transform.FusionPattern(
        rule.name, rule.pattern, rule.annotation_patterns, check, rule.attrs_getter
    )


def _noting(rule: Any, number: int, refusals: Refusals) -> Any:
    check = rule.check

    def noting(context: Any) -> Any:
        take()
        try:
            said = check(context)
        except Exception as raised:
            refusals.add(_refused(number, context, error_text(raised)))
            refusals.note_fault(rule, context)
            raise
        if not is_answer(said):
            refusals.add(_refused(number, context, no_answer(said)))
            refusals.note_fault(rule, context)
        elif not said:
            refusals.add(_refused(number, context, "", take()))
        return said

    return noting


def _refused(number: int, context: Any, error: str, refusal: Refusal | None = None) -> Verdict:
    root = tag_of(context.matched_expr)
    return Verdict(number, root, _tags(context), False, error, refusal)


def _tags(context: Any) -> tuple[int, ...]:
    """Tags of the calls of a match. The context itself must not be kept: the pass goes on
    writing into its maps, and would copy them whole for as long as someone else holds them."""
    calls = (v for v in context.matched_bindings.values() if isinstance(v, relax.Call))
    # TVM's map is in the order of addresses.
    return tuple(sorted(tag for tag in map(tag_of, calls) if tag >= 0))


def survey(module: Any, rules: Sequence[tuple[int, Any]]) -> Refusals:
    """What would match: each rule by itself on the module as it is, nothing taken.

    ``rules`` are (number, FusionPattern). One linear run of the pass for each; a check that
    raises counts as a refusal.
    """
    found = Refusals()
    for number, rule in rules:

        def ask(context: Any, number: int = number, check: Any = rule.check) -> bool:
            error = ""
            accepted = True
            take()
            if check is not None:
                try:
                    said = check(context)
                    error = "" if is_answer(said) else no_answer(said)
                    accepted = not error and bool(said)
                except Exception as raised:
                    accepted, error = False, error_text(raised)
            root = tag_of(context.matched_expr)
            found.add(Verdict(number, root, _tags(context), accepted, error, take()))
            return False

        asking = relax.transform.FusionPattern(
            rule.name, rule.pattern, rule.annotation_patterns, ask, None
        )
        relax.transform.FuseOpsByPattern([asking])(module)
    return found
