"""ONNX Runtime's engine: memory, bad inputs, what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("tvm")
pytest.importorskip("onnxruntime")

import tvm
from tvm import relax

from byocviz.building.errors import BuildError, EngineError, RuntimeMissing
from byocviz.building.lower import lower
from byocviz.building.runtimes import get, names
from tests.building.lower.lab import Cases, T, build

ORT = get("onnxruntime")


def lowered(*args: Any, make: Any = relax.op.nn.relu) -> Any:
    cases = Cases()
    cases(make, *args)
    module, _, _ = build(cases)
    return lower(module["main"], name="sub")


def test_it_is_known_by_name_and_can_be_used() -> None:
    assert "onnxruntime" in names()
    assert ORT.supports() is None
    assert get(ORT) is ORT
    with pytest.raises(RuntimeMissing, match="onnxruntime"):
        get("nothing")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "int64", "bool"])
def test_it_reads_and_writes_the_tensors_own_memory(dtype: str) -> None:
    engine = ORT.build(lowered(T(2, 3, dtype=dtype), (3, 2), make=relax.op.reshape))
    value = np.arange(6).reshape(2, 3).astype(dtype)
    outputs = [
        np.zeros((3, 2), dtype),
        tvm.runtime.tensor(np.zeros((3, 2), dtype)),
    ]
    for given in (value, tvm.runtime.tensor(value)):
        for out in outputs:
            engine.run_into([given], [out])
            array = out if isinstance(out, np.ndarray) else out.numpy()
            np.testing.assert_array_equal(array, value.reshape(3, 2))
    np.testing.assert_array_equal(engine.run([value])[0], value.reshape(3, 2))


def test_a_strided_input_is_packed_and_a_strided_output_refused() -> None:
    engine = ORT.build(lowered(T(2, 3)))
    value = np.arange(12, dtype="float32").reshape(2, 6)[:, ::2]
    np.testing.assert_array_equal(engine.run([value])[0], value)
    with pytest.raises(EngineError, match="strided"):
        engine.run_into([np.ones((2, 3), "float32")], [np.ones((2, 6), "float32")[:, ::2]])


@pytest.mark.parametrize(
    ("inputs", "text"),
    [
        ([], "1 inputs, and 0"),
        ([np.ones((3, 2), "float32")], r"float32\[2, 3\], and float32\[3, 2\]"),
        ([np.ones((2, 3), "float64")], "float64"),
    ],
)
def test_inputs_that_do_not_fit(inputs: list[Any], text: str) -> None:
    engine = ORT.build(lowered(T(2, 3)))
    with pytest.raises(EngineError, match=text):
        engine.run(inputs)


def test_nan_goes_through() -> None:
    engine = ORT.build(lowered(T(3), make=relax.op.negative))
    (given,) = engine.run([np.array([1, np.nan, np.inf], "float32")])
    np.testing.assert_array_equal(given, [-1, np.nan, -np.inf])


def test_options() -> None:
    engine = ORT.build(lowered(T(3)), {"threads": 1, "spinning": False, "optimize": False})
    assert engine.describe()["threads"] == "1"
    with pytest.raises(RuntimeMissing, match="Did you mean 'threads'"):
        ORT.build(lowered(T(3)), {"thread": 1})


def test_what_it_has_no_code_for_names_the_operator() -> None:
    model = lowered(T(3, dtype="int8"), T(3, dtype="int8"), make=relax.op.mod)
    for node in model.model.graph.node:
        node.op_type = "Softplus"
    with pytest.raises(BuildError) as caught:
        ORT.build(model)
    assert "relax.mod" in str(caught.value)
    assert caught.value.mend


def test_the_progress_is_told() -> None:
    told: list[str] = []
    ORT.build(lowered(T(3)), tell=told.append)
    assert told == ["ONNX Runtime, sub"]


def test_providers_are_those_of_the_onnxruntime_that_is_installed() -> None:
    import onnxruntime

    for providers in ("cpu", ("cpu",), ["cpu", "cpu"]):
        engine = ORT.build(lowered(T(3)), {"providers": providers})
        assert engine.describe()["provider"] == "CPUExecutionProvider"
        assert "copies through the host" not in engine.describe()
    with pytest.raises(RuntimeMissing, match="cpu, cuda, tensorrt"):
        ORT.build(lowered(T(3)), {"providers": "gpu"})
    for name, known in (("cuda", "CUDA"), ("tensorrt", "Tensorrt")):
        if f"{known}ExecutionProvider" in onnxruntime.get_available_providers():
            continue
        with pytest.raises(RuntimeMissing, match=f"no provider '{name}'") as caught:
            ORT.build(lowered(T(3)), {"providers": (name, "cpu")})
        assert "onnxruntime-gpu" in caught.value.mend


def test_it_has_no_engine_to_keep_and_no_layers_to_show() -> None:
    engine = ORT.build(lowered(T(3)))
    assert engine.serialized() is None
    assert engine.layers() == ""
    assert ORT.target() is None
