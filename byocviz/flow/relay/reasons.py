"""Why an operator stays on TVM: for each, the cause, what shows it, and the mend.

Asked after MergeComposite has run. The codes are those of `Reason`; two more occur on Relay:
``later`` (an operator rule takes it in the annotate step) and ``not-annotated``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tvm
from tvm import relay
from tvm.ir import Op

from byocviz.backends import Backend, relay_table
from byocviz.backends.refusal import Refusal, take
from byocviz.backends.relay_table import RelayRule
from byocviz.flow.relay.checks import Verdict, Verdicts, logged
from byocviz.flow.relay.compat import functions_of, plain, tag_of
from byocviz.flow.relay.patterns import Trial, attempt, ends_in_element, names_in, roots_of
from byocviz.flow.relay.refused import check_refused
from byocviz.flow.relay.scopes import Body
from byocviz.recording.schema import Reason

__all__ = ["explain", "names_in"]

_DEPTH = 6
"""How far above an operator the end of a match is looked for."""
_ENDS = 12
"""How many such ends are tried."""


class _Calls:
    """The calls of the module that MergeComposite was run on, and who uses each."""

    def __init__(self, module: tvm.IRModule) -> None:
        self.by_tag: dict[int, Any] = {}
        self.users: dict[int, list[Any]] = {}
        """By the number of a call: the calls that use it, elements and tuples looked through."""
        self.elements: dict[int, list[Any]] = {}
        """By the number of a call: the elements taken of its result."""
        self.uses: dict[int, int] = {}
        """How many expressions, or results, use a call's value."""
        for function in functions_of(module).values():
            self._read(Body(function.body))

    def _read(self, body: Body) -> None:
        for item in body.items.values():
            if item.kind is relay.Call and (tag := tag_of(item.expr)) >= 0:
                self.by_tag[tag] = item.expr
        makers: dict[int, list[int]] = {}
        for key, item in body.items.items():
            below = [c for c in item.children if isinstance(c, int)]
            if item.kind is relay.Call:
                made = {t for c in below for t in makers.get(c, ())}
                for tag in made:
                    self.users.setdefault(tag, []).append(item.expr)
                own = tag_of(item.expr)
                makers[key] = [own] if own >= 0 else []
            elif item.kind in (relay.Tuple, relay.TupleGetItem):
                makers[key] = [t for c in below for t in makers.get(c, ())]
                if item.kind is relay.TupleGetItem:
                    for tag in makers[key]:
                        self.elements.setdefault(tag, []).append(item.expr)
            for child in below:
                for tag in makers.get(child, ()):
                    self.uses[tag] = self.uses.get(tag, 0) + 1
        if isinstance(body.root, int):
            for tag in makers.get(body.root, ()):
                self.uses[tag] = self.uses.get(tag, 0) + 1

    def ends(self, tag: int) -> list[Any]:
        """The call, and those that its value reaches, the nearest first."""
        found, seen = [self.by_tag[tag]], {tag}
        level = [tag]
        for _ in range(_DEPTH):
            above = []
            for one in level:
                for user in self.users.get(one, ()):
                    number = tag_of(user)
                    if number not in seen and number >= 0:
                        seen.add(number)
                        above.append(number)
                        found.append(user)
            level = above
            if len(found) > _ENDS:
                break
        return found[:_ENDS]


def explain(
    module: tvm.IRModule,
    backend: Backend,
    rules: Sequence[RelayRule],
    left: set[int],
    verdicts: Verdicts,
    owners: Mapping[int, str],
) -> dict[int, Reason]:
    """A reason for every operator that ``MergeComposite`` left on TVM.

    ``module`` is the one that the pass was run on, ``left`` the numbers of the operators in no
    composite function, ``verdicts`` what the checks answered, ``owners`` the rule that took each
    operator that is not left.
    """
    if not left:
        return {}
    return _Explainer(module, backend, rules, left, verdicts, owners).run()


