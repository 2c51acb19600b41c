"""Verification of whole recordings: what goes wrong in it is written down."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("tvm")

import tvm
from tvm import relax
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T

import byocviz
from byocviz.errors import ModuleError
from byocviz.flow.relax import verify, verify_steps

from .test_verify import build, first, module, tensor

FLOAT = np.ones(7, "float32")
OBJECT = getattr(relax, "ObjectType", None) or getattr(relax, "AnyType", None) or tvm.ir.AnyType


def record(mod: tvm.IRModule, **how: Any) -> byocviz.Recording:
    return byocviz.record(mod, progress=False, verify=True, **how)


def assert_verified(recording: byocviz.Recording) -> None:
    assert len(recording.steps) > 4
    for step in recording.steps:
        assert (step.max_difference, step.verify_error) == (0, ""), step.name


def assert_import_did_not_run(recording: byocviz.Recording, said: str) -> None:
    """The recording is whole; the import step says why, the others that they go by it."""
    assert recording.failed is None
    first_step, *others = recording.steps
    assert said in first_step.verify_error
    assert len(others) > 4
    assert {step.verify_error for step in others} == {verify_steps.NOT_COMPARED}
    assert {step.max_difference for step in recording.steps} == {None}
    assert first_step.verify_error.splitlines()[0] in " ".join(recording.summary().split())
    assert byocviz.recording.from_bytes(byocviz.recording.to_bytes(recording)) == recording


@pytest.fixture
def nothing_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise AssertionError("it was compiled")

    monkeypatch.setattr(verify, "compile_module", fail)


# ------------------------------------------------------------- an import that does not run


def unknown_function(b: relax.BlockBuilder, x: Any) -> Any:
    return b.emit(relax.op.call_dps_packed("no.such.function", x, out_ty=tensor(7)))


def unmet_assertion(b: relax.BlockBuilder, x: Any) -> Any:
    b.emit(relax.op.assert_op(relax.const(False), format="too bad"))
    return b.emit(relax.op.add(x, x))


def doubled(b: relax.BlockBuilder, x: Any) -> Any:
    return b.emit(relax.op.add(x, x))


@pytest.mark.parametrize(
    ("ty", "body", "said"),
    [
        (tensor(7), unknown_function, "no.such.function"),
        (tensor(7), unmet_assertion, "too bad"),
        (relax.TensorType(None, "float32"), doubled, "add"),
        (relax.TensorType(None, None), doubled, "add"),
        (tensor(10**6, 10**6), doubled, "more than 2 GiB"),
        (OBJECT(), first, "Give inputs"),
    ],
    ids=["function", "assertion", "shape", "dtype", "absurd", "object"],
)
def test_the_recording_is_kept(ty: Any, body: Any, said: str) -> None:
    assert_import_did_not_run(record(build([("x", ty)], body)), said)


def test_a_device_that_is_not_there() -> None:
    source = """
@I.ir_module
class Module:
    I.module_global_infos({"vdevice": [I.vdevice("cuda", 0), I.vdevice("llvm")]})

    @R.function
    def main(x: R.Tensor((7,), "float32")):
        y = R.to_vdevice(x, I.vdevice("cuda", 0))
        z = R.add(y, y)
        return z
