"""The bundled SSD, built: what the demo shows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from PIL import Image

pytest.importorskip("tvm")

import byocviz
from byocviz.building.lower import check
from byocviz.errors import ArgumentError, ModelError
from byocviz.flow.relax.compat import attribute
from byocviz.models import ssd
from byocviz.models.ssd import Detection

pytestmark = pytest.mark.xdist_group("ssd")  # in one process it is made once
KNOWN = {
    "coffee": {"cup": 0.953, "dining table": 0.572},
    "chelsea": {"cat": 0.937},
    "astronaut": {"person": 0.623},
}
"""What ONNX Runtime alone finds in the model's own file."""


@pytest.fixture(scope="module")
def build() -> byocviz.Build:
    return byocviz.build(byocviz.record(ssd.load(), progress=False), cache=False, progress=False)


def test_every_variant_finds_what_onnx_runtime_finds(build: byocviz.Build) -> None:
    session = onnxruntime.InferenceSession(ssd.path(), providers=["CPUExecutionProvider"])
    photos = build.detect()
    assert {p.name for p in photos} == set(KNOWN)
    for photo in photos:
        with Image.open(ssd.photos()[photo.name]) as image:
            assert (photo.width, photo.height) == image.size
        outputs = session.run(None, {ssd.INPUT: ssd.preprocess(ssd.photos()[photo.name])})
        alone = ssd.postprocess(outputs, (photo.width, photo.height))
        assert {d.label: pytest.approx(d.score, abs=0.005) for d in alone} == KNOWN[photo.name]
        assert [one.kind for one in photo.detected] == ["tvm", "byoc", "runtime"]
        for one in photo.detected:
            assert {f.label: pytest.approx(f.score, abs=0.005) for f in one.found} == KNOWN[
                photo.name
            ]
        for one in photo.detected[1:]:
            assert one.max_score is not None
            assert one.max_score < 1e-3
            assert one.max_box is not None
            assert one.max_box < 0.1


def test_it_equals_tvm_alone(build: byocviz.Build) -> None:
    found = build.check(ssd.preprocess(ssd.photos()["coffee"]))
    assert found.first == ""
    assert [d for d in found.differences if d.exceeds] == []
    assert [d.kind for d in found.differences] == ["output"] * 3 + ["subgraph"]


def test_the_figure_shows_what_was_measured(build: byocviz.Build, tmp_path: Path) -> None:
    build.latency(ssd.preprocess(ssd.photos()["coffee"]), repeat=2, warmup=0)
    build.detect({"cat": ssd.photos()["chelsea"]})
    figure = build.plot()
    figure.savefig(tmp_path / "demo.png")
    text = build.summary()
    for said in ("TVM alone", "Latency", "Detections", "cat 0.937"):
        assert said in text
    page = build.recording.to_html(tmp_path / "ssd.html")
    assert page.stat().st_size < 1_500_000


def test_photos_of_many_kinds(build: byocviz.Build) -> None:
    path = ssd.photos()["chelsea"]
    with Image.open(path) as opened:
        image = opened.convert("RGB")
    (alone,) = build.detect(image)
    several = build.detect([image, path, str(path)])
    assert [p.name for p in (alone, *several)] == ["photo", "photo 1", "chelsea", "chelsea (3)"]
    assert {p.detected[0].found[0].label for p in (alone, *several)} == {"cat"}


def test_another_model_s_own_pre_and_postprocessing(build: byocviz.Build) -> None:
    """What is found is up to the caller; differences are between the variants."""

    def after(outputs: list[np.ndarray], size: tuple[int, int]) -> list[Detection]:
        scores = np.asarray(outputs[1].numpy() if hasattr(outputs[1], "numpy") else outputs[1])
        return [Detection("best", float(scores.max()), (0.0, 0.0, *map(float, size)))]

    (photo,) = build.detect(ssd.photos()["chelsea"], postprocess=after)
    assert photo.detected[0].found[0].label == "best"
    with pytest.raises(ArgumentError, match="no detection"):
        build.detect(ssd.photos()["chelsea"], postprocess=lambda outputs, size: ["cat"])


def test_photos_that_are_none(build: byocviz.Build, tmp_path: Path) -> None:
    (tmp_path / "x.jpg").write_text("no image")
    for path in (tmp_path / "x.jpg", tmp_path / "nowhere.jpg", tmp_path):
        with pytest.raises(ModelError, match="cannot be read as an image"):
            build.detect(path)
    with pytest.raises(ArgumentError, match="A photo is a int"):
        build.detect({"a": 3})


def test_every_step_s_subgraphs_lower(build: byocviz.Build) -> None:
    """A subgraph that is shown as offloadable is one that lowers, at every step."""
    for step in ("annotate", "partition", "prune"):
        for _, function in build.recording.module(step).functions_items():
            if attribute(function, "Codegen"):
                assert check(function) == []


def test_names_in_the_onnx_lead_to_the_recording_s_operators(build: byocviz.Build) -> None:
    recording = build.recording
    (lowered,) = build.runnable.lowered.values()
    (subgraph,) = recording.step("prune").subgraphs
    assert list(lowered.operators) == subgraph.op_ids
    for node in lowered.model.graph.node:
        for identity in lowered.nodes[node.name]:
            assert recording.ops[identity].name == lowered.calls[node.name]


def test_outputs_are_written_where_tvm_wants_them(build: byocviz.Build) -> None:
    (engine,) = build.engines.values()
    image = ssd.preprocess(ssd.photos()["coffee"])
    outputs = [np.full(p.shape, np.nan, p.dtype) for p in engine.outputs]
    addresses = [o.ctypes.data for o in outputs]
    engine.run_into([image], outputs)
    assert [o.ctypes.data for o in outputs] == addresses
    for given, wanted in zip(outputs, engine.run([image]), strict=True):
        np.testing.assert_array_equal(given, wanted)
