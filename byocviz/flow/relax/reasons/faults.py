"""Checks that fail: they raise, or return what is no truth value, and end TVM's pass with it."""

from __future__ import annotations

from typing import Any

from byocviz.flow.relax.reasons.trace import Answer, answer_text, is_answer, safe_repr


def fault(rule: Any, context: Any) -> tuple[str, str]:
    """What is wrong with a rule's check that failed on a match, and the mend.

    The check is asked once more, so that its frames can be seen: TVM's own error names neither
    the rule nor the line.
    """
    answer = Answer()
    answer.watch(rule.check, context)
    name = str(rule.name)
    place = answer.where()
    text = f"The check of {name}" + (f" ({place})" if place else "")
    if answer.raised is not None:
        origin = answer.origin()
        text += f" raised {safe_repr(answer.raised)}" + (f" in {origin}." if origin else ".")
        mend = _mend_raised(rule, answer.raised)
    elif is_answer(answer.said):
        text += f" failed and, asked again, said {bool(answer.said)}: its answer is not settled."
        mend = "Let the check depend on nothing but the match that it is given."
    else:
        text += f" returned {answer_text(answer.said)}, which is no truth value."
        mend = _mend_returned(answer.said)
    line = answer.line()
    if line:
        text += f" The line: {line}"
    mend += f" Until then record(..., rules={{{name!r}: False}}) leaves the rule out."
    return text, mend


def _mend_raised(rule: Any, raised: BaseException) -> str:
    mend = "Mend the check: it must return True or False for every match of the pattern."
    if isinstance(raised, KeyError):
        known = [str(name) for name in dict(rule.annotation_patterns or {})]
        names = ", ".join(repr(name) for name in known) or "nothing"
        mend += (
            f" context.annotated_expr holds what the rule's annotations name (its third part): "
            f"{names}."
        )
    return mend


def _mend_returned(said: Any) -> str:
    if said is None:
        return "Let every way through the check end with return True or return False."
    kind = type(said)
    if kind.__module__.startswith("tvm"):
        return (
            "TVM's expressions are no truth values: take int(dimension), after "
            "isinstance(dimension, tvm.tirx.IntImm), and compare that."
        )
    return "Let the check return a bool: bool(...) round what it returns."
