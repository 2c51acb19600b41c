"""What both TensorRTs share, where neither they nor a GPU need be there."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tvm")
pytest.importorskip("onnxruntime")

import onnx
from onnx.reference import ReferenceEvaluator

from byocviz.building.errors import BuildError, EngineError, RuntimeMissing
from byocviz.building.lower import lower
from byocviz.building.runtimes import get
from byocviz.building.runtimes.gpu import device, gpu, missing_gpu
from byocviz.building.runtimes.half import half
from byocviz.building.runtimes.trt import unusable
from byocviz.building.runtimes.trt_engine import TrtEngine
from tests.building.lower.lab import Cases, T, build


def model(*call: Any) -> Any:
    from tvm import relax

    cases = Cases()
    cases(*(call or (relax.op.nn.relu, T(2, 3))))
    module, _, _ = build(cases)
    return lower(module["main"], name="sub")


@pytest.mark.parametrize(
    ("name", "package"), [("tensorrt", "tensorrt"), ("tensorrt-rtx", "tensorrt_rtx")]
)
def test_a_package_that_is_not_installed_is_said_with_the_mend(name: str, package: str) -> None:
    runtime = get(name)
    if find_spec(package) is not None:
        pytest.skip(f"{package} is installed")
    assert "pip install" in (runtime.supports() or "")
    with pytest.raises(RuntimeMissing, match="pip install"):
        runtime.build(model())


def test_the_driver_is_asked() -> None:
    reason = missing_gpu()
    assert reason is None or "NVIDIA" in reason


@pytest.mark.parametrize("name", ["tensorrt", "tensorrt-rtx"])
def test_an_engine_refuses_what_does_not_fit_and_says_why_it_does_not_run(name: str) -> None:
    engine = TrtEngine(get(name), model(), b"", {})
    value = np.ones((2, 3), "float32")
    with pytest.raises(EngineError, match="2, 3"):
        engine.run_into([np.ones((3, 3), "float32")], [value])
    with pytest.raises(EngineError, match="strided"):
        engine.run_into([value], [np.ones((2, 6), "float32")[:, ::2]])
    if missing_gpu() is not None:
        with pytest.raises(EngineError, match="cannot run here"):
            engine.run([value])
        assert engine.layers() == ""
        assert gpu() is None
        with pytest.raises(EngineError, match="onnxruntime"):
            device()


@pytest.mark.parametrize("name", ["tensorrt", "tensorrt-rtx"])
@pytest.mark.parametrize("dtype", ["float64", "int16", "uint32", "uint64"])
def test_a_type_that_it_has_not_is_refused_before_the_build(name: str, dtype: str) -> None:
    from tvm import relax

    subgraph = model(relax.op.multiply, T(2, 3, dtype=dtype), T(2, 3, dtype=dtype))
    with pytest.raises(BuildError) as caught:
        get(name).refuse(subgraph)
    for part in (dtype, "'p0'", "relax.multiply", "sub"):
        assert part in str(caught.value)
    assert caught.value.subgraph == "sub"
    assert "Cast" in caught.value.mend


@pytest.mark.parametrize("name", ["tensorrt", "tensorrt-rtx"])
def test_an_output_of_such_a_type_too(name: str) -> None:
    from tvm import relax

    subgraph = model(relax.op.astype, T(2, 3), "float64")
    with pytest.raises(BuildError, match="output"):
        get(name).refuse(subgraph)
    for dtype in ("float16", "float32", "int8", "int32", "int64", "bool"):
        get(name).refuse(model(relax.op.reshape, T(2, 3, dtype=dtype), (3, 2)))


def computed(model: bytes, values: list[np.ndarray]) -> np.ndarray:
    """The only output by ONNX's own reference: ONNX Runtime drops casts to half and back."""
    evaluator = ReferenceEvaluator(onnx.load_from_string(model))
    (result,) = evaluator.run(None, dict(zip(evaluator.input_names, values, strict=True)))
    return result


def test_half_precision_keeps_the_boundary_and_most_of_the_values() -> None:
    """Numbers in float16 have 11 bits; each of the two factors and the sum is rounded once."""
    from tvm import relax

    exact = model(relax.op.matmul, T(16, 8), T(8, 16)).serialized()
    rng = np.random.default_rng(0)
    values = [rng.random(shape, "float32") for shape in ((16, 8), (8, 16))]
    halved = half("x", "sub", exact)
    onnx.checker.check_model(halved, full_check=True)
    result, wanted = computed(halved, values), computed(exact, values)
    assert result.dtype == np.float32
    assert not np.array_equal(result, wanted)
    np.testing.assert_allclose(result, wanted, rtol=4 * 2**-11)


def test_what_cannot_be_halved_is_said() -> None:
    with pytest.raises(BuildError, match="half precision"):
        half("x", "sub", b"no model")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("raise ImportError('libsome.so.11: cannot open shared object file')", "does not load"),
        ("import surely_no_such_part", "lacks a part"),
        ("raise RuntimeError('made for another Python')", "does not load"),
        ("", None),
    ],
)
def test_a_package_that_is_there_and_does_not_load_is_not_said_to_be_missing(
    text: str, said: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "half_installed.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "half_installed", raising=False)
    reason = unusable("half_installed", "pip install it")
    if said is None:
        assert reason is None
    else:
        assert reason is not None
        assert said in reason
        assert "not installed" not in reason
    monkeypatch.delitem(sys.modules, "half_installed", raising=False)
