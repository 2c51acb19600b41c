"""Reasons in words: what each code says and how it is mended."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from byocviz.backends.refusal import Refusal
from byocviz.flow.relax.reasons.graph import Def
from byocviz.flow.relax.reasons.matcher import Mismatch
from byocviz.flow.relax.reasons.nearest import Near
from byocviz.flow.relax.reasons.patterns import Rule
from byocviz.flow.relax.reasons.probe import TIME, Cause, Flip
from byocviz.flow.relax.reasons.sizes import DIM
from byocviz.recording.schema import Reason

_DATAFLOW = "relax.transform.ConvertToDataflow(min_size=1)"
_BIND = (
    "Bind the parameters so that it is a constant (record(params=...), or "
    "relax.transform.BindParams); fold what computes it (relax.transform.FoldConstant)."
)


def no_rule(of: Def, backend: str, prefix: str, converted: bool) -> Reason:
    """``backend`` is Python text that gives the backend. ``converted`` is False where it takes
    only what byocviz has converters for, and it has none for the operator."""
    args = ", ".join(["wildcard()"] * len(of.args))
    short = of.op.removeprefix("relax.")
    if not converted:
        return Reason(
            "no-rule",
            f"No enabled rule's pattern names {of.op}, and byocviz has no converter for it.",
            f"Write a converter, a function under @byocviz.building.lower.converter({of.op!r}), "
            f"and a rule for it (Backend.with_rules).",
            evidence={"operator": of.op},
        )
    return Reason(
        "no-rule",
        f"No enabled rule's pattern names {of.op}.",
        f"Add a rule, where the backend can run it: from tvm.relax.dpl import "
        f"is_op{', wildcard' if args else ''}; {backend}.with_rules("
        f'("{prefix}.{short}", is_op("{of.op}")({args}))); `blockers()` (on the command line: '
        f"--blockers) says what that would gain.",
        evidence={"operator": of.op},
    )


def function_call(of: Def, callee: str) -> Reason:
    return Reason(
        "no-rule",
        f"This calls {callee}. No enabled rule's pattern names it; its operators have reasons of "
        f"their own.",
        "Inline the function (relax.transform.InlinePrivateFunctions) where its operators should "
        "join the caller's.",
        evidence={"callee": callee},
    )


def no_tensor(of: Def, shape: str, prefix: str, symbols: Sequence[str] | None) -> Reason:
    """It gives ``shape``, or something else that is no tensor, or takes nothing but it.

    ``symbols`` are the names of the dimensions without a size; with sizes for them the prepare
    step computes it ahead. None: nothing does.
    """
    gives = of.op != "relax.shape_to_tensor"
    mend = "Nothing to offload: TVM's virtual machine does it."
    if symbols is not None:
        mend += " The prepare step computes it ahead (record(..., prepare=True))"
        if symbols:
            numbers = ", ".join(f'"{name}": number' for name in symbols)
            mend += f" once the shapes are fixed: relax.transform.BindSymbolicVars({{{numbers}}})"
        mend += "."
    return Reason(
        "no-tensor",
        f"{of.op} {'gives' if gives else 'takes'} no tensor but {shape}; no rule names it.",
        mend,
        evidence={"result" if gives else "argument": shape, "backend": prefix},
    )


def rule_off(rule: Rule, ops: Sequence[str], plain: bool) -> Reason:
    mend = f"Switch the rule {rule.name} on."
    evidence = {"match": ", ".join(ops)}
    if plain:
        mend += f" The operator is in no dataflow block either: {_DATAFLOW}(mod)."
        evidence["dataflow"] = "no"
    return Reason(
        "rule-off",
        f"The rule {rule.name} would take it and is switched off.",
        mend,
        rule.name,
        evidence,
    )


def not_in_dataflow(of: Def, near: Near) -> Reason:
    block = of.block
    where = f"{block.inside} of function {block.function}" if block.inside else ""
    where = where or f"function {block.function}"
    text = (
        f"The rule {near.rule.name} matches, but {of.name} lies in a plain binding block "
        f"({where}); FuseOpsByPattern works in dataflow blocks only."
    )
    if block.dataflow and near.root is not None:
        text = (
            f"The rule {near.rule.name} matches, but its last call {near.root.name} lies in a "
            f"plain binding block; FuseOpsByPattern works in dataflow blocks only."
        )
    return Reason(
        "not-in-dataflow",
        text,
        f"Run {_DATAFLOW}(mod) first (the prepare step does).",
        near.rule.name,
        {"block": "plain", "function": block.function},
    )


def passed_by(of: Def, near: Near, marked: str, backend: str = "") -> Reason:
    """The function itself is ``marked``, with Primitive or Codegen (of ``backend``)."""
    name = of.block.function
    mend = f"Record the module before the pass that made {name} a composite or fused function."
    said = marked
    if backend:
        said = f"{marked}={backend!r}"
        mend = (
            f"Record the module before the pass that gave {name} to {backend}; or, where it is "
            f"not partitioned yet, drop the attribute: mod[{name!r}] = "
            f"mod[{name!r}].without_attr({marked!r})."
        )
    return Reason(
        "other-form",
        f"The rule {near.rule.name} matches, but function {name} has the attribute {said}, and "
        f"FuseOpsByPattern passes such functions by.",
        mend,
        near.rule.name,
        {"function": name, "attribute": said},
    )


def lost(near: Near, taken: Iterable[tuple[Def, str]]) -> Reason:
    """The rule matches by itself; another match took part of it first."""
    rule = near.rule.name
    parts = list(taken)
    if not parts:
        return Reason(
            "other-form",
            f"The rule {rule} matches by itself, yet the pass did not take it, and none of its "
            f"operators is in another match.",
            f"Run FuseOpsByPattern with {rule} alone to see whether it takes the operator.",
            rule,
            {"matches": "by itself"},
        )
    said = [f"{d.op} ({d.name})" + (f" by {owner}" if owner else "") for d, owner in parts]
    owners = list(dict.fromkeys(owner for _, owner in parts if owner))
    other = " and ".join(owners) or "a rule before it"
    same = owners == [rule]
    text = f"The rule {rule} matches by itself, but part of it was taken first: {'; '.join(said)}."
    mend = (
        f"The matches of {rule} overlap and the first in the code wins; a rule for this operator "
        f"alone takes what is left over."
        if same
        else f"Put {rule} before {other}, or switch {other} off."
    )
    return Reason(
        "other-form", text, mend, rule,
        {"matches": "by itself", "taken": "; ".join(said), "by": other},
    )  # fmt: skip


def other_form(near: Near) -> Reason:
    first = near.why[0]
    rule = near.rule.name
    text = f"Rule {rule} {first.text()}."
    if len(near.why) > 1:
        text += " Also: it " + "; it ".join(m.text() for m in near.why[1:4]) + "."
    evidence = {"wants": first.wanted, "found": first.found, "at": first.place}
    for number, more in enumerate(near.why[1:4], 2):
        evidence[f"{number}"] = more.text()
    return Reason("other-form", text, _mend(first, rule), rule, evidence)


def _mend(first: Mismatch, rule: str) -> str:
    kind = first.kind
    if kind == "constant":
        return _BIND
    if kind == "count":
        return (
            f"Add a form of {rule} with {first.found} arguments, or give the pattern "
            "varg_default_wildcard=True."
        )
    if kind == "user":
        return (
            f"Where {first.wanted} should follow, bring it there; otherwise add a rule that ends "
            f"with {first.place.partition(' (')[0]}."
        )
    if kind == "instead":
        return f"It is an input of that match; add a rule for {first.pat.say()} alone."
    if kind == "attr":
        return f"Export the model with {first.wanted}, or add a form of {rule} without has_attr."
    if kind == "dtype":
        return (
            f"Bring it to {first.wanted} (relax.transform.ToMixedPrecision, or a cast in the "
            f"model), or add a form of {rule} for {first.found}."
        )
    if kind == "shape":
        return f"Fix the shape in the model, or add a form of {rule} without has_shape."
    return f"Add a form of {rule} for what stands there: {first.found}."


def stated(rule: Rule, refusal: Refusal) -> Reason:
    """The check refused and says why itself."""
    return Reason(
        refusal.code,
        f"The rule {rule.name} matches, but {refusal.text}",
        refusal.mend,
        rule.name,
        dict(refusal.evidence),
    )


def refused(
    rule: Rule, cause: Cause, leaks: Sequence[str], error: str, turning: str = ""
) -> Reason:
    """The check refused; ``cause`` says why as far as probing shows. ``turning`` is the pass that
    gives the operator the layout which the check wants."""
    what = rule.name
    evidence: dict[str, str] = {}
    error = cause.error or error
    if cause.flips:
        seen = " together with ".join(_seen(flip) for flip in cause.flips)
        accepted = " and ".join(_accepted(f, len(cause.flips) > 1) for f in cause.flips)
        text = f"{what} refuses {seen}; with {accepted} it matches."
        for flip in cause.flips:
            evidence[flip.facet.label] = _sized(flip, flip.facet.seen)
        evidence["accepted"] = (
            _sized(cause.flips[0], cause.flips[0].accepted)
            if len(cause.flips) == 1
            else ", ".join(_becomes(flip) for flip in cause.flips)
        )
        if cause.others:
            evidence["or"] = "; ".join(_becomes(flip) for flip in cause.others)
        mend = _mend_flips(cause.flips, turning)
    elif leaks:
        names = ", ".join(f"%{name}" for name in leaks)
        text = (
            f"{what} takes this by itself; here its check refuses because {names}, inside the "
            f"match, {'are' if len(leaks) > 1 else 'is'} also used outside it."
        )
        evidence["used outside"] = names
        mend = (
            f"Remove the use of {names} outside the match (compute it twice, or drop the output), "
            f"or add a rule that ends there."
        )
    elif cause.alone:
        text = (
            f"{what} takes this by itself; its check refuses it in these surroundings and does "
            f"not say what in them."
        )
        evidence["alone"] = "accepted"
        mend = f"See the check at {cause.where}." if cause.where else "See the rule's check."
    elif cause.stopped:
        text = (
            f"The check of {what} refuses; no change was found in the time given: it takes long "
            f"to answer, and checks are asked with changed inputs for {TIME:g} s in all."
        )
        evidence["probing"] = "stopped"
        mend = f"See the check at {cause.where}." if cause.where else "See the rule's check."
    else:
        text = (
            f"The check of {what} refuses; no change of its attributes, dtypes, shapes or "
            f"constants, alone or together, was found that lets it match."
        )
        mend = f"See the check at {cause.where}." if cause.where else "See the rule's check."
    if error:
        text = f"The check of {what} raised {error}; " + text[0].lower() + text[1:]
        evidence["raised"] = error
    if cause.where:
        evidence["check"] = cause.where
    if cause.condition:
        evidence["refused at"] = cause.condition
    return Reason("check-refused", text, mend, what, evidence)


def _seen(flip: Flip) -> str:
    facet = flip.facet
    if facet.kind == "shape":
        return f"{facet.label}: {_sized(flip, facet.seen)}"
    if facet.kind == "symbol":
        several = len(facet.parts) > 1
        return f"{facet.label}: {facet.seen}" if several else f"{facet.label} of {facet.seen}"
    if facet.kind == "symbolic":
        return f"{facet.label}, {facet.seen}"
    if facet.kind in ("constant", "variable"):
        return f"{facet.label} as {facet.seen}"
    if facet.kind == "attr":
        return f"{_short(flip)} {_literal(facet.seen)}"
    return facet.label if facet.seen in facet.label else f"{facet.label} {facet.seen}"


def _accepted(flip: Flip, named: bool) -> str:
    facet = flip.facet
    if facet.kind == "attr":
        accepted = _literal(flip.accepted)
        return f"{_short(flip)} {accepted}" if named else accepted
    if facet.kind == "symbol":
        return "numbers in their place" if len(facet.parts) > 1 else "a number in its place"
    if facet.kind == "shape":
        return f"{facet.label}: {_sized(flip, flip.accepted)}" if named else flip.accepted
    return f"{facet.label} {flip.accepted}" if named else flip.accepted


def _becomes(flip: Flip) -> str:
    joint = ": " if flip.facet.kind == "shape" else "="
    return f"{_short(flip)}{joint}{_sized(flip, flip.accepted)}"


def _sized(flip: Flip, text: str) -> str:
    return f"size {text}" if flip.facet.kind == "shape" else text


def _short(flip: Flip) -> str:
    return flip.facet.label.removeprefix("attr ")


def _literal(text: str) -> str:
    """An attribute's value as a script writes it: words in quotes, numbers and lists without."""
    try:
        return text if not isinstance(ast.literal_eval(text), str) else repr(text)
    except (SyntaxError, ValueError):
        return repr(text)


