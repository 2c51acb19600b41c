"""What is given and does not fit is refused, with the mend."""

from __future__ import annotations

from tests.relay import needs_relay

needs_relay()

import numpy as np  # noqa: E402
import pytest  # noqa: E402
from tvm import relay  # noqa: E402
from tvm.relay.dataflow_pattern import is_op, wildcard  # noqa: E402

import byocviz  # noqa: E402
from byocviz import Backend  # noqa: E402
from byocviz.backends import relay_table  # noqa: E402
from byocviz.errors import BackendError, ModuleError, StepMissing  # noqa: E402
from tests.corpus_relay.case import conv, main, x  # noqa: E402
from tests.corpus_relay.straight import bound_weights  # noqa: E402


def record(**options):
    options = {"backend": "tensorrt", "progress": False, **options}
    return byocviz.record(main(relay.nn.relu(conv(x()))), **options)


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"entry": "forward"}, ModuleError, "record(mod, entry='main')"),
        ({"backend": "nothing"}, BackendError, "tutorial"),
        ({"rules": {"tensorrt.nn.conv9d": False}}, BackendError, "Did you mean"),
        ({"prepare": {"clip": False}}, StepMissing, "convert-layout"),
        ({"lowerable": True}, BackendError, "lowerable"),
        ({"params": {"nothing": np.ones(3)}}, ModuleError, "None of params"),
        ({"params": [1]}, ModuleError, "mapping"),
        ({"backend": Backend("mine", [])}, BackendError, "no rules"),
        ({"backend": Backend("mine", [("mine.x", 3)])}, BackendError, "int for a pattern"),
        ({"backend": Backend("mine", ["x"])}, BackendError, "no Relay rule"),
        ({"verify": True, "inputs": {"y": np.ones(3)}}, ModuleError, "no parameter 'y'"),
        ({"verify": True, "inputs": [np.ones(3), 1]}, ModuleError, "2 values"),
        ({"verify": True, "inputs": {"x": np.ones(3)}}, ModuleError, "float64[3]"),
    ],
)
def test_refused(options, error, said):
    with pytest.raises(error) as caught:
        record(**options)
    assert said in str(caught.value)
    assert caught.value.mend


def test_a_rule_of_another_s_name():
    backend = Backend("mine", [("yours.relu", is_op("nn.relu")(wildcard()))])
    with pytest.raises(BackendError, match=r"mine\.relu"):
        record(backend=backend)


def test_weights_that_do_not_fit():
    with pytest.raises(ModuleError, match="float32"):
        byocviz.record(main(bound_weights()), params={"w": np.ones((4, 4))}, progress=False)


def test_an_unknown_option_of_tensorrt():
    with pytest.raises(BackendError, match="use_implicit_batch"):
        relay_table.tensorrt(precision="fp16")


def test_options_are_in_the_recording():
    recording = record(backend=relay_table.tensorrt(use_implicit_batch=False))
    assert recording.backend.options["use_implicit_batch"] == "False"
    assert recording.backend.options["remove_no_mac_subgraphs"] == "True"
    assert "use_implicit_batch='False'" in recording.step("composite").call


def test_what_verifying_cannot_run_is_said():
    function = relay.FuncType([relay.TensorType((2,))], relay.TensorType((2,)))
    result = relay.Call(relay.var("f", type_annotation=function), [x(shape=(2,))])
    recording = byocviz.record(main(result), verify=True, progress=False)
    assert "Give it in inputs" in recording.steps[0].verify_error
    assert all(step.max_difference is None for step in recording.steps)
