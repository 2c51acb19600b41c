"""Each cause that is told holds: with it gone, or its mend followed, the operator is taken."""

from __future__ import annotations

from tests.relay import needs_relay

needs_relay()

import numpy as np  # noqa: E402
import pytest  # noqa: E402
from tvm import relay  # noqa: E402
from tvm.relay.dataflow_pattern import is_constant, is_op, wildcard  # noqa: E402

import byocviz  # noqa: E402
from byocviz import Backend  # noqa: E402
from byocviz.backends import relay_table  # noqa: E402
from tests.corpus_relay.case import const, conv, main, x  # noqa: E402


def record(result, backend="tensorrt", **options):
    return byocviz.record(main(result), backend, progress=False, **options)


def reason(recording, name, step="annotate"):
    (found,) = [r for i, r in recording.step(step).reasons.items() if recording.ops[i].name == name]
    return found


def taken(recording, name):
    step = recording.step("annotate")
    return all(p.on != "tvm" for i, p in step.places.items() if recording.ops[i].name == name)


def test_no_rule_and_its_mend():
    recording = record(relay.round(x()))
    assert reason(recording, "round").code == "no-rule"
    more = relay_table.get("tensorrt").with_rules(("tensorrt.round", "round"))
    assert taken(record(relay.round(x()), more), "round")


def test_a_check_says_why_by_tvm_s_own_log():
    result = relay.reshape(x(), (2, 128))
    found = reason(record(result), "reshape")
    assert found.code == "check-refused"
    assert "can't modify batch dimension" in found.text
    assert found.evidence["check"].startswith("tensorrt.py:")
    assert "use_implicit_batch=False" in found.mend
    assert taken(record(result, relay_table.tensorrt(use_implicit_batch=False)), "reshape")


def test_a_version_that_is_too_old():
    result = relay.erf(x())
    found = reason(record(result), "erf")
    assert "TensorRT version 7.0.0" in found.text
    assert taken(record(result, relay_table.tensorrt(tensorrt_version="8.6.1")), "erf")


def test_a_dtype_and_half_precision():
    result = relay.nn.relu(x(dtype="float16"))
    found = reason(record(result), "nn.relu")
    assert "dtypes are supported" in found.text
    assert taken(record(result, relay_table.tensorrt(use_fp16=True)), "nn.relu")


def test_weights_that_are_no_constants():
    weight = relay.var("w", shape=(4, 4, 3, 3))
    result = relay.nn.conv2d(x(), weight, channels=4, kernel_size=(3, 3), padding=(1, 1))
    found = reason(record(result), "nn.conv2d")
    assert found.code == "other-form"
    assert "the parameter w, and the pattern wants a constant" in found.text
    params = {"w": np.ones((4, 4, 3, 3), "float32")}
    assert taken(record(result, params=params), "nn.conv2d")


def test_a_rule_that_never_matches():
    """TVM's rule for squeeze names two arguments."""
    result = relay.squeeze(x(shape=(1, 4, 1, 8)), axis=[2])
    found = reason(record(result), "squeeze")
    assert "squeeze has 1 argument, and the pattern names 2" in found.text
    pattern = is_op("squeeze")(wildcard())
    more = relay_table.get("tensorrt").with_rules(("tensorrt.squeeze1", pattern))
    assert taken(record(result, more), "squeeze")


def test_a_rule_that_is_off():
    recording = record(relay.nn.relu(x()), rules={"nn.relu": False})
    found = reason(recording, "nn.relu")
    assert (found.code, found.rule) == ("rule-off", "tensorrt.nn.relu")
    assert taken(record(relay.nn.relu(x())), "nn.relu")


def test_an_operator_rule_that_is_off():
    recording = record(relay.add(x(), x("y")), "tutorial", rules={"add": False})
    assert reason(recording, "add").code == "rule-off"
    assert taken(record(relay.add(x(), x("y")), "tutorial"), "add")


def test_used_outside_of_the_match():
    made = conv(x())
    result = relay.Tuple([relay.nn.relu(made), relay.tanh(made)])
    found = reason(record(result, "tutorial"), "nn.conv2d")
    assert found.code == "other-form"
    assert found.evidence == {"used outside": "nn.conv2d"}
    again = relay.Tuple([relay.nn.relu(conv(x())), relay.tanh(x())])
    assert taken(record(again, "tutorial"), "nn.conv2d")


def test_an_earlier_rule_took_part_of_it():
    one = is_op("nn.relu")(wildcard())
    both = is_op("tanh")(is_op("nn.relu")(wildcard()))
    table = [("mine.relu", one), ("mine.tanh_relu", both)]
    result = relay.tanh(relay.nn.relu(x()))
    found = reason(record(result, Backend("mine", table)), "tanh")
    assert found.evidence == {"taken": "nn.relu", "by": "mine.relu"}
    assert taken(record(result, Backend("mine", table[::-1])), "tanh")