def _mend_flips(flips: Sequence[Flip], turning: str) -> str:
    layouts = [f for f in flips if f.facet.kind == "attr" and "layout" in f.facet.label]
    said = []
    if layouts:
        wanted = {_short(f).partition(" of ")[0]: f.accepted for f in layouts}
        text = ", ".join(f"{name}={value}" for name, value in wanted.items())
        if {"data_layout", "kernel_layout"} <= wanted.keys():
            pair = [wanted["data_layout"], wanted["kernel_layout"]]
            turning = f"relax.transform.ConvertLayout({{{layouts[0].facet.ops[0]!r}: {pair}}})"
        turned = "put relax.permute_dims before and after it"
        if turning:
            turned = f"{turning} (it adds permute_dims at the borders of the part that it converts)"
        said.append(f"Bring it to {text}: export the model that way, or {turned}.")
    said += [_mend_flip(flip) for flip in flips if flip not in layouts]
    if layouts and any(flip.facet.kind == "shape" for flip in flips):
        said.append("The axes are those of the new layout.")
    return " ".join(dict.fromkeys(said))


def _mend_flip(flip: Flip) -> str:
    facet = flip.facet
    name = facet.label
    if facet.kind == "attr":
        follows = "; the weight's shape follows" if _short(flip).startswith("groups") else ""
        return f"Export the model with {_short(flip)}={_literal(flip.accepted)}{follows}."
    if facet.kind == "dtype":
        return (
            f"Bring it to {flip.accepted}: a cast in the model (relax.op.astype), or "
            f"relax.transform.ToMixedPrecision."
        )
    if facet.kind == "symbol":
        numbers = ", ".join(f'"{name}": number' for name in facet.parts)
        return (
            f"Fix the shapes: relax.transform.BindSymbolicVars({{{numbers}}}), or at import; "
            f"{DIM} was tried."
        )
    if facet.kind == "symbolic":
        if facet.seen == "a variable":
            return "Give the shape as numbers in the call: fix the input shapes at import."
        return "Give it a known shape: fix the input shapes at import."
    if facet.kind == "constant":
        return _BIND
    if facet.kind == "variable":
        return "Leave it a parameter: do not bind it."
    if facet.kind == "shape":
        has = "have" if len(facet.parts) > 1 else "has"
        return (
            f"Change the model so that {name} {has} size {flip.accepted}, padding or reshaping "
            f"round it."
        )
    if facet.kind == "rank":
        return f"Change the model so that {name} is {flip.accepted}, reshaping round it."
    return f"Change the model so that {name} is {flip.accepted}."
