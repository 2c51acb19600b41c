"""What only a GPU can show: ``pytest -m gpu tests/building/test_gpu.py``.

Each runtime that runs here is tested; those that do not are skipped with their own reason.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tvm")
pytest.importorskip("onnxruntime")

import tvm
from tvm import relax

import byocviz
from byocviz.building import runtimes
from byocviz.building.cache import EngineCache
from byocviz.building.engines import build_engines
from byocviz.building.errors import BuildError, EngineError
from byocviz.building.lower import Lowered, lower
from byocviz.building.runtimes.gpu import gpu, missing_gpu
from byocviz.flow.relax.compat import attribute
from byocviz.flow.relax.verify import run_module
from byocviz.models import ssd
from tests.building.lower.lab import Cases, T, build, run_onnx
from tests.building.lower.test_coverage import cases

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(missing_gpu() is not None, reason=missing_gpu() or ""),
]


@pytest.fixture(params=["tensorrt", "tensorrt-rtx"])
def runtime(request: pytest.FixtureRequest) -> Any:
    found = runtimes.get(request.param)
    reason = found.supports()
    if reason is not None:
        pytest.skip(f"{found.title}: {reason}")
    return found


@pytest.fixture(scope="module")
def subgraph() -> Lowered:
    """The SSD's only subgraph."""
    module = byocviz.record(ssd.load(), progress=False).module("prune")
    (function,) = [f for _, f in module.functions_items() if attribute(f, "Codegen")]
    return lower(function, name="ssd")


def picture(subgraph: Lowered) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.uniform(-1, 1, p.shape).astype(p.dtype) for p in subgraph.inputs]


def engine_of(subgraph: Lowered, runtime: Any, options: Any = None, **kind: Any) -> Any:
    return build_engines({"x": subgraph}, runtime, options, **kind)["x"].engine


def close(given: list[Any], wanted: list[np.ndarray], tolerance: float) -> None:
    """The largest difference, over the largest value of the output."""
    for a, b in zip(given, wanted, strict=True):
        array = a if isinstance(a, np.ndarray) else a.numpy()
        assert array.shape == b.shape
        assert array.dtype == b.dtype
        scale = max(float(np.abs(b).max()), 1e-6)
        assert float(np.abs(array.astype("float64") - b).max()) <= tolerance * scale


def on_gpu(values: list[np.ndarray]) -> list[Any]:
    if not tvm.runtime.enabled("cuda") or not tvm.cuda(0).exist:
        torch = pytest.importorskip("torch", reason="this TVM has no CUDA, and there is no PyTorch")
        if not torch.cuda.is_available():
            pytest.skip("neither this TVM nor this PyTorch puts tensors on the GPU")
        return [torch.from_numpy(v).cuda() for v in values]
    return [tvm.runtime.tensor(v, tvm.cuda(0)) for v in values]


def test_the_gpu_is_known() -> None:
    found = gpu()
    assert found is not None
    assert found.name
    assert found.capability >= (3, 0)
    assert "CUDA" in found.driver
    assert runtimes.auto().runtime.name in ("tensorrt", "tensorrt-rtx", "onnxruntime")


