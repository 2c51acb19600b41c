"""What is asked of NVIDIA's driver, against a small library in C that stands for it.

It shows that the calls are well formed and in order, not that a GPU does what is expected of it:
that is in test_gpu.py.
"""

from __future__ import annotations

import ctypes
import gc
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tvm")
pytest.importorskip("onnx")

from tvm import relax

from byocviz.building.errors import EngineError
from byocviz.building.lower import lower
from byocviz.building.runtimes import get, gpu
from byocviz.building.runtimes.trt_engine import TrtEngine
from tests.building.lower.lab import Cases, T, build

COMPILER = shutil.which("cc") or shutil.which("gcc")

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or COMPILER is None, reason="needs Linux and a C compiler"
)


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A driver of its own for each test, with one GPU: 8.9, CUDA 12.4."""
    library = tmp_path / "libpaper.so"
    source = Path(__file__).with_name("driver.c")
    subprocess.run([str(COMPILER), "-shared", "-fPIC", "-o", library, source], check=True)
    monkeypatch.setattr(gpu, "_LIBRARY", str(library))
    monkeypatch.setattr(gpu, "_devices", {})
    gpu.missing_gpu.cache_clear()
    gpu.gpu.cache_clear()
    loaded = ctypes.CDLL(str(library))
    loaded.set_room.argtypes = [ctypes.c_size_t]
    yield loaded
    gpu.missing_gpu.cache_clear()
    gpu.gpu.cache_clear()
    assert loaded.get_depth() == 0


class Negating:
    """What stands for TensorRT's context: each output is the input of its place, negated."""

    def __init__(self, inputs: list[Any], outputs: list[Any]) -> None:
        self.pairs = list(zip(inputs, outputs, strict=True))
        self.places: dict[str, int] = {}
        self.streams: list[int] = []
        self.works = True

    def set_tensor_address(self, name: str, place: int) -> bool:
        self.places[name] = place
        return place % 256 == 0

    def get_tensor_address(self, name: str) -> int:
        return self.places[name]

    def execute_async_v3(self, stream: int) -> bool:
        self.streams.append(stream)
        for given, result in self.pairs:
            values = array(self.places[given.name], given.shape)
            array(self.places[result.name], result.shape)[...] = -values
        return self.works


def array(place: int, shape: tuple[int, ...]) -> np.ndarray:
    size = int(np.prod(shape)) * 4
    return np.frombuffer((ctypes.c_char * size).from_address(place), "float32").reshape(shape)


class OnGpu:
    """A tensor in memory that the driver gave, ``shift`` bytes into it."""

    dtype = "float32"

    def __init__(self, values: np.ndarray, shift: int = 0, index: int = 0) -> None:
        self.memory = gpu.Memory(gpu.device(), values.nbytes + shift)
        self.shape, self.shift = values.shape, shift
        self.device = SimpleNamespace(type="cuda", index=index)
        array(self.data_ptr(), self.shape)[...] = values

    def data_ptr(self) -> int:
        return self.memory.address + self.shift

    def is_contiguous(self) -> bool:
        return True

    def values(self) -> np.ndarray:
        return array(self.data_ptr(), self.shape).copy()


@pytest.fixture
def engine(driver: Any) -> TrtEngine:
    """An engine as if it had been loaded."""
    cases = Cases()
    cases(relax.op.negative, T(2, 3))
    cases(relax.op.negative, T(5))
    module, _, _ = build(cases)
    made = TrtEngine(get("tensorrt"), lower(module["main"], name="sub"), b"", {})
    made._context = Negating(made.inputs, made.outputs)
    made._known = {p.name for p in (*made.inputs, *made.outputs)}
    return made


A, B = np.arange(6, dtype="float32").reshape(2, 3), np.arange(5, dtype="float32")


