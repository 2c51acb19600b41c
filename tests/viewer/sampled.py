"""Results for the viewer's tests: real detections of the SSD, the rest drawn from a seed.

Nothing here was timed: the figures only have the form and the order of size of real ones.
"""

from __future__ import annotations

import base64
import io
import random
from functools import lru_cache
from typing import Any

import msgspec

from byocviz.models import ssd
from byocviz.recording import Recording
from byocviz.recording.results import (
    BuildInfo,
    Check,
    Detected,
    Difference,
    EngineInfo,
    Found,
    Latency,
    ModuleNode,
    Part,
    Photo,
    Results,
    Variant,
)

MACHINE = {"processor": "x86-64", "cores": "2", "onnxruntime": "1.22.0", "tvm": "0.27.0"}


@lru_cache(maxsize=1)
def photos() -> tuple[Photo, ...]:
    """What ONNX Runtime finds in the bundled photos, at three levels of its own optimisation:
    three variants that differ as real ones do. The pictures are small, 15 to 40 kB each."""
    import onnxruntime as ort
    from PIL import Image

    levels = ort.GraphOptimizationLevel
    variants = {
        "ONNX Runtime alone": ("runtime", levels.ORT_ENABLE_ALL),
        "TVM alone": ("tvm", levels.ORT_DISABLE_ALL),
        "TVM + ONNX Runtime": ("byoc", levels.ORT_ENABLE_BASIC),
    }
    sessions = {}
    for name, (kind, level) in variants.items():
        options = ort.SessionOptions()
        options.graph_optimization_level = level
        options.intra_op_num_threads = 1
        sessions[name] = (kind, ort.InferenceSession(str(ssd.path()), options))
    made = []
    for title, path in ssd.photos().items():
        with Image.open(path) as opened:
            image = opened.convert("RGB")
        detected: list[Detected] = []
        for name, (kind, session) in sessions.items():
            outputs = session.run(None, {ssd.INPUT: ssd.preprocess(image)})
            found = [
                Found(d.label, d.score, d.box, d.index)
                for d in ssd.postprocess(outputs, image.size)
            ]
            score, side = _apart(detected[0].found, found) if detected else (None, None)
            detected.append(Detected(name, kind, found, score, side))
        small = image.copy()
        small.thumbnail((480, 480))
        buffer = io.BytesIO()
        small.save(buffer, "JPEG", quality=80)
        url = "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode()
        made.append(Photo(title, *image.size, url, detected))
    return tuple(made)


def _apart(first: list[Found], other: list[Found]) -> tuple[float | None, float | None]:
    if [f.index for f in first] != [f.index for f in other]:
        return None, None
    scores = [abs(a.score - b.score) for a, b in zip(first, other, strict=True)]
    sides = [
        abs(x - y)
        for a, b in zip(first, other, strict=True)
        for x, y in zip(a.box, b.box, strict=True)
    ]
    return max(scores, default=0.0), max(sides, default=0.0)


def timed(name: str, kind: str, typical: float, seed: int = 0, **more: Any) -> Variant:
    """A variant with 40 runs about ``typical`` seconds, and the quantiles of just those."""
    rng = random.Random(f"{name} {seed}")
    runs = [typical * rng.lognormvariate(0, 0.05) for _ in range(40)]
    ranked = sorted(runs)
    return Variant(
        name,
        kind,
        seconds=runs,
        first=typical * rng.uniform(1.5, 4),
        median=(ranked[19] + ranked[20]) / 2,
        p10=ranked[4],
        p90=ranked[35],
        **more,
    )


def latency(names: list[str]) -> Latency:
    """Five variants of two settings, one of which cannot run. ``names`` are of the subgraphs of
    the first setting."""
    alone = {"setting": "", "subgraphs": 0, "coverage_ops": 0.0, "boundary_bytes": 0}
    return Latency(
        [
            timed("TVM alone", "tvm", 0.55, **alone),
            Variant("ONNX Runtime alone", "runtime", cannot="NonMaxSuppression"),
            timed("ONNX Runtime alone, its part", "part", 0.0108, coverage_ops=0.997),
            timed(
                "TVM + ONNX Runtime",
                "byoc",
                0.0224,
                setting="prepared",
                subgraphs=len(names),
                boundary_bytes=1_792_328,
                coverage_ops=0.997,
                parts=[*(Part(name, 0.0114 / len(names)) for name in names), Part("TVM", 0.0107)],
            ),
            timed(
                "TVM + ONNX Runtime",
                "byoc",
                0.094,
                seed=1,
                setting="as imported",
                subgraphs=71,
                boundary_bytes=88_231_040,
                coverage_ops=0.61,
                parts=[Part(f"tensorrt_{i}", 0.0004 + i % 7 * 1e-4) for i in range(71)]
                + [Part("TVM", 0.046)],
            ),
        ],
        repeat=40,
        warmup=5,
        made="2026-01-01T12:00:00Z",
        machine=MACHINE,
    )


@lru_cache(maxsize=1)
def onnx_text() -> str:
    """The SSD itself as text, without its weights."""
    import onnx

    model = onnx.load(str(ssd.path()))
    del model.graph.initializer[:]
    return str(onnx.printer.to_text(model))


def with_results(recording: Recording, *, pictures: bool = True) -> Recording:
    """The recording with every part of the results: an engine a function, text for the first."""
    texts = recording.texts | {"onnx:0": onnx_text(), "layers:0": "Conv_0 + Relu6_0  fp32  0.2 ms"}
    engines: dict[str, EngineInfo] = {}
    for sub in recording.last.subgraphs:
        number = len(engines)
        engines.setdefault(
            sub.function,
            EngineInfo(
                sub.function,
                sub.op_ids,
                seconds=0.31 / (1 + number),
                cached=number % 3 == 2,
                bytes=17_301_504 >> min(number, 20),
                facts={"provider": "CPUExecutionProvider", "threads": "2", "precision": "fp32"},
                code="onnx:0",
                layers="layers:0" if number == 0 else "",
            ),
        )
    tree = [
        ModuleNode("relax.VMExecutable", "", "12 functions, 1.2 MiB of constants"),
        ModuleNode("library", "lib.so", "llvm -mcpu=x86-64-v3", 0),
        *[ModuleNode("engine", e.function, "ONNX Runtime, CPU", 0) for e in engines.values()],
    ]
    build = BuildInfo(
        "onnxruntime",
        "ONNX Runtime",
        stands_in_for="TensorRT",
        why="this machine has no NVIDIA GPU",
        target='{"kind": "llvm"}',
        step=recording.last.name,
        engines=list(engines.values()),
        lower_seconds=0.41,
        tvm_seconds=2.9,
        tree=tree,
        made="2026-01-01T12:00:00Z",
        machine=MACHINE,
    )
    rng = random.Random(7)
    differences = [
        Difference(name, "output", rng.uniform(1e-6, 4e-5), rng.uniform(1e-6, 1e-3))
        for name in ("boxes", "scores", "selected")
    ] + [
        Difference(s.name, "subgraph", rng.uniform(1e-7, 6e-5), rng.uniform(1e-6, 2e-3))
        for s in recording.last.subgraphs
    ]
    check = Check(1e-3, 1e-3, "the photo coffee.jpg", differences)
    timings = latency([sub.name for sub in recording.last.subgraphs] or ["none"])
    results = Results(build, check, timings, list(photos()) if pictures else [])
    return msgspec.structs.replace(recording, results=results, texts=texts)
