from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from PIL import Image

from byocviz.errors import ModelError
from byocviz.models import ssd

pytestmark = pytest.mark.xdist_group("ssd")  # in one process it is made once
FOUND = {
    "coffee": [("cup", 0.953), ("dining table", 0.572)],
    "chelsea": [("cat", 0.937)],
    "astronaut": [("person", 0.623)],
}


@pytest.fixture(scope="module")
def session():
    return onnxruntime.InferenceSession(ssd.path())


@pytest.fixture(scope="module")
def machine():
    import tvm
    from tvm import relax

    built = tvm.compile(ssd.load(), target=tvm.target.Target({"kind": "llvm"}))
    return relax.VirtualMachine(built, tvm.cpu())


def check(name, found, size):
    assert [d.label for d in found] == [label for label, _ in FOUND[name]]
    for detection, (_, score) in zip(found, FOUND[name], strict=True):
        assert detection.score == pytest.approx(score, abs=0.005)
        left, top, right, bottom = detection.box
        assert 0 <= left < right <= size[0]
        assert 0 <= top < bottom <= size[1]
        assert ssd.labels()[detection.index] == detection.label


@pytest.mark.parametrize("name", FOUND)
def test_onnx_runtime_finds_what_it_should(session, name):
    path = ssd.photos()[name]
    with Image.open(path) as photo:
        size = photo.size
    outputs = session.run(None, {ssd.INPUT: ssd.preprocess(path)})
    check(name, ssd.postprocess(outputs, size), size)


@pytest.mark.parametrize("name", FOUND)
def test_tvm_finds_the_same(session, machine, name):
    import tvm

    image = ssd.preprocess(ssd.photos()[name])
    with Image.open(ssd.photos()[name]) as photo:
        size = photo.size
    outputs = list(machine["main"](tvm.runtime.tensor(image)))
    found = ssd.postprocess(outputs, size)
    check(name, found, size)
    theirs = ssd.postprocess(session.run(None, {ssd.INPUT: image}), size)
    for a, b in zip(found, theirs, strict=True):
        assert a.box == pytest.approx(b.box, abs=0.01)
        assert a.score == pytest.approx(b.score, abs=1e-5)


def test_the_module_is_what_tvm_imports():
    import onnx
    import tvm
    from tvm import relax
    from tvm.relax.frontend.onnx import from_onnx

    mod = ssd.load()
    tvm.ir.assert_structural_equal(mod, from_onnx(onnx.load(ssd.path())))
    names = []

    def visit(expr):
        if isinstance(expr, relax.Call):
            names.append(expr.span.source_name.name if expr.span else "")

    relax.analysis.post_order_visit(mod["main"], visit)
    assert len(names) == 705
    assert "" not in names
    assert set(names) == {n.name for n in onnx.load(ssd.path()).graph.node}


def test_a_path_an_image_and_an_array_are_the_same():
    path = ssd.photos()["coffee"]
    first = ssd.preprocess(path)
    assert first.shape == (1, 3, 300, 300)
    assert first.dtype == np.float32
    assert first.flags.c_contiguous
    assert -1 <= first.min() < first.max() <= 1
    with Image.open(path) as photo:
        np.testing.assert_array_equal(ssd.preprocess(photo), first)
        np.testing.assert_array_equal(ssd.preprocess(np.asarray(photo)), first)
    np.testing.assert_array_equal(ssd.preprocess(str(path)), first)


def test_preprocess_is_the_formula():
    image = np.zeros((300, 300, 3), np.uint8)
    image[..., 0], image[..., 1] = 255, 51
    values = ssd.preprocess(image)[0]
    np.testing.assert_allclose(values[0], 1, atol=1e-6)
    np.testing.assert_allclose(values[1], 51 / 127.5 - 1, atol=1e-6)
    np.testing.assert_allclose(values[2], -1, atol=1e-6)


@pytest.mark.parametrize(
    "image",
    [
        np.zeros((300, 300), np.uint8),
        np.zeros((300, 300, 4), np.uint8),
        np.zeros((300, 300, 3), np.float32),
        np.zeros((0, 3, 3), np.uint8),
        "nonsense",
    ],
)
def test_arrays_of_another_form(image):
    with pytest.raises(ModelError, match=r"uint8|cannot be read as an image"):
        ssd.preprocess(image)


def test_files_that_are_no_image(tmp_path):
    path = tmp_path / "a.jpg"
    path.write_bytes(b"no image")
    cut = tmp_path / "b.jpg"
    cut.write_bytes(ssd.photos()["coffee"].read_bytes()[:2000])
    for bad in (path, cut, tmp_path / "none.jpg"):
        with pytest.raises(ModelError, match="cannot be read as an image"):
            ssd.preprocess(bad)


def test_gray_and_transparent_images_become_rgb():
    for mode in ("L", "RGBA", "P", "1", "CMYK"):
        assert ssd.preprocess(Image.new(mode, (20, 10))).shape == (1, 3, 300, 300)


@pytest.fixture
def outputs():
    rng = np.random.default_rng(0)
    boxes = np.sort(rng.uniform(-0.1, 1.1, (1, 1917, 4)), axis=-1).astype("float32")
    boxes = boxes[..., [0, 1, 2, 3]]
    scores = rng.uniform(0, 1, (1, 90, 1917)).astype("float32")
    selected = np.stack(
        [np.zeros(50), rng.integers(0, 90, 50), rng.integers(0, 1917, 50)], axis=1
    ).astype(np.int64)
    return boxes, scores, np.unique(selected, axis=0)


def test_detections_are_sorted_and_inside(outputs):
    found = ssd.postprocess(outputs, (640, 480), threshold=0.4)
    scores = [d.score for d in found]
    assert scores == sorted(scores, reverse=True)
    assert min(scores) >= 0.4
    expected = sum(outputs[1][tuple(row)] >= 0.4 for row in outputs[2])
    assert len(found) == expected
    for d in found:
        assert 0 <= d.box[0] <= d.box[2] <= 640
        assert 0 <= d.box[1] <= d.box[3] <= 480


def test_padding_changes_nothing(outputs):
    boxes, scores, selected = outputs
    scores[0, 0, 0] = 0.1
    plain = ssd.postprocess(outputs, (640, 480))
    for filler in (0, -1, 10**6):
        padded = np.full((172530, 3), filler, np.int64)
        padded[: len(selected)] = selected
        assert ssd.postprocess((boxes, scores, padded), (640, 480)) == plain
        count = np.array([len(selected)], np.int64)
        assert ssd.postprocess((boxes, scores, padded, count), (640, 480)) == plain
    none = ssd.postprocess((boxes, scores, selected, np.array([0])), (640, 480))
    assert none == []
    assert ssd.postprocess((boxes, scores, selected[:0]), (640, 480)) == []


def test_outputs_of_another_form(outputs):
    boxes, scores, selected = outputs
    for bad in (
        (boxes, scores),
        (scores, boxes, selected),
        (boxes[..., :3], scores, selected),
        (boxes, scores, selected[:, :2]),
        (boxes, scores[:, :80], selected),
    ):
        with pytest.raises(ModelError, match="outputs"):
            ssd.postprocess(bad, (640, 480))


def test_labels():
    labels = ssd.labels()
    assert len(labels) == 90
    assert labels[0] == "person"
    assert labels.count(None) == 10
    labels.clear()
    assert len(ssd.labels()) == 90
