"""Plots of the bundled SSD: recorded by TVM, its detections found by ONNX Runtime."""

from __future__ import annotations

import base64

import pytest
from PIL import Image

import byocviz
from byocviz import plots
from byocviz.models import ssd
from byocviz.recording.results import BuildInfo, Detected, Found, Latency, Part, Photo, Variant
from byocviz.render import figures
from tests.render import plots_lab as lab

pytestmark = pytest.mark.xdist_group("ssd")  # in one process it is made once
BYOC, ALONE = "TVM + ONNX Runtime", "ONNX Runtime alone"


@pytest.fixture(scope="module")
def recording() -> byocviz.Recording:
    recording = byocviz.record(ssd.load(), progress=False, title="SSDLite MobileNetV2")
    step = recording.last.profile
    crossing = (step.bytes_in or 0) + (step.bytes_out or 0)
    part = [Part("tensorrt_0", 0.010), Part("TVM", 0.001)]
    byoc = Variant(BYOC, "byoc", median=0.012, subgraphs=step.subgraphs, parts=part)
    byoc.boundary_bytes = crossing
    return lab.with_results(
        recording,
        build=BuildInfo("onnxruntime", "ONNX Runtime", stands_in_for="TensorRT"),
        latency=Latency([Variant("TVM alone", "tvm", median=0.1), byoc], 10, 1),
        photos=_photos(),
    )


def _photos() -> list[Photo]:
    import onnxruntime

    session = onnxruntime.InferenceSession(str(ssd.path()), providers=["CPUExecutionProvider"])
    photos = []
    for name, path in ssd.photos().items():
        with Image.open(path) as image:
            size = image.size
        outputs = session.run(None, {ssd.INPUT: ssd.preprocess(path)})
        found = [Found(d.label, d.score, d.box, d.index) for d in ssd.postprocess(outputs, size)]
        detected = [Detected(ALONE, "runtime", found), Detected(BYOC, "byoc", found, 0.0, 0.0)]
        url = f"data:image/jpeg;base64,{base64.b64encode(path.read_bytes()).decode()}"
        photos.append(Photo(name, *size, url, detected))
    return photos


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_plot_is_whole(recording: byocviz.Recording, theme: str) -> None:
    for name in plots.__all__:
        lab.check(getattr(plots, name)(recording, theme=theme))


def test_detections_stand_where_they_were_found(recording: byocviz.Recording) -> None:
    figure = plots.detections(recording)
    panels = lab.axes_named(figure, "photo")
    photos = recording.results.photos
    assert len(panels) == 2 * len(photos)
    for photo, panel in zip(photos, panels[::2], strict=True):
        [image] = panel.images
        assert list(image.get_extent()) == [0, photo.width, photo.height, 0]
        boxes = {tuple(box.get_bbox().extents) for box in lab.patches(panel, "found")}
        assert boxes == {found.box for found in photo.detected[0].found}
    said = lab.words(figure).splitlines()
    for photo in photos:
        for found in photo.detected[0].found:
            assert said.count(f"{found.label} {found.score:.3f}") == 2
    assert {"cup 0.953", "dining table 0.572", "cat 0.937", "person 0.623"} <= set(said)


def test_labels_lie_on_their_photo(recording: byocviz.Recording) -> None:
    figure = plots.detections(recording, "coffee", ALONE)
    [panel] = lab.axes_named(figure, "photo")
    inside = panel.get_window_extent()
    tags = [text for text in lab.texts(figure) if text.get_text().endswith(("0.953", "0.572"))]
    assert len(tags) == 2
    for tag in tags:
        extent = tag.get_window_extent()
        assert inside.x0 <= extent.x0 <= extent.x1 <= inside.x1
        assert inside.y0 <= extent.y0 <= extent.y1 <= inside.y1


def test_the_slide_says_what_was_found_and_measured(recording: byocviz.Recording) -> None:
    said = " ".join(lab.words(plots.demo(recording)).split())
    profile = recording.last.profile
    for text in (
        "SSDLite MobileNetV2",
        f"{profile.offloaded_ops} of {profile.total} operators",
        "ONNX Runtime stands in for TensorRT",
        "12.0 ms",
        "8.3× faster",
        figures.data((profile.bytes_in or 0) + (profile.bytes_out or 0)),
        "Both variants find the same: scores and boxes are equal",
        f"Boxes drawn: those of {BYOC}",
        "cat 0.937",
    ):
        assert text in said, text


def test_what_is_left_on_tvm_is_counted(recording: byocviz.Recording) -> None:
    figure = plots.op_profile(recording)
    [axes] = lab.axes_named(figure, "operators")
    left = sum(patch.get_width() for patch in lab.patches(axes, "tvm"))
    assert left == recording.last.profile.total - recording.last.profile.offloaded_ops
    said = lab.words(figure)
    assert f"{recording.last.profile.offloaded_ops} of {recording.last.profile.total}" in said