class _Explainer:
    def __init__(
        self,
        module: tvm.IRModule,
        backend: Backend,
        rules: Sequence[RelayRule],
        left: set[int],
        verdicts: Verdicts,
        owners: Mapping[int, str],
    ) -> None:
        self.calls = _Calls(module)
        self.backend = backend
        self.left = left
        self.verdicts = verdicts
        self.owners = owners
        self.naming: dict[str, list[RelayRule]] = {}
        """The rules that name an operator, enabled or not."""
        self.roots: dict[int, set[str]] = {}
        for rule in rules:
            names = names_in(rule.pattern) if rule.pattern is not None else {rule.op}
            self.roots[rule.index] = (
                roots_of(rule.pattern) if rule.pattern is not None else {rule.op}
            )
            for name in names:
                self.naming.setdefault(name, []).append(rule)
        self.refused: dict[int, list[Verdict]] = {}
        """What refused a match that takes an operator in, by the operator."""
        self.same: dict[Any, Reason] = {}

    def run(self) -> dict[int, Reason]:
        for verdict in self.verdicts.refused():
            end = self.calls.by_tag.get(verdict.root)
            if end is None or verdict.rule.pattern is None:
                continue
            for call in attempt(verdict.rule.pattern, self._shape(verdict.rule, end)).calls:
                self.refused.setdefault(tag_of(call), []).append(verdict)
        checks = [rule.check for rules in self.naming.values() for rule in rules]
        with logged(checks) as lines:
            self.lines = lines
            self.refusal: Refusal | None = None
            return {tag: self._shared(self._reason(tag)) for tag in sorted(self.left)}

    def _shared(self, reason: Reason) -> Reason:
        """Operators with the same cause share one object."""
        key = reason.code, reason.text, reason.mend, reason.rule, tuple(reason.evidence.items())
        return self.same.setdefault(key, reason)

    def _shape(self, rule: RelayRule, end: Any) -> Any:
        """The expression that a match ends in: the call, or an element of its result."""
        if ends_in_element(rule.pattern):
            elements = self.calls.elements.get(tag_of(end), ())
            fits = [e for e in elements if rule.pattern.match(e)]
            return fits[0] if fits else next(iter(elements), end)
        return end

    def _reason(self, tag: int) -> Reason:
        call = self.calls.by_tag.get(tag)
        name = plain(call.op.name) if call is not None and isinstance(call.op, Op) else "?"
        naming = self.naming.get(name, [])
        enabled = [rule for rule in naming if rule.enabled]
        if call is None:
            return _lowered(name)
        for rule in enabled:
            if rule.pattern is None:
                answer = self._operator_rule(rule, call)
                if answer is not None:
                    return answer
        for verdict in self.refused.get(tag, ()):
            return check_refused(verdict, name, call)
        off = self._off(tag, [rule for rule in naming if not rule.enabled])
        if off is not None:
            return off
        patterns = [rule for rule in enabled if rule.pattern is not None]
        if not patterns:
            return _no_rule(name, self.backend)
        return self._other_form(tag, name, patterns)

    def _ask(self, rule: RelayRule, expr: Any) -> bool:
        """The rule's check on a match; what it logs lies in ``lines``."""
        self.lines.clear()
        take()
        self.refusal = None
        if rule.check is None:
            return True
        try:
            answer = bool(rule.check(expr))
            self.refusal = take()
            return answer
        except Exception as error:
            self.lines.append(f"{type(error).__name__}: {error}"[:300])
            return False

    def _operator_rule(self, rule: RelayRule, call: Any) -> Reason | None:
        if self._ask(rule, call):
            return Reason(
                "later",
                f"No pattern takes it; the operator rule {rule.name} does, in the annotate step.",
                "Nothing to do: see the annotate step.",
                rule.name,
            )
        others = [
            r for r in self.naming[rule.op] if r.enabled and r.pattern is None and r is not rule
        ]
        if others and others[-1].index > rule.index:
            return None
        verdict = Verdict(rule, tag_of(call), False, list(self.lines), refusal=self.refusal)
        return check_refused(verdict, rule.op, call)

    def _off(self, tag: int, rules: Sequence[RelayRule]) -> Reason | None:
        for rule in rules:
            if rule.pattern is None:
                if self._ask(rule, self.calls.by_tag[tag]):
                    return _rule_off(rule)
                continue
            for end in self.calls.ends(tag):
                if plain(getattr(end.op, "name", "")) not in self.roots[rule.index]:
                    continue
                shape = self._shape(rule, end)
                trial = attempt(rule.pattern, shape)
                # TVM's matcher reads all that leads to the expression: it is asked last.
                if trial.text or not rule.pattern.match(shape):
                    continue
                tags = {tag_of(c) for c in trial.calls}
                if tag in tags and tags <= self.left and self._ask(rule, shape):
                    return _rule_off(rule)
        return None

    def _other_form(self, tag: int, name: str, rules: Sequence[RelayRule]) -> Reason:
        best: tuple[tuple[int, int, int], Reason] | None = None
        for rule in rules:
            for distance, end in enumerate(self.calls.ends(tag)):
                if plain(getattr(end.op, "name", "")) not in self.roots[rule.index]:
                    continue
                shape = self._shape(rule, end)
                trial = attempt(rule.pattern, shape)
                tags = [tag_of(call) for call in trial.calls]
                inside = tag in tags
                if not trial.text and rule.pattern.match(shape):
                    if not inside:
                        continue
                    reason = self._hindered(rule, name, trial, tags)
                    rank = 2, len(tags), -distance
                else:
                    text = trial.text or "the pattern does not match"
                    reason = Reason(
                        "other-form",
                        f"The rule {rule.name} names {name}, but {text}.",
                        trial.mend
                        or f"Rewrite the operators into the form of {rule.name}, or add a rule of "
                        "this form.",
                        rule.name,
                        {"operator": name, "departs": text},
                    )
                    rank = int(inside), len(tags), -distance
                if best is None or rank > best[0]:
                    best = rank, reason
        if best is not None:
            return best[1]
        rule = rules[0]
        ends = " or ".join(sorted(self.roots[rule.index])) or "another operator"
        return Reason(
            "other-form",
            f"The rule {rule.name} names {name}, but no match of it can end near: nothing that "
            f"uses the result is {ends}.",
            f"Rewrite the operators into the form of {rule.name}, or add a rule for {name} alone.",
            rule.name,
            {"operator": name},
        )

    def _hindered(self, rule: RelayRule, name: str, trial: Trial, tags: Sequence[int]) -> Reason:
        """The pattern matches by itself; what kept MergeComposite from it."""
        lost = [t for t in tags if t not in self.left and t in self.owners]
        if lost:
            taken = plain(self.calls.by_tag[lost[0]].op.name)
            owner = self.owners[lost[0]]
            return Reason(
                "other-form",
                f"The rule {rule.name} matches, but {owner} took its {taken} first.",
                f"Put the rule before {owner} in the table, or switch that off: "
                f"record(mod, rules={{{owner!r}: False}}).",
                rule.name,
                {"taken": taken, "by": owner},
            )
        for call in trial.inner:
            within = sum(
                any(tag_of(u) == t for u in self.calls.users.get(tag_of(call), ())) for t in tags
            )
            if self.calls.uses.get(tag_of(call), 0) > max(within, 1):
                inner = plain(call.op.name)
                return Reason(
                    "other-form",
                    f"The rule {rule.name} matches, but the result of its {inner} is used outside "
                    "of the match as well, and MergeComposite takes no such match.",
                    f"Compute {inner} twice, or add a rule that ends in it.",
                    rule.name,
                    {"used outside": inner},
                )
        return Reason(
            "other-form",
            f"The rule {rule.name} matches {name}, yet MergeComposite made no composite function "
            "of it.",
            "Run relay.transform.MergeComposite with this rule alone to see.",
            rule.name,
            {"operator": name},
        )


def _no_rule(name: str, backend: Backend) -> Reason:
    return Reason(
        "no-rule",
        f"No enabled rule names {name}.",
        f"Add a rule, where the backend can run it: {relay_table.by_name(backend)}.with_rules("
        f'("{backend.name}.{name}", "{name}")); `blockers()` says what that would gain.',
        evidence={"operator": name},
    )


def _lowered(name: str) -> Reason:
    return Reason(
        "already-lowered",
        f"{name} stands in a function that MergeComposite does not look into.",
        "Record the module from before the pass that made that function.",
    )


def _rule_off(rule: RelayRule) -> Reason:
    return Reason(
        "rule-off",
        f"The rule {rule.name} would take it and is switched off.",
        f"Switch the rule {rule.name} on.",
        rule.name,
    )