def test_the_gpu_is_described(driver: Any) -> None:
    assert gpu.missing_gpu() is None
    found = gpu.gpu()
    assert found is not None
    assert (found.name, found.capability, found.sm) == ("Paper GPU", (8, 9), "SM89")
    assert found.driver.startswith("CUDA 12.4")
    assert gpu.gpu(3) is None


def test_a_driver_without_a_gpu(driver: Any) -> None:
    driver.set_count(0)
    assert "no GPU" in (gpu.missing_gpu() or "")
    with pytest.raises(EngineError, match="no GPU"):
        gpu.device()


def test_tensors_of_the_host_go_through_memory_that_is_kept(driver: Any, engine: Any) -> None:
    for run in range(1, 4):
        out = engine.run([A * run, B])
        np.testing.assert_array_equal(out[0], -A * run)
        np.testing.assert_array_equal(out[1], -B)
        assert driver.get_held() == 4
        assert [driver.get_copies(kind) for kind in range(3)] == [2 * run, 2 * run, 0]
        assert driver.get_waits() == run
    assert engine._through_host is True
    strided = np.zeros((2, 6), "float32")
    strided[:, ::2] = A
    np.testing.assert_array_equal(engine.run([strided[:, ::2], B])[0], -A)


def test_tensors_of_the_gpu_are_taken_where_they_lie(driver: Any, engine: Any) -> None:
    given = [OnGpu(A), OnGpu(B)]
    results = [OnGpu(A * 0), OnGpu(B * 0)]
    engine.run_into(given, results)
    np.testing.assert_array_equal(results[0].values(), -A)
    np.testing.assert_array_equal(results[1].values(), -B)
    assert engine.addresses() == {
        port.name: tensor.data_ptr()
        for port, tensor in zip((*engine.inputs, *engine.outputs), (*given, *results), strict=True)
    }
    assert [driver.get_copies(kind) for kind in range(3)] == [0, 0, 0]
    assert driver.get_waits() == 0
    assert engine._through_host is False


def test_mixed_and_unaligned_ones(driver: Any, engine: Any) -> None:
    given, result = OnGpu(A, shift=4), OnGpu(B * 0, shift=12)
    out = np.zeros_like(A)
    engine.run_into([given, B], [out, result])
    np.testing.assert_array_equal(out, -A)
    np.testing.assert_array_equal(result.values(), -B)
    assert [driver.get_copies(kind) for kind in range(3)] == [1, 1, 2]
    assert driver.get_waits() == 1


def test_memory_is_given_back(driver: Any, engine: Any) -> None:
    engine.run([A, B])
    assert driver.get_held() == 4
    engine._kept.clear()
    gc.collect()
    assert driver.get_held() == 0


def test_memory_that_runs_out_is_said(driver: Any, engine: Any) -> None:
    driver.set_room(1)
    with pytest.raises(EngineError, match="out of memory") as caught:
        engine.run([A, B])
    assert caught.value.mend
    driver.set_room(1 << 30)
    np.testing.assert_array_equal(engine.run([A, B])[1], -B)


def test_an_engine_that_fails_and_another_gpu(driver: Any, engine: Any) -> None:
    engine._context.works = False
    with pytest.raises(EngineError, match="failed in the subgraph sub"):
        engine.run([A, B])
    with pytest.raises(EngineError, match="GPU 1"):
        engine.run_into([OnGpu(A, index=1), OnGpu(B, index=1)], [A, B])
    with pytest.raises(EngineError, match="GPU 0, GPU 1"):
        engine.run_into([OnGpu(A), OnGpu(B, index=1)], [A, B])


def test_an_engine_for_another_gpu_says_so(driver: Any) -> None:
    pytest.importorskip("tensorrt_rtx")
    cases = Cases()
    cases(relax.op.negative, T(3))
    module, _, _ = build(cases)
    engine = get("tensorrt-rtx").build(lower(module["main"]), {"compute_capability": "7.5"})
    with pytest.raises(EngineError, match=r"for SM75, and the GPU here .Paper GPU. is SM89"):
        engine.run([np.ones(3, "float32")])
