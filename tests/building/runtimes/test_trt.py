"""What both TensorRTs share, where neither they nor a GPU need be there."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest

pytest.importorskip("tvm")
pytest.importorskip("onnx")

from byocviz.building.errors import EngineError, RuntimeMissing
from byocviz.building.lower import lower
from byocviz.building.runtimes import get
from byocviz.building.runtimes.gpu import missing_gpu
from byocviz.building.runtimes.trt import TrtEngine
from tests.building.lower.lab import Cases, T, build


def model() -> object:
    from tvm import relax

    cases = Cases()
    cases(relax.op.nn.relu, T(2, 3))
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
        runtime.build(model())  # type: ignore[arg-type]


def test_the_driver_is_asked() -> None:
    reason = missing_gpu()
    assert reason is None or "NVIDIA" in reason


@pytest.mark.parametrize("name", ["tensorrt", "tensorrt-rtx"])
def test_an_engine_refuses_tensors_that_are_not_on_the_gpu(name: str) -> None:
    engine = TrtEngine(get(name), model(), b"", {})  # type: ignore[arg-type]
    value = np.ones((2, 3), "float32")
    with pytest.raises(EngineError, match="on the GPU"):
        engine.run_into([value], [value])
    with pytest.raises(EngineError, match="2, 3"):
        engine.run_into([np.ones((3, 3), "float32")], [value])
    if missing_gpu() is not None:
        with pytest.raises(EngineError, match="cannot run here"):
            engine.run([value])
