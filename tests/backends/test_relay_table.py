"""The backends of Relay modules: TVM's tables, the tutorial's, and one's own."""

from __future__ import annotations

from tests.relay import needs_relay

needs_relay()

import pytest  # noqa: E402
import tvm  # noqa: E402
from tvm.relay.dataflow_pattern import is_op, wildcard  # noqa: E402

from byocviz import Backend  # noqa: E402
from byocviz.backends import relay_table  # noqa: E402
from byocviz.errors import BackendError  # noqa: E402


def test_tvm_s_tables_are_read():
    assert len(relay_table.rules(relay_table.get("tensorrt"))) == 59
    dnnl = relay_table.rules(relay_table.get("dnnl"))
    assert any(rule.pattern is None for rule in dnnl)
    assert any(rule.pattern is not None for rule in dnnl)
    # MergeComposite comes before AnnotateTarget.
    kinds = [rule.pattern is None for rule in dnnl]
    assert kinds == sorted(kinds)


@pytest.mark.parametrize("name", ["arm_compute_lib", "bnns", "clml", "cublas", "dnnl", "tutorial"])
def test_every_table_makes_rules(name):
    assert name in relay_table.names()
    assert relay_table.rules(relay_table.get(name))


def test_a_name_without_rules():
    with pytest.raises(BackendError, match="coreml"):
        relay_table.get("coreml")


def test_a_target_by_name_that_someone_registered():
    op = tvm.ir.Op.get("add")
    op.set_attr("target.mychip", lambda _: True)
    try:
        (rule,) = relay_table.rules(relay_table.get("mychip"))
    finally:
        op.reset_attr("target.mychip")
    assert (rule.name, rule.op, rule.pattern) == ("mychip.add", "add", None)
    with pytest.raises(BackendError, match="mychip"):
        relay_table.get("mychip")


def test_switches():
    backend = Backend("mine", [("mine.a", is_op("nn.relu")(wildcard())), ("mine.b", "add")])
    on = [rule.enabled for rule in relay_table.rules(backend, {"b": False})]
    assert on == [True, False]
    assert [rule.enabled for rule in relay_table.rules(backend, ["mine.b"])] == [False, True]
    assert [name for name, _, _ in relay_table.table(backend)] == ["mine.a"]
    assert relay_table.operator_checks(backend) == {"add": None}
    assert relay_table.operator_checks(backend, {"mine.b"}) == {}


def test_operator_rules_hide_what_is_registered():
    op = tvm.ir.Op.get("add")
    op.set_attr("target.hidden", lambda _: True)
    try:
        with relay_table.operator_rules("hidden", {"tanh": None}):
            assert op.get_attr("target.hidden") is None
            assert tvm.ir.Op.get("tanh").get_attr("target.hidden") is not None
        assert op.get_attr("target.hidden") is not None
        assert tvm.ir.Op.get("tanh").get_attr("target.hidden") is None
    finally:
        op.reset_attr("target.hidden")


def test_tensorrt_s_target_is_answered_and_put_back():
    from tvm.relay.op.contrib import tensorrt

    before = tensorrt.get_tensorrt_target
    with relay_table.tensorrt_target(tensorrt_version="8.6.1", use_fp16=True):
        assert tensorrt.get_tensorrt_version() == (8, 6, 1)
        assert tensorrt.get_tensorrt_use_fp16()
        assert tensorrt.get_tensorrt_use_implicit_batch_mode()
    assert tensorrt.get_tensorrt_target is before
    with pytest.raises(BackendError, match="no option"), relay_table.tensorrt_target(speed=1):
        pass
