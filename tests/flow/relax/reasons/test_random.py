"""Random programs: every operator that is left has a reason, and the reason holds."""

from __future__ import annotations

from collections import Counter

import numpy as np
import tvm
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tvm import relax
from tvm.relax.dpl import is_const, is_op, wildcard

from .lab import Case, anything, calls, module, op, rule, tensor

OPS = {
    "relax.exp": lambda e, a, b: e(op.exp(a)),
    "relax.nn.relu": lambda e, a, b: e(op.nn.relu(a)),
    "relax.add": lambda e, a, b: e(op.add(a, b)),
    "relax.matmul": lambda e, a, b: e(op.matmul(a, b)),
    "relax.concat": lambda e, a, b: e(op.concat([a, b])),
    "relax.maximum": lambda e, a, b: e(op.maximum(a, b)),
}


def pool():
    matmul = lambda: is_op("relax.matmul")(wildcard(), wildcard())  # noqa: E731
    return [
        rule("r.mm_add_relu", is_op("relax.nn.relu")(is_op("relax.add")(matmul(), wildcard()))),
        rule("r.mm_relu", is_op("relax.nn.relu")(matmul())),
        rule("r.mm_const", is_op("relax.matmul")(wildcard(), is_const())),
        rule("r.exp_exp", is_op("relax.exp")(is_op("relax.exp")(wildcard()))),
        anything("r.relu", "relax.nn.relu"),
        anything("r.max", "relax.maximum", 2, lambda c: c.annotated_expr["root"].args[0].ty.ndim
                 == 3),
        anything("r.add3", "relax.add", 3),
    ]  # fmt: skip


@st.composite
def programs(draw):
    names = sorted(OPS)
    steps = draw(st.lists(st.tuples(st.sampled_from(names), st.integers(0, 50),
                                    st.integers(0, 50)), min_size=1, max_size=12))  # fmt: skip
    plain = draw(st.booleans())

    def build(emit, x, y):
        values = [x, y, relax.const(np.ones((4, 4), "float32"))]
        for name, first, second in steps:
            a, b = values[first % len(values)], values[second % len(values)]
            if name == "relax.concat":
                made = emit(op.split(OPS[name](emit, a, b), 2))
                values.append(emit(relax.TupleGetItem(made, second % 2)))
            else:
                values.append(OPS[name](emit, a, b))
        return values[-1]

    return module(build, tensor((4, 4)), tensor((4, 4)), plain=plain)


@settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs(), st.permutations(range(7)), st.integers(0, 7))
def test_random_programs(mod, order, enabled):
    rules = [pool()[i] for i in order]
    try:
        case = Case(mod, rules[:enabled], disabled=rules[enabled:])
    except tvm.error.InternalError as error:
        # A pattern whose match would depend on itself: the pass dies, there is nothing to explain.
        if "cyclic" not in str(error):
            raise
        return
    named = Counter(n for r in rules[:enabled] for n in _names(r))
    for tag, reason in case.reasons.items():
        name = case.left[tag]
        if reason.code == "no-rule":
            assert name not in named
        elif reason.code == "rule-off":
            (off,) = [r for r in rules[enabled:] if r.name == reason.rule]
            ready = relax.transform.ConvertToDataflow(min_size=1)(case.module)
            # Added last, so that nothing that is taken now is taken from its rule.
            fused = _fuse([*rules[:enabled], off], ready)
            if fused is not None:
                assert tag not in calls(fused) or _overlaps(reason.rule, case)
        elif reason.code == "not-in-dataflow":
            assert name in named
            ready = relax.transform.ConvertToDataflow(min_size=1)(case.module)
            fused = _fuse(rules[:enabled], ready)
            if fused is not None and tag in calls(fused):
                again = Case(ready, rules[:enabled]).reasons[tag]
                assert again.evidence.get("matches") == "by itself"
        elif reason.code == "check-refused":
            assert reason.rule == "r.max"
            assert reason.evidence["accepted"] == "3"
        else:
            assert reason.code == "other-form"
            assert name in named


def _names(fusion):
    from byocviz.flow.relax.reasons import names_in

    return names_in(fusion.pattern)


def _fuse(rules, mod):
    try:
        return relax.transform.FuseOpsByPattern(rules)(mod)
    except tvm.error.InternalError:
        return None


def _overlaps(name, case):
    """Matches of one rule can overlap; of two that do, the pass takes the first."""
    return name in ("r.exp_exp", "r.mm_relu", "r.mm_add_relu")