def test_every_operator_of_the_table_gives_tvms_results(runtime: Any) -> None:
    """Some 80 cases in single precision, one network each; it takes at least half of them."""
    done = tried = 0
    given = [case for case in cases() if not case.loose]
    for case in given[:: max(len(given) // 80, 1)]:
        module, values, _ = build([case])
        if any(v.dtype != np.float32 for v in values):
            continue
        tried += 1
        try:
            engine = runtime.build(lower(module["main"], name="case"))
        except BuildError:
            continue
        wanted = run_module(module, "main", values)
        outputs = engine.run(values)
        for a, b in zip(outputs, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3, err_msg=case.name)
        done += 1
    assert 2 * done >= tried > 20


def test_the_ssd_on_tensors_of_the_host(runtime: Any, subgraph: Lowered) -> None:
    engine = engine_of(subgraph, runtime)
    values = picture(subgraph)
    wanted = run_onnx(subgraph, values)
    for _ in range(3):
        close(engine.run(values), wanted, 1e-3)
    assert engine.describe()["copies through the host"] == "yes"
    other = [v * 0.5 for v in values]
    close(engine.run(other), run_onnx(subgraph, other), 1e-3)


def test_tensors_of_the_gpu_are_not_copied(runtime: Any, subgraph: Lowered) -> None:
    """The engine was told the addresses of the tensors themselves."""
    engine = engine_of(subgraph, runtime)
    values = picture(subgraph)
    inputs = on_gpu(values)
    outputs = on_gpu([np.zeros(p.shape, p.dtype) for p in subgraph.outputs])
    engine.run_into(inputs, outputs)
    seen = engine.addresses()
    for port, tensor in zip((*engine.inputs, *engine.outputs), (*inputs, *outputs), strict=True):
        pointer = tensor.data_ptr() if hasattr(tensor, "data_ptr") else tensor.ctypes.data
        assert seen[port.name] == pointer
    assert engine.describe()["copies through the host"] == "no"
    if isinstance(outputs[0], tvm.runtime.Tensor):
        tvm.cuda(0).sync()
        given = [t.numpy() for t in outputs]
    else:
        given = [t.cpu().numpy() for t in outputs]
    close(given, run_onnx(subgraph, values), 1e-3)


def test_half_precision_and_tf32(runtime: Any, subgraph: Lowered) -> None:
    values = picture(subgraph)
    wanted = run_onnx(subgraph, values)
    exact = engine_of(subgraph, runtime)
    half = engine_of(subgraph, runtime, {"fp16": True})
    close(engine_of(subgraph, runtime, {"tf32": True}).run(values), wanted, 1e-2)
    close(half.run(values), wanted, 5e-2)
    assert len(half.serialized()) < len(exact.serialized())
    assert half.describe()["fp16"] == "True"


def test_the_layers_can_be_read(runtime: Any, subgraph: Lowered) -> None:
    layers = engine_of(subgraph, runtime).layers()
    assert len(layers.splitlines()) > 10


def test_an_engine_is_taken_from_the_cache_and_runs(
    runtime: Any, subgraph: Lowered, tmp_path: Path
) -> None:
    cache = EngineCache(tmp_path / "engines")
    first = build_engines({"x": subgraph}, runtime, cache=cache)["x"]
    again = build_engines({"x": subgraph}, runtime, cache=cache)["x"]
    assert (first.cached, again.cached) == (False, True)
    values = picture(subgraph)
    close(again.engine.run(values), first.engine.run(values), 1e-6)
    entries = list(cache.folder.glob("*.engine"))
    assert len(entries) == (2 if "timing_cache" in runtime.options else 1)


def test_the_times_of_kernels_are_kept(runtime: Any, subgraph: Lowered, tmp_path: Path) -> None:
    if "timing_cache" not in runtime.options:
        pytest.skip(f"{runtime.title} times no kernels while it builds")
    from byocviz.building.runtimes.base import Notes
    from byocviz.building.runtimes.options import chosen

    notes = Notes()
    options = chosen(runtime, None)
    runtime.plan(subgraph, options, notes)
    assert len(notes.timing) > 1000
    before = notes.timing
    runtime.plan(subgraph, options, notes)
    assert len(notes.timing) >= len(before)
    damaged = Notes(b"nonsense")
    assert runtime.plan(subgraph, options, damaged)


def test_onnx_runtime_on_the_gpu(subgraph: Lowered) -> None:
    import onnxruntime

    if "CUDAExecutionProvider" not in onnxruntime.get_available_providers():
        pytest.skip("onnxruntime-gpu is not installed")
    values = picture(subgraph)
    wanted = run_onnx(subgraph, values)
    engine = engine_of(subgraph, runtimes.get("onnxruntime"), {"providers": "cuda"})
    assert engine.describe()["provider"].startswith("CUDAExecutionProvider")
    close(engine.run(values), wanted, 1e-2)
    assert engine.describe()["copies through the host"] == "yes"
    outputs = on_gpu([np.zeros(p.shape, p.dtype) for p in subgraph.outputs])
    engine.run_into(on_gpu(values), outputs)
    assert engine.describe()["copies through the host"] == "no"


def test_what_is_no_engine_and_what_is_for_another_gpu(runtime: Any, subgraph: Lowered) -> None:
    from byocviz.building.runtimes.options import chosen

    options = chosen(runtime, None)
    with pytest.raises(EngineError, match="does not load"):
        runtime.load(subgraph, b"no engine" * 100, options).run(picture(subgraph))
    if "compute_capability" in options:
        here = gpu()
        assert here is not None
        other = "7.5" if here.sm != "SM75" else "8.9"
        engine = engine_of(subgraph, runtime, {"compute_capability": other})
        with pytest.raises(EngineError, match=here.sm):
            engine.run(picture(subgraph))


def test_the_gpus_number_must_be_one(runtime: Any) -> None:
    several = Cases()
    several(relax.op.negative, T(3))
    module, _, _ = build(several)
    engine = runtime.build(lower(module["main"]))
    engine.run([np.ones(3, "float32")])
    with pytest.raises(EngineError, match="GPU 7"):
        engine.load(7)
