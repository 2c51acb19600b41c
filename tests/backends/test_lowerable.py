"""Rules that take only what can be lowered."""

from __future__ import annotations

from typing import Any

import pytest
from tvm import relax
from tvm.relax.dpl import is_op, wildcard

import byocviz
from byocviz import backends
from byocviz.backends import Backend
from byocviz.backends.lowerable import function_of, only_lowerable
from byocviz.backends.refusal import Refusal, refuse, take
from byocviz.building.lower import check
from byocviz.errors import ArgumentError
from byocviz.recording import Recording
from tests.corpus.case import flow

WRONG = "R.sum(i)"
"""Of int8, which ONNX does not sum."""


def two_sums(first: str = "R.sum(x)") -> Any:
    return flow(
        'x: X, i: R.Tensor((4, 8), "int8")',
        f"a = {first}\nb = {WRONG}\nR.output(a, b)\nreturn (a, b)",
    )


def recorded(mod: Any, backend: str | Backend = "tensorrt", **how: Any) -> Recording:
    return byocviz.record(mod, backend, prune=False, progress=False, **how)


def test_what_cannot_be_lowered_stays_on_tvm_and_says_why() -> None:
    mod = two_sums()
    plain, asked = recorded(mod), recorded(mod, lowerable=True)
    assert plain.last.profile.offloaded_ops == 2
    assert asked.last.profile.offloaded_ops == 1
    (reason,) = asked.last.reasons.values()
    (error,) = [
        e
        for var, f in recorded(mod).__dict__["modules"]["partition"].functions_items()
        if "main" not in str(var)
        for e in check(f)
    ]
    assert reason.code == "not-lowerable"
    assert reason.rule == "tensorrt.sum"
    assert error.why in reason.text
    assert error.operator in reason.text
    assert reason.mend == error.mend
    assert reason.evidence["operator"] == error.operator
    assert reason.evidence[error.attribute] == str(error.value)


def test_operators_with_the_same_cause_share_one_reason() -> None:
    recording = recorded(two_sums(WRONG), lowerable=True)
    first, second = recording.last.reasons.values()
    assert first is second


def test_the_rule_s_own_check_comes_first() -> None:
    asked: list[Any] = []

    def never(context: Any) -> bool:
        asked.append(context.matched_expr)
        return False

    chip = Backend("chip", [("chip.sum", is_op("relax.sum")(wildcard()), {},
                             never)])  # fmt: skip
    recording = recorded(two_sums(), chip, lowerable=True)
    assert asked
    assert {r.code for r in recording.last.reasons.values()} == {"check-refused"}


def test_the_cause_of_an_own_check_is_still_found_in_it() -> None:
    """What is probed and shown is the rule's own code, not that which asks the lowering."""
    mod = flow("x: X", 'a = R.image.resize2d(x, R.shape([4, 4]), roi=[0.0, 0.0, 0.0, 0.0], '
               'layout="NCHW", method="linear", coordinate_transformation_mode='
               '"tf_half_pixel_for_nn")\nR.output(a)\nreturn a')  # fmt: skip
    plain, asked = (recorded(mod, lowerable=on).step("composite") for on in (False, True))
    assert list(asked.reasons.values()) == list(plain.reasons.values())
    (reason,) = asked.reasons.values()
    assert reason.code == "check-refused"
    assert "tensorrt.py" in reason.evidence["check"]


def test_the_text_of_the_table_makes_it() -> None:
    backend = backends.get("tensorrt").lowerable()
    scope: dict[str, Any] = {}
    exec(backend.table, scope)
    assert [p.name for p in scope["patterns"]] == [rule.name for rule in backend.rules()]
    mod = recorded(two_sums()).__dict__["modules"]["prepare"]
    fused = relax.transform.FuseOpsByPattern(scope["patterns"], bind_constants=True)(mod)
    assert len(fused.functions) == 2, "the entry and one composite function"
    assert "only_lowerable" in recorded(mod, lowerable=True).step("composite").call


def test_it_is_the_same_backend_else() -> None:
    plain = backends.get("tensorrt")
    asked = plain.lowerable()
    assert asked.lowerable() is asked
    assert (asked.name, asked.prune, asked.off) == (plain.name, plain.prune, plain.off)
    assert [r.name for r in asked.rules({"nn.relu": False}) if not r.enabled] == [
        "tensorrt.nn.relu"
    ]
    assert plain.rules()[0].fusion.check is None or not plain.lowers


def test_rules_added_later_ask_too() -> None:
    anything = ("chip.sum", is_op("relax.sum")(wildcard()))
    backend = Backend("chip", []).lowerable().with_rules(anything)
    assert recorded(two_sums(), backend).last.profile.offloaded_ops == 1


def test_a_match_becomes_the_function_that_tvm_outlines() -> None:
    mod = flow(
        "x: X, s: R.Shape([4, 64])",
        "a = R.nn.relu(x)\nb = R.add(a, B)\nc = R.reshape(b, s)\nd = R.add(c, c)\n"
        "R.output(b, d)\nreturn (b, d)",
    )
    add = is_op("relax.add")(is_op("relax.nn.relu")(wildcard()), wildcard())
    pattern = is_op("relax.reshape")(add, wildcard())
    made = []

    def check_(context: Any) -> bool:
        made.append(function_of(list(context.matched_bindings.items())[::-1],
                                context.matched_expr))  # fmt: skip
        return True

    done = relax.transform.FuseOpsByPattern([("chip.x", pattern, {}, check_)],
                                            bind_constants=True)(mod)  # fmt: skip
    (outlined,) = [f for v, f in done.functions_items() if v.name_hint != "main"]
    (function,) = made
    assert len(function.params) == len(outlined.params) == 2
    names = [
        [b.value.op.name for b in f.body.blocks[0].bindings if isinstance(b.value, relax.Call)]
        for f in (function, outlined)
    ]
    assert names[0] == names[1]
    assert check(function) == check(outlined) == []


def test_only_lowerable_is_a_bool() -> None:
    with pytest.raises(ArgumentError, match="lowerable"):
        recorded(two_sums(), lowerable="yes")


def test_a_refusal_is_taken_once() -> None:
    said = Refusal("mine", "it is too large.", "Split it.")
    assert refuse(said) is False
    assert take() is said
    assert take() is None


def test_a_check_of_a_backend_s_own_can_say_why() -> None:
    def small(context: Any) -> bool:
        return refuse(Refusal("too-large", "it does not fit.", "Split it.", (("limit", "8"),)))

    chip = Backend("chip", [("chip.sum", is_op("relax.sum")(wildcard()), {},
                             small)])  # fmt: skip
    for reason in recorded(two_sums(), chip).last.reasons.values():
        assert (reason.code, reason.mend, reason.evidence) == ("too-large", "Split it.",
                                                               {"limit": "8"})  # fmt: skip
        assert reason.text == "The rule chip.sum matches, but it does not fit."


def test_patterns_may_be_tuples() -> None:
    (made,) = only_lowerable([("chip.relu", is_op("relax.nn.relu")(wildcard()))])
    assert isinstance(made, relax.transform.FusionPattern)
    assert made.check is not None