def test_where_a_longer_pattern_departs():
    pattern = is_op("nn.relu")(is_op("add")(is_op("nn.conv2d")(wildcard(), wildcard()), wildcard()))
    backend = Backend("mine", [("mine.block", pattern)])
    recording = record(relay.nn.relu(relay.multiply(conv(x()), const((1, 4, 1, 1)))), backend)
    found = reason(recording, "nn.relu")
    assert "comes from multiply, and the pattern wants add" in found.text
    assert reason(recording, "nn.conv2d").code == "other-form"


def test_attributes_that_a_pattern_asks_for():
    pattern = is_op("nn.conv2d")(wildcard(), is_constant()).has_attr({"groups": 4})
    recording = record(conv(x()), Backend("mine", [("mine.depthwise", pattern)]))
    found = reason(recording, "nn.conv2d")
    assert "attribute groups of it is 1, and the pattern wants 4" in found.text


def test_a_check_of_one_s_own_without_a_word():
    backend = Backend("mine", [("mine.relu", is_op("nn.relu")(wildcard()), lambda _: False)])
    found = reason(record(relay.nn.relu(x()), backend), "nn.relu")
    assert found.code == "check-refused"
    assert "logs no cause" in found.text
    assert found.evidence["check"].startswith("test_reasons.py:")


def test_a_check_that_fails_ends_the_recording_with_its_name():
    def broken(_):
        raise KeyError("data")

    backend = Backend("mine", [("mine.relu", is_op("nn.relu")(wildcard()), broken)])
    recording = record(relay.nn.relu(x()), backend)
    assert recording.failed.name == "composite"
    assert "mine.relu" in recording.failed.error.message
    assert "KeyError" in recording.failed.error.message
    assert "rules={'mine.relu': False}" in recording.failed.error.mend


def test_what_an_operator_rule_will_take_is_said_before():
    recording = record(relay.add(x(), x("y")), "tutorial")
    assert reason(recording, "add", "composite").code == "later"


def test_pruned_by_tvm_and_by_a_policy():
    result = relay.nn.relu(relay.nn.relu(x()))
    (said,) = set(map(str, _causes(record(result))))
    assert "not a compute-intensize sub-graph" in said  # TVM's own spelling
    policy = byocviz.PrunePolicy(min_ops=3)
    (said,) = set(map(str, _causes(record(result, prune=policy))))
    assert "2 operators, at least 3 wanted" in said
    assert not _causes(record(result, prune=False))


def _causes(recording):
    return [r.text for r in recording.last.reasons.values() if r.code == "pruned"]


def test_the_log_is_as_it_was_after():
    import logging

    log = logging.getLogger("TensorRT")
    before = log.level, log.propagate, list(log.handlers)
    record(relay.reshape(x(), (2, 128)))
    assert (log.level, log.propagate, list(log.handlers)) == before


@pytest.mark.parametrize("name", ["dnnl", "tutorial"])
def test_tvm_s_registry_is_as_it_was_after(name):
    import tvm

    relay_table.get(name)
    key = f"target.{name}"
    before = relay_table._operator_checks(key)
    record(relay.add(x(), x("y")), name, rules={"add": False} if name == "tutorial" else None)
    after = relay_table._operator_checks(key)
    assert before.keys() == after.keys()
    assert isinstance(tvm.ir.Op.get("add"), tvm.ir.Op)


def test_a_dtype_that_half_precision_does_not_help():
    found = reason(record(relay.add(x(dtype="int32"), x("y", dtype="int32"))), "add")
    assert "dtypes are supported" in found.text
    assert "cast" in found.mend
    assert "float16" not in found.mend


def test_a_rule_for_a_backend_of_one_s_own_goes_to_the_object():
    backend = Backend("mychip", [("mychip.add", "add")])
    found = reason(record(relay.nn.relu(x()), backend), "nn.relu")
    assert 'backend.with_rules(("mychip.nn.relu", "nn.relu"))' in found.mend
    assert "relay_table" not in found.mend
    assert taken(record(relay.nn.relu(x()), backend.with_rules(("mychip.nn.relu", "nn.relu"))),
                 "nn.relu")  # fmt: skip


def test_what_is_pruned_for_a_scalar_input():
    result = relay.multiply(conv(x()), relay.var("s", shape=()))
    found = reason(record(result), "multiply", "prune")
    assert (found.code, "scalar" in found.text) == ("pruned", True)
    assert "threshold" not in found.mend
    assert "tensorrt(use_implicit_batch=False)" in found.mend
    explicit = relay_table.tensorrt(use_implicit_batch=False)
    assert record(result, explicit).last.subgraphs
