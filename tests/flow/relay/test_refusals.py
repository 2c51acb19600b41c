"""What is given and does not fit is refused, with the mend."""

from __future__ import annotations

import sys

from tests.relay import needs_relay

needs_relay()

import numpy as np  # noqa: E402
import pytest  # noqa: E402
import tvm  # noqa: E402
from tvm import relay  # noqa: E402
from tvm.relay.dataflow_pattern import is_op, wildcard  # noqa: E402

import byocviz  # noqa: E402
from byocviz import Backend  # noqa: E402
from byocviz.backends import relay_table  # noqa: E402
from byocviz.errors import BackendError, ModuleError, StepMissing  # noqa: E402
from byocviz.recording import from_bytes, to_bytes  # noqa: E402
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
        ({"params": {"nothing": np.ones(3)}}, ModuleError, "None of params"),
        ({"params": [1]}, ModuleError, "mapping"),
        ({"backend": Backend("mine", [])}, BackendError, "no rules"),
        ({"backend": Backend("mine", [("mine.x", 3)])}, BackendError, "int for a pattern"),
        ({"backend": Backend("mine", ["x"])}, BackendError, "no Relay rule"),
        ({"params": 5}, ModuleError, "mapping"),
        ({"backend": Backend("mine", [("mine.x", "nn.relo")])}, BackendError, "mean nn.relu"),
        ({"backend": Backend("mine", [("mine.x", "nn.relu", 5)])}, BackendError, "be called"),
        ({"backend": Backend("", [(".x", "nn.relu")])}, BackendError, "another name"),
        ({"backend": Backend("default", [("default.x", "nn.relu")])}, BackendError, "'default'"),
        ({"verify": True, "inputs": 5}, ModuleError, "inputs is 5"),
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


def entries() -> list[tvm.IRModule]:
    """Modules with an entry that is part of a partition."""
    made = []
    for name in ("Compiler", "Composite"):
        module = main(relay.nn.relu(x()))
        module["main"] = module["main"].with_attr(name, "tensorrt.x")
        made.append(module)
    return made


@pytest.mark.parametrize(
    ("module", "said"),
    [
        (tvm.IRModule(), "no Relay function"),
        (main(relay.add(x(shape=(3,)), x("y", (4,)))), "Incompatible broadcast type"),
        (entries()[0], "attribute Compiler"),
        (entries()[1], "attribute Composite"),
    ],
)
def test_a_module_that_cannot_be_recorded(module, said):
    with pytest.raises(ModuleError, match=said) as caught:
        byocviz.record(module, progress=False)
    assert caught.value.mend


def test_an_input_may_be_given_alone():
    recording = record(verify=True, inputs=np.ones((1, 4, 8, 8), "float32"))
    assert recording.last.max_difference is not None


def checked(check):
    return record(backend=Backend("mine", [("mine.relu", is_op("nn.relu")(wildcard()), check)]))


def test_what_a_check_raises_beyond_exceptions():
    def interrupted(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        checked(interrupted)
    failed = checked(lambda _: sys.exit(3)).failed
    assert "mine.relu" in failed.error.message
    assert "SystemExit: 3" in failed.error.message


def test_what_a_check_s_own_passes_find_is_not_the_module_s():
    wrong = main(relay.add(x(shape=(3,)), x("y", (4,))))

    def check(_):
        with pytest.raises(tvm.TVMError):
            relay.transform.InferType()(wrong)
        return True

    assert checked(check).last.profile.offloaded_ops == 1


def test_what_tvm_says_is_the_message_and_not_a_piece_of_its_text():
    bare = record(backend=Backend("mine", [("mine.relu", is_op("nn.relu"))])).failed
    assert bare.error.message.startswith("Error: Incorrect number of type args")
    module = tvm.IRModule({relay.GlobalVar("a\nb"): main(relay.nn.relu(x()))["main"]})
    failed = byocviz.record(module, entry="a\nb", progress=False).failed
    assert 'Cannot find global var "main"' in failed.error.message


@pytest.mark.parametrize("shape", [(2**31 - 1, 2**31 - 1, 4), (2**31 - 1,) * 5])
def test_sizes_beyond_all_memory_are_not_known(shape):
    recording = byocviz.record(
        main(relay.add(x(shape=shape), relay.const(1.0))), "tutorial", progress=False
    )
    assert recording.last.subgraphs[0].bytes_in is None
    assert from_bytes(to_bytes(recording)) == recording
    assert recording.summary()


def test_a_type_that_numpy_has_not_cannot_be_verified():
    lanes = [relay.var(name, shape=(2,), dtype="float32x4") for name in "xy"]
    recording = byocviz.record(main(relay.add(*lanes)), "tutorial", verify=True, progress=False)
    assert "Give it in inputs" in recording.steps[0].verify_error


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


def test_an_entry_that_calls_main_is_not_verified():
    """The virtual machine begins at main, which would come to call itself without end."""
    module = main(relay.nn.relu(x()))
    module = relay.transform.InferType()(module)
    given = x("y")
    called = relay.Call(module.get_global_var("main"), [given])
    module["forward"] = relay.Function([given], called, relay.TensorType((1, 4, 8, 8)))
    recording = byocviz.record(module, entry="forward", verify=True, progress=False)
    assert "starts at a function named main" in recording.steps[0].verify_error


def test_a_tuple_that_unfolds_without_end():
    value = x(shape=(2,))
    for _ in range(14):
        value = relay.Tuple([value, value])
    with pytest.raises(ModuleError, match="10,000 tensors"):
        byocviz.record(main(value), progress=False)
