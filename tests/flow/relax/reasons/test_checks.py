from __future__ import annotations

import pytest
import tvm
import tvm.relax.backend.contrib.tensorrt
import tvm.relax.backend.cuda.cublas
from tvm import relax

from byocviz.flow.relax.reasons import record_checks
from byocviz.flow.relax.reasons.checks import survey
from byocviz.flow.relax.tag import Tagger

from .lab import anything, calls, const, conv_relu, module, op, table, tensor


def several():
    def build(emit, x, w):
        y = emit(op.matmul(x, w))
        y = emit(op.add(y, const(8, dtype="float32")))
        y = emit(op.nn.relu(y))
        return emit(op.matmul(y, w))

    return Tagger().tag(module(build, tensor((8, 8)), tensor((8, 8))))


@pytest.mark.parametrize("prefix", ["tensorrt", "cublas"])
def test_recording_changes_nothing(prefix):
    mod = several()
    rules = table(prefix)
    wrapped, _ = record_checks(rules)
    fuse = relax.transform.FuseOpsByPattern
    assert [r.name for r in wrapped] == [r.name for r in rules]
    tvm.ir.assert_structural_equal(fuse(wrapped)(mod), fuse(rules)(mod))
    assert all(a is b for a, b in zip(rules, wrapped, strict=True) if b.check is None)


def test_refusals_name_every_call_of_the_match():
    seen = []
    rule = conv_relu()
    rule = relax.transform.FusionPattern(
        rule.name, rule.pattern, {}, lambda context: seen.append(1) or False
    )

    def build(emit, x, w):
        return emit(op.nn.relu(emit(op.nn.conv2d(x, w))))

    mod = Tagger().tag(module(build, tensor((1, 2, 4, 4)), tensor((2, 2, 1, 1))))
    wrapped, refusals = record_checks([rule])
    fused = relax.transform.FuseOpsByPattern(wrapped)(mod)
    tags = calls(fused)
    assert len(seen) == 1
    assert sorted(tags.values()) == ["relax.nn.conv2d", "relax.nn.relu"]
    for tag in tags:
        (verdict,) = refusals.of(tag)
        assert set(verdict.ops) == set(tags)
        assert tags[verdict.root] == "relax.nn.relu"
        assert not verdict.accepted
    assert refusals.of(99) == []


def test_what_a_check_raises_is_noted_and_still_raised():
    def check(context):
        raise RuntimeError("out of ideas")

    wrapped, refusals = record_checks([anything("t.exp", "relax.exp", 1, check)])
    mod = Tagger().tag(module(lambda emit, x: emit(op.exp(x)), tensor((2,))))
    with pytest.raises(Exception, match="out of ideas"):
        relax.transform.FuseOpsByPattern(wrapped)(mod)
    (verdict,) = refusals.verdicts
    assert verdict.error == "RuntimeError: out of ideas"


def test_a_check_that_answers_nothing_is_noted_as_such():
    wrapped, refusals = record_checks([anything("t.exp", "relax.exp", 1, lambda context: None)])
    mod = Tagger().tag(module(lambda emit, x: emit(op.exp(x)), tensor((2,))))
    with pytest.raises(TypeError):
        relax.transform.FuseOpsByPattern(wrapped)(mod)
    assert "None" in refusals.verdicts[0].error


def test_survey_takes_nothing_and_meets_every_match():
    mod = several()
    rules = [anything("t.matmul", "relax.matmul", 2), anything("t.relu", "relax.nn.relu")]
    before = mod.script(show_meta=False)
    found = survey(mod, list(enumerate(rules)))
    assert mod.script(show_meta=False) == before
    names = calls(mod)
    assert [names[v.root] for v in found.verdicts] == ["relax.matmul"] * 2 + ["relax.nn.relu"]
    assert all(v.accepted for v in found.verdicts)


def test_survey_outlives_a_check_that_raises():
    def check(context):
        raise KeyError("root2")

    found = survey(several(), [(0, anything("t.relu", "relax.nn.relu", 1, check))])
    (verdict,) = found.verdicts
    assert not verdict.accepted
    assert verdict.error.startswith("KeyError")
