"""Photos in and boxes out of a detector, and how an ONNX file tells it. Needs no GluonCV."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import byocviz
from byocviz.errors import MissingPackage, ModelError
from byocviz.models import detector, ssd
from byocviz.models._detector import METADATA, Detector

HERE = Detector(
    network="ssd",
    input="data",
    height=40,
    width=80,
    classes=("cat", "dog"),
    mean=(0.5, 0.25, 0.0),
    std=(0.5, 0.25, 1.0),
)


def model(text: str | None) -> onnx.ModelProto:
    kind = onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Relu", ["x"], ["y"])],
        "g",
        [onnx.helper.make_tensor_value_info("x", kind, [1])],
        [onnx.helper.make_tensor_value_info("y", kind, [1])],
    )
    made = onnx.helper.make_model(graph)
    if text is not None:
        onnx.helper.set_model_props(made, {METADATA: text})
    return made


def outputs(*rows: tuple[float, ...]) -> list[np.ndarray]:
    table = np.array(rows, np.float32).reshape(1, -1, 6)
    return [table[:, :, :1], table[:, :, 1:2], table[:, :, 2:]]


def test_a_photo_of_one_colour() -> None:
    colour = Image.new("RGB", (100, 60), (255, 0, 51))
    data = HERE.preprocess(colour)
    assert data.shape == (1, 3, 40, 80)
    assert data.dtype == np.float32
    for channel, value in enumerate((1.0, -1.0, 0.2)):
        np.testing.assert_allclose(data[0, channel], value, atol=1e-6)
    np.testing.assert_array_equal(HERE.preprocess(np.asarray(colour)), data)


@pytest.mark.parametrize("bad", ["absent.jpg", np.zeros((4, 4), np.uint8), np.zeros((4, 4, 3))])
def test_what_is_no_photo(bad: Any) -> None:
    with pytest.raises(ModelError):
        HERE.preprocess(bad)


def test_boxes_are_the_photos_and_cut_at_its_edges() -> None:
    rows = outputs(
        (1, 0.5, 8, 4, 16, 8),
        (0, 0.9, -8, -4, 800, 400),
        (0, 0.2, 0, 0, 1, 1),
        (-1, -1, -1, -1, -1, -1),
        (2, 0.8, 0, 0, 1, 1),  # a class that there is not
        (0, float("nan"), 0, 0, 1, 1),
    )
    first, second = HERE.postprocess(rows, (800, 400))
    assert (first.label, first.index, first.box) == ("cat", 0, (0, 0, 800, 400))
    assert (second.label, second.index, second.box) == ("dog", 1, (80, 40, 160, 80))
    assert second.score == pytest.approx(0.5)
    assert len(HERE.postprocess(rows, (800, 400), threshold=0.1)) == 3


@pytest.mark.parametrize(
    "bad",
    [
        [],
        [np.zeros((1, 3, 1))],
        [np.zeros((1, 3, 1)), np.zeros((1, 3, 1)), np.zeros((1, 3, 3))],
        [np.zeros((1, 3, 1)), np.zeros((1, 2, 1)), np.zeros((1, 3, 4))],
        [np.zeros(3), np.zeros(3), np.zeros(12)],
    ],
)
def test_outputs_of_another_form_are_refused(bad: list[np.ndarray]) -> None:
    with pytest.raises(ModelError, match="outputs of ssd"):
        HERE.postprocess(bad, (10, 10))


def test_a_file_tells_it(tmp_path: Path) -> None:
    file = tmp_path / "m.onnx"
    onnx.save(model(HERE.metadata()), str(file))
    assert detector(file) == detector(model(HERE.metadata())) == HERE


@pytest.mark.parametrize(
    "change",
    [
        {"height": 0},
        {"width": -3},
        {"width": 1 << 40},
        {"classes": []},
        {"classes": "cat"},
        {"std": [0, 1, 1]},
        {"mean": [1, 2]},
        {"network": None},
        {"classes": ["c" * 2_000_000]},
    ],
)
def test_a_file_that_lies_is_refused(change: dict[str, Any]) -> None:
    text = json.dumps(msgspec.to_builtins(HERE) | change)
    with pytest.raises(ModelError, match="cannot be right"):
        detector(model(text))


@given(st.text(max_size=60))
def test_no_text_does_harm(text: str) -> None:
    with pytest.raises(ModelError):
        detector(model(text))


def test_a_file_that_says_nothing(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="does not say"):
        detector(ssd.path())
    broken = tmp_path / "m.onnx"
    broken.write_bytes(b"\x08\x07 no model")
    with pytest.raises(ModelError):
        detector(broken)
    with pytest.raises(ModelError, match="no file"):
        detector(tmp_path / "absent.onnx")


@pytest.mark.skipif(importlib.util.find_spec("gluoncv") is not None, reason="GluonCV is here")
def test_without_gluoncv_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from byocviz.cli import main

    monkeypatch.chdir(tmp_path)
    assert main(["import-gluoncv", "ssd_512_resnet50_v1_coco"]) == 1
    said = capsys.readouterr().err
    assert "GluonCV" in said
    assert "-m venv" in said
    with pytest.raises(MissingPackage, match="-m venv"):
        byocviz.models.gluoncv()
    assert list(tmp_path.iterdir()) == []
