"""A check that fails ends TVM's pass: the recording says which check, where, and what it did."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from tvm import relax

import byocviz
from byocviz.flow.relax.reasons import record_checks
from byocviz.flow.relax.tag import Tagger

from .lab import anything, module, op, tensor

NAME = "mychip.exp"


def missing(context):
    return {"root": 1}["zzz"]


def misspelt(context):
    return context.annotated_expr["rooot"].ty.ndim == 1


def helper(size):
    raise ValueError(f"no size {size}")


def helped(context):
    return helper(7)


def falls_through(context):
    if context.annotated_expr["root"].ty.ndim == 9:
        return True


class OwnError(Exception):
    pass


def own(context):
    raise OwnError("mine")


def expression(context):
    return context.annotated_expr["root"].ty.shape[0] % 2 == 0


FAULTS = [
    (missing, 1, "raised KeyError('zzz').", "'root'"),
    (misspelt, 1, "raised KeyError(", "'root'"),
    (helped, 1, "raised ValueError('no size 7') in helper (", "True or False"),
    (falls_through, 1, "returned None, which is no truth value.", "return False"),
    (own, 1, "raised OwnError('mine').", "True or False"),
    (expression, 1, "which is no truth value.", "int(dimension)"),
    (lambda context: np.bool_(True), 0, "returned np.True_ (numpy.bool), which", "bool(...)"),
    (lambda context: "yes", 0, "returned 'yes' (str), which is no truth value.", "bool(...)"),
]


def fused(check, size=2):
    backend = byocviz.Backend("mychip", [anything(NAME, "relax.exp", 1, check)])
    return module(lambda emit, x: emit(op.exp(x)), tensor((size,))), backend


@pytest.mark.parametrize(
    ("check", "line", "said", "mend"), FAULTS, ids=[f[0].__name__ + str(f[2][:12]) for f in FAULTS]
)
def test_a_failing_check_is_named_with_its_place(check, line, said, mend):
    mod, backend = fused(check)
    recording = byocviz.record(mod, backend, progress=False)
    assert [step.name for step in recording.steps] == ["import", "prepare", "composite"]
    error = recording.failed.error
    place = f"tests/flow/relax/reasons/test_faults.py:{check.__code__.co_firstlineno + line}"
    assert error.message.startswith(f"The check of {NAME} ({place}) r")
    assert said in error.message
    assert "\n" not in error.message
    assert mend in error.mend
    assert error.trace
    # Until it is mended, the rule can be left out as the mend says.
    assert f"rules={{{NAME!r}: False}}" in error.mend
    assert byocviz.record(mod, backend, rules={NAME: False}, progress=False).failed is None


def test_following_the_mends():
    def settled(context):
        root = context.annotated_expr["root"]
        return root.ty.ndim == 1 and isinstance(root.ty.shape[0], tvm.tirx.IntImm)

    def divisible(context):
        size = context.annotated_expr["root"].ty.shape[0]
        return isinstance(size, tvm.tirx.IntImm) and int(size) % 2 == 0

    for check in (settled, divisible, lambda context: bool(np.bool_(True))):
        recording = byocviz.record(*fused(check), progress=False)
        assert recording.failed is None
        assert recording.last.profile.subgraphs == 1


def test_a_comparison_with_a_symbol_is_told_by_its_own_words():
    size = tvm.tirx.Var("n", "int64")
    error = byocviz.record(*fused(expression, size), progress=False).failed.error
    assert "n % " in error.message
    assert "(EQ)" in error.message
    line = 'return context.annotated_expr["root"].ty.shape[0] % 2 == 0'
    assert error.message.endswith(f"The line: {line}")


def test_a_check_that_is_not_settled():
    asked = []

    def once(context):
        asked.append(1)
        if len(asked) == 1:
            raise RuntimeError("the first time only")
        return True

    error = byocviz.record(*fused(once), progress=False).failed.error
    assert "asked again, said True" in error.message
    assert "nothing but the match" in error.mend


def test_no_fault_where_every_check_answers():
    wrapped, refusals = record_checks([anything("t.exp", "relax.exp", 1, lambda context: 0)])
    mod = Tagger().tag(module(lambda emit, x: emit(op.exp(x)), tensor((2,))))
    relax.transform.FuseOpsByPattern(wrapped)(mod)
    assert refusals.fault() is None
    assert len(refusals.verdicts) == 1