"""
    recording = record(tvm.script.from_source(source, extra_vars={"I": I, "R": R, "T": T}))
    assert_import_did_not_run(recording, "")
    assert recording.steps[0].verify_error


# ------------------------------------------------------------- inputs


@pytest.mark.usefixtures("nothing_compiled")
@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"z": FLOAT}, "'z' is no parameter"),
        ({"x": FLOAT[None]}, r"has shape \[1, 7\]"),
        ({"x": FLOAT.astype("float64")}, "has dtype float64"),
        ([FLOAT], "takes 2 inputs; 1 were given"),
        (FLOAT, "must be a dictionary, or a list"),
        ("x", "are a str"),
        (7, "are a int"),
        ({"x": FLOAT, "w": FLOAT[1:]}, "wherever it stands"),
    ],
    ids=str,
)
def test_inputs_that_do_not_fit_are_refused(inputs: Any, said: str) -> None:
    n = tvm.tirx.Var("n", "int64")
    with pytest.raises(ModuleError, match=said) as error:
        record(build([("x", tensor(n)), ("w", tensor(n))], first), inputs=inputs)
    assert error.value.mend


def ran(monkeypatch: pytest.MonkeyPatch) -> list[list[Any]]:
    """What the runs take, filled as they come."""
    seen: list[list[Any]] = []

    def run(mod: Any, entry: str, runs: Any) -> Any:
        seen.extend(runs)
        return verify.run_module_each(mod, entry, runs)

    monkeypatch.setattr(verify_steps, "run_module_each", run)
    return seen


def sums() -> tvm.IRModule:
    n = tvm.tirx.Var("n", "int64")
    return build([("x", tensor(n)), ("w", tensor(n))], lambda b, x, w: b.emit(relax.op.add(x, w)))


@pytest.mark.parametrize(
    "how",
    [
        {"params": {"w": FLOAT}},
        {"inputs": {"w": FLOAT}},
        {"inputs": {"w": tvm.runtime.tensor(FLOAT)}},
        {"inputs": [FLOAT, FLOAT]},
        {"inputs": (FLOAT, tvm.runtime.tensor(FLOAT))},
        {"inputs": [FLOAT], "params": {"w": FLOAT}},
        {"inputs": [FLOAT, FLOAT], "params": {"w": FLOAT}},
        {"inputs": {"w": FLOAT}, "params": {"w": FLOAT}},
    ],
    ids=lambda how: "-".join(f"{k}:{type(v).__name__}" for k, v in how.items()),
)
def test_what_is_given_decides_the_sizes(how: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = ran(monkeypatch)
    assert_verified(record(sums(), **how))
    assert [value.shape for value in seen[0]] == [(7,), (7,)]
    np.testing.assert_array_equal(seen[0][1], FLOAT)


def test_an_input_cannot_differ_from_what_is_bound() -> None:
    with pytest.raises(ModuleError, match="another value than params bind") as error:
        record(sums(), params={"w": FLOAT}, inputs={"w": 2 * FLOAT})
    assert error.value.mend


def test_attached_weights_are_the_values() -> None:
    mod = build(
        [("x", tensor(7)), ("w", tensor(7))], lambda b, x, w: b.emit(relax.op.multiply(x, w))
    )
    attached = [tvm.runtime.tensor(3 * FLOAT)]
    function = mod["main"].with_attr("params", attached).with_attr("num_input", 1)
    recording = record(tvm.IRModule({"main": function}))
    assert [p.name for p in recording.__dict__["modules"]["prune"]["main"].params] == ["x"]
    assert_verified(recording)


def test_a_size_that_no_parameter_has_alone() -> None:
    """``n`` is known from ``n + 1``, so that the other parameter can be seeded."""
    n = tvm.tirx.Var("n", "int64")
    mod = build(
        [("x", tensor(n + 1)), ("y", tensor(n))], lambda b, x, y: b.emit(relax.op.add(y, y))
    )
    assert_verified(record(mod, inputs={"x": FLOAT}))
    assert_verified(record(mod))


def test_an_object_is_given() -> None:
    mod = build([("x", tensor(7)), ("o", OBJECT())], doubled_first)
    assert_verified(record(mod, inputs={"o": FLOAT}))


def doubled_first(b: relax.BlockBuilder, x: Any, *others: Any) -> Any:
    return b.emit(relax.op.add(x, x))


def test_two_parameters_of_one_name() -> None:
    mod = build(
        [("x", tensor(7)), ("x", tensor(7))], lambda b, x, y: b.emit(relax.op.subtract(x, y))
    )
    assert_verified(record(mod, inputs=[FLOAT, 2 * FLOAT]))
    assert_verified(record(mod))


# ------------------------------------------------------------- conditions

IF = """
    @R.function
    def main(x: R.Tensor((7,), "float32"), c: R.Tensor((), "bool")):
        if c:
            a = R.add(x, x)
            r = R.nn.relu(a)
        else:
            b = R.multiply(x, x)
            r = R.nn.relu(b)
        return r
"""


@pytest.mark.parametrize("broken", ["add", "multiply"])
def test_both_branches_are_run(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that computes something else in either branch is found."""
    wrong = module(IF.replace(f"R.{broken}(", "R.subtract("))

    def run(mod: Any, entry: str, runs: Any) -> Any:
        again = wrong if "Codegen" in mod.script(show_meta=False) else mod
        return verify.run_module_each(again, entry, runs)

    monkeypatch.setattr(verify_steps, "run_module_each", run)
    recording = record(module(IF))
    assert recording.step("import").max_difference == 0
    assert (recording.step("partition").max_difference or 0) > 0


def test_a_given_condition_is_run_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = ran(monkeypatch)
    assert_verified(record(module(IF)))
    assert [bool(values[1]) for values in seen[:2]] == [True, False]
    seen.clear()
    assert_verified(record(module(IF), inputs={"c": np.array(True)}))
    assert all(values[1] for values in seen)


@pytest.mark.parametrize(
    ("source", "itself"),
    [
        (IF, False),
        (
            """
    @R.function
    def f(x: R.Tensor((7,), "float32"), c: R.Tensor((), "bool")) -> R.Tensor((7,), "float32"):
        if c:
            y = Module.f(x, R.const(False))
            r = y
        else:
            r = x
        return r

    @R.function
    def main(x: R.Tensor((7,), "float32"), c: R.Tensor((), "bool")) -> R.Tensor((7,), "float32"):
        y = Module.f(x, c)
        return y
""",
            True,
        ),
        (
            """
    @R.function
    def main(x: R.Tensor((7,), "float32"), c: R.Tensor((), "bool")) -> R.Tensor((7,), "float32"):
        @R.function
        def f(
            x: R.Tensor((7,), "float32"), c: R.Tensor((), "bool")
        ) -> R.Tensor((7,), "float32"):
            if c:
                y = f(x, R.const(False))
                r = y
            else:
                r = x
            return r

        z = f(x, c)
        return z
""",
            True,
        ),
    ],
    ids=["if", "global", "local"],
)
def test_what_calls_itself_is_found(source: str, itself: bool) -> None:
    assert verify_steps._calls_itself(module(source)) is itself


def test_seeded_integers_do_not_end_the_process() -> None:
    ints = relax.TensorType((64,), "int32")
    mod = build([("x", ints), ("y", ints)], lambda b, x, y: b.emit(relax.op.floor_divide(x, y)))
    assert_verified(record(mod))
