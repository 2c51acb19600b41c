"""Why an operator stays on TVM: for each, the cause, what shows it, and the mend.

`explain` is asked after ``FuseOpsByPattern`` has run. What the cause says can be tested: when it
is removed, the pass takes the operator. So a rule that is off is named only where it would match,
a plain binding block only where a rule matches the operator in it, and what a check objects to is
found by changing it until the check agrees.

Two things look like causes and are none. A value inside a match that is used outside it as well
does not hinder ``FuseOpsByPattern``, which then returns it as a second result (only a rule's own
check may mind). And the constraints between patterns that a ``PatternContext`` keeps
(``used_by``, ``SameShapeConstraint``) are not asked by ``FuseOpsByPattern`` at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from tvm import relax

from byocviz.flow.relax.compat import attribute
from byocviz.flow.relax.reasons import words
from byocviz.flow.relax.reasons.checks import Refusals, Verdict, record_checks, survey
from byocviz.flow.relax.reasons.graph import Def, Index, type_text
from byocviz.flow.relax.reasons.lowered import Lowered
from byocviz.flow.relax.reasons.nearest import Near, Nearest
from byocviz.flow.relax.reasons.patterns import FUNCTION, Book, Rule, names_in
from byocviz.flow.relax.reasons.probe import Cause, Prober
from byocviz.recording.schema import Reason

__all__ = ["Refusals", "explain", "names_in", "record_checks"]

_READS_SHAPE = "relax.shape_to_tensor"
_CONVOLUTION = "relax.nn.conv2d"
_KERNELS = {"NCHW": "OIHW", "NHWC": "OHWI"}
"""The kernel's layout that goes with the data's."""
_PROBED_RULES = 3
"""Of rules that refused the same operator, how many are probed before the first is reported."""


def explain(
    mod: Any,
    rules: Sequence[Any],
    left: Iterable[int],
    *,
    refusals: Refusals | None = None,
    disabled: Sequence[Any] = (),
    owners: Mapping[int, str] | None = None,
    order: Sequence[Any] | None = None,
    convertible: Callable[[str], bool] | None = None,
    backend: str = "backend",
) -> dict[int, Reason]:
    """A reason for every operator that ``FuseOpsByPattern(rules)(mod)`` left on TVM.

    Args:
        mod: The module that the pass was run on, every call tagged (`tag.Tagger`).
        rules: The enabled rules, ``relax.transform.FusionPattern``, first to match first.
        left: Tags of the operators that are in no composite function.
        refusals: What `record_checks` noted while the pass ran. Without it each rule that has a
            check is asked again, by itself.
        disabled: Rules that were switched off.
        owners: The rule that took an operator, by tag, of those that are not left. Without it,
            the owner of a lost operator is looked for by matching again.
        order: All rules, enabled and disabled, in the order of the table. It tells whether a
            disabled rule would come before the rule that took part of its match; without it only
            a disabled rule whose whole match is on TVM counts.
        convertible: Of a backend whose rules take only what can be lowered: whether an operator
            could be, by its name.
        backend: Python text that gives the backend, for mends.

    Returns:
        Reasons by tag, with the codes ``already-lowered``, ``no-tensor``, ``no-rule``,
        ``rule-off``, ``not-in-dataflow``, ``check-refused`` and ``other-form``, and those that
        a check gives itself (`byocviz.backends.refusal`). Operators with the same cause share
        one object.

    Raises:
        ModuleError: a tag of ``left`` stands nowhere in ``mod``.
    """
    wanted = set(left)
    if not wanted:
        return {}
    return _Explainer(
        mod, rules, wanted, refusals, disabled, owners, order, convertible, backend
    ).run()


class _Explainer:
    def __init__(
        self,
        mod: Any,
        rules: Sequence[Any],
        left: set[int],
        refusals: Refusals | None,
        disabled: Sequence[Any],
        owners: Mapping[int, str] | None,
        order: Sequence[Any] | None,
        convertible: Callable[[str], bool] | None,
        backend: str,
    ) -> None:
        self.mod = mod
        self.backend = backend
        self._convertible = convertible
        self.left = left
        self.index = Index(mod)
        self.book = Book(rules)
        self.off = Book(disabled)
        self.owners = owners
        self.order = {hash(rule): place for place, rule in enumerate(order or ())}
        self.lowered = Lowered(self.index)
        self.nearest = Nearest(self.index, self.book)
        self.prober = Prober(self.index)
        self._refusals = refusals
        self._off_found: dict[int, list[Verdict]] | None = None
        self._turned: dict[str, Index] = {}
        self._shared: dict[Any, Reason] = {}
        self._codegen: dict[str, Any] = {}

    def run(self) -> dict[int, Reason]:
        return {tag: self._reason(self.index.at(tag)) for tag in sorted(self.left)}

    def _reason(self, of: Def) -> Reason:
        named = self.book.naming(of.op)
        if self.off.naming(of.op):
            off = self._rule_off(of)
            if off is not None:
                return off
        if not named:
            return self._unnamed(of)
        refused = self.refusals.of(of.tag)
        if not of.block.dataflow or not refused:
            near = self.nearest.find(of, frozenset(v.rule for v in refused))
            reason = self._form(of, near) if near is not None else None
            if reason is not None and (not refused or reason.code == "not-in-dataflow"):
                return reason
        if refused:
            return self._refused(of, refused)
        return self._unnamed(of)

    def _unnamed(self, of: Def) -> Reason:
        """No rule could ever take it; equal for all calls of an operator."""
        if self.lowered.is_one(of):
            return self._once(("lowered", *self._callee(of)), partial(self.lowered.reason, of))
        prefix = self.book.prefix()
        if of.op == FUNCTION:
            callee = self.index.say(of.value.op)
            return self._once(("call", callee), partial(words.function_call, of, callee))
        ty = of.args[0].ty if of.op == _READS_SHAPE else of.value.ty
        if not _has_tensor(ty):
            shape, symbols = type_text(ty), self._symbols(of, ty)
            return self._once(
                ("tensor", of.op, shape, symbols),
                partial(words.no_tensor, of, shape, prefix, symbols),
            )
        converted = self._convertible is None or self._convertible(of.op)
        return self._once(
            ("rule", of.op, len(of.args)),
            partial(words.no_rule, of, self.backend, prefix, converted),
        )

    def _symbols(self, of: Def, ty: Any) -> tuple[str, ...] | None:
        """The dimensions that the function's parameters leave open, of a shape that is read as a
        tensor only; None where some are found out only when it runs, or it is read otherwise."""
        if not isinstance(ty, relax.ShapeType) or ty.values is None:
            return None
        readers = [use.user.op if use.user else "" for use in self.index.uses(of.key)]
        if of.op != _READS_SHAPE and any(reader != _READS_SHAPE for reader in readers):
            return None
        given = {
            str(var.name)
            for param in self.mod[of.block.function].params
            for var in relax.analysis.definable_tir_vars_in_type(param.ty)
        }
        found = {str(var.name) for var in relax.analysis.tir_vars_in_type(ty)}
        return tuple(sorted(found)) if found <= given else None

    def _once(self, key: Any, make: Any) -> Reason:
        known = self._shared.get(key)
        if known is None:
            known = self._shared[key] = make()
        return known

    def _given_to(self, function: str) -> str | None:
        """The backend whose function it is already; FuseOpsByPattern passes such one by."""
        if function not in self._codegen:
            self._codegen[function] = attribute(self.mod[function], "Codegen")
        given = self._codegen[function]
        return None if given is None else f"{given}"  # TVM's own strings have a repr of theirs

    def _callee(self, of: Def) -> tuple[str, str]:
        return str(of.args[0] if of.args else of.value.op), type_text(of.value.ty)

    def _form(self, of: Def, near: Near) -> Reason | None:
        if near.ok and near.root is not None:
            if of.block.primitive:
                return words.passed_by(of, near, "Primitive")
            backend = self._given_to(of.block.function)
            if backend is not None:
                return words.passed_by(of, near, "Codegen", backend)
            if not of.block.dataflow or not near.root.block.dataflow:
                return words.not_in_dataflow(of, near)
            return words.lost(near, self._taken(near))
        if self.lowered.is_one(of) and near.agreed < 2:
            return None
        return words.other_form(near)

    # Checks

    @property
    def refusals(self) -> Refusals:
        if self._refusals is None:
            here = {self.index.at(tag).op for tag in self.left}
            asked = [
                (rule.index, rule.fusion)
                for rule in self.book.rules
                if rule.check is not None and rule.root.names & here
            ]
            self._refusals = survey(self.mod, asked)
        return self._refusals

    def _refused(self, of: Def, refused: list[Verdict]) -> Reason:
        """Of several rules that refused, the first whose cause probing shows, else the first."""
        first: Reason | None = None
        for verdict in refused[:_PROBED_RULES]:
            rule = self.book.rules[verdict.rule]
            root = self.index.tagged.get(verdict.root)
            if root is None:
                continue
            if verdict.refusal is not None:
                key: Any = ("said", rule.index, verdict.refusal)
                return self._once(key, partial(words.stated, rule, verdict.refusal))
            cause, leaks = self.prober.cause(rule, root.value)
            plain = not of.block.dataflow or not root.block.dataflow
            if cause.alone and not cause.leaks and plain:
                # In a dataflow block it is accepted, which is what the fragment was built in.
                near = Near(rule, rule.root, root, rule.root.size, [])
                reason = words.not_in_dataflow(of, near)
            else:
                given = (rule, cause, leaks, verdict.error, self._turning(of, cause))
                key = ("refused", rule.index, id(cause), *given[2:])
                reason = self._once(key, partial(words.refused, *given))
            if cause.flips or cause.leaks or reason.code != "check-refused":
                return reason
            first = first or reason
        return first or self._unnamed(of)

    def _turning(self, of: Def, cause: Cause) -> str:
        """The pass that gives an operator the layout that a check wants, by way of convolutions
        before it; "" where it does not."""
        wanted = {f.accepted for f in cause.flips if f.facet.label == "attr layout"}
        if len(wanted) != 1 or (layout := wanted.pop()) not in _KERNELS:
            return ""
        pair = [layout, _KERNELS[layout]]
        if layout not in self._turned:
            try:
                turned = relax.transform.ConvertLayout({_CONVOLUTION: pair})(self.mod)
            except Exception:  # what the pass dies of, it does not mend
                turned = self.mod
            self._turned[layout] = Index(turned)
        made = self._turned[layout].tagged.get(of.tag)
        if made is None or str(getattr(made.value.attrs, "layout", "")) != layout:
            return ""
        return f"relax.transform.ConvertLayout({{{_CONVOLUTION!r}: {pair}}})"

    # Rules that are off

    def _rule_off(self, of: Def) -> Reason | None:
        if self._off_found is None:
            here = {self.index.at(tag).op for tag in self.left}
            asked = [
                (rule.index, rule.fusion)
                for rule in self.off.rules
                if rule.roots is None or rule.root.names & here
            ]
            self._off_found = {}
            for verdict in survey(self.mod, asked).verdicts:
                if verdict.accepted:
                    for tag in verdict.ops:
                        self._off_found.setdefault(tag, []).append(verdict)
        for verdict in self._off_found.get(of.tag, ()):
            rule = self.off.rules[verdict.rule]
            if all(tag in self.left or self._before_owner(rule, tag) for tag in verdict.ops):
                ops = [self.index.at(tag).op for tag in verdict.ops]
                plain = not of.block.dataflow
                key = ("off", rule.index, tuple(ops), plain)
                return self._once(key, partial(words.rule_off, rule, ops, plain))
        return None

    def _before_owner(self, rule: Rule, tag: int) -> bool:
        """Whether a disabled rule comes, in the table, before the rule that took an operator."""
        mine = self.order.get(hash(rule.fusion))
        owner = self._owner(tag)
        if mine is None or not owner:
            return False
        theirs = [
            self.order.get(hash(other.fusion)) for other in self.book.rules if other.name == owner
        ]
        return all(place is not None and mine < place for place in theirs)

    # Operators that another match took

    def _taken(self, near: Near) -> list[tuple[Def, str]]:
        """The operators of a match that are not on TVM, each with the rule that took it."""
        gone = [d for d in near.parts if d.tag >= 0 and d.tag not in self.left]
        return [(d, self._owner(d.tag)) for d in gone]

    def _owner(self, tag: int) -> str:
        if self.owners is not None:
            return self.owners.get(tag, "")
        made = self.index.tagged.get(tag)
        if made is None:
            return ""
        refused = frozenset(v.rule for v in self.refusals.of(tag))
        near = self.nearest.find(made, refused)
        return near.rule.name if near is not None and near.ok else ""


def _has_tensor(ty: Any) -> bool:
    if isinstance(ty, relax.TupleType):
        return any(_has_tensor(field) for field in ty.fields)
    return isinstance(ty, relax.TensorType)
