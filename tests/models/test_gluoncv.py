"""GluonCV's networks: straight to Relay. Runs in the environment of Relay."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("mxnet")
pytest.importorskip("tvm.relay")

import byocviz
from byocviz.errors import ArgumentError, ModelError
from byocviz.models import ssd
from byocviz.models.gluon import GluonModel
from byocviz.models.gluon_network import Network, network
from tests.corpus_relay import ssd as demo

pytestmark = demo.together
SMALL = "ssd_512_mobilenet1.0_coco"


@pytest.fixture(scope="module")
def model() -> GluonModel:
    return demo.model()


@pytest.fixture(scope="module")
def small() -> Network:
    return network(SMALL, pretrained=False)


def digest(made: Network) -> str:
    found = hashlib.sha256()
    for name, value in sorted(made.parameters().items()):
        found.update(name.encode() + value.asnumpy().tobytes())
    return found.hexdigest()


def operators(function: Any) -> Counter[str]:
    from tvm import relay

    found: Counter[str] = Counter()

    def visit(expr: Any) -> None:
        if isinstance(expr, relay.Call):
            found[expr.op.name] += 1

    relay.analysis.post_order_visit(function, visit)
    return found


def test_the_demos_network_has_the_demos_operators(model: GluonModel) -> None:
    found = operators(model.mod["main"])
    assert sum(found.values()) == 676
    assert found["nn.conv2d"] == 73
    assert model.name == "ssd_512_resnet50_v1_coco"
    assert model.input == model.mod["main"].params[0].name_hint
    assert model.shape == (1, 3, 512, 512)
    assert len(model.classes) == 80
    assert {"person", "cat", "cup"} <= set(model.classes)


def test_bound_leaves_the_input_alone(model: GluonModel) -> None:
    bound = model.bound()
    assert [p.name_hint for p in bound["main"].params] == [model.input]
    assert operators(bound["main"]) == operators(model.mod["main"])
    assert len(model.mod["main"].params) == 1 + len(model.params)


def test_seeded_statistics_are_sane(model: GluonModel) -> None:
    for name, value in model.params.items():
        array = value.numpy()
        assert np.isfinite(array).all(), name
        if name.endswith("_var"):
            assert (array > 0).all(), name


def test_the_same_seed_gives_the_same_weights(small: Network) -> None:
    assert digest(network(SMALL, pretrained=False)) == digest(small)
    assert digest(network(SMALL, pretrained=False, seed=1)) != digest(small)


@pytest.mark.parametrize("name", sorted(ssd.photos()))
def test_what_is_found_is_in_the_photo_and_has_a_name(model: GluonModel, name: str) -> None:
    from PIL import Image

    photo = ssd.photos()[name]
    data = model.preprocess(photo)
    assert data.shape == model.shape
    assert data.dtype == np.float32
    outputs = model.network.run(data)
    assert [o.shape for o in outputs] == [(1, 100, 1), (1, 100, 1), (1, 100, 4)]
    assert all(np.isfinite(o).all() for o in outputs)
    with Image.open(photo) as opened:
        width, height = opened.size
    found = model.postprocess(outputs, (width, height), threshold=0.05)
    assert found == sorted(found, key=lambda one: -one.score)
    assert len(found) == int((outputs[1] >= 0.05).sum())
    for one in found:
        assert one.label == model.classes[one.index]
        left, top, right, bottom = one.box
        assert 0 <= left <= right <= width
        assert 0 <= top <= bottom <= height


@pytest.mark.parametrize("size", [(1024, 700), (300, 200), (800, 400), (512, 512)])
def test_photos_go_in_as_gluoncv_validates(small: Network, size: tuple[int, int]) -> None:
    import mxnet
    from gluoncv.data.transforms.presets.ssd import SSDDefaultValTransform
    from PIL import Image

    assert small.detector is not None
    with Image.open(ssd.photos()["coffee"]) as opened:
        image = opened.convert("RGB").resize(size)
    theirs, _ = SSDDefaultValTransform(512, 512)(
        mxnet.nd.array(np.asarray(image), dtype="uint8"), np.zeros((1, 5), np.float32)
    )
    mine = small.detector.preprocess(image)[0]
    levels = np.abs(mine - theirs.asnumpy()) * 0.23 * 255  # of 256 that a colour has
    assert float(levels.mean()) < 2
    assert float(np.percentile(levels, 99)) < 12


def test_weights_out_of_a_file(small: Network, tmp_path: Path) -> None:
    file = tmp_path / "small.params"
    network(SMALL, pretrained=False, seed=7).block.save_parameters(str(file))
    read = network(SMALL, weights=file)
    assert digest(read) == digest(network(SMALL, pretrained=False, seed=7)) != digest(small)
    file.write_bytes(file.read_bytes()[:1000])
    with pytest.raises(ModelError, match="does not hold the weights"):
        network(SMALL, weights=file)
    with pytest.raises(ModelError, match="no file"):
        network(SMALL, weights=tmp_path / "absent.params")


def test_a_model_zoo_out_of_reach_is_said_with_the_mend(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MXNET_HOME", str(tmp_path))
    monkeypatch.setenv("MXNET_GLUON_REPO", "http://127.0.0.1:9/")
    with pytest.raises(ModelError, match="cannot be had") as caught:
        byocviz.models.gluoncv(SMALL)
    assert "pretrained=False" in caught.value.mend
    assert "weights=" in caught.value.mend


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ModelError, match="no network 'ssd_512_resnet50'") as caught:
        network("ssd_512_resnet50", pretrained=False)
    assert "ssd_512_resnet50_v1_coco" in caught.value.mend
    for shape in ((3, 512, 512), (2, 3, 512, 512), (1, 3, 0, 512), (1, 3, 512.0, 512)):
        with pytest.raises(ArgumentError):
            network(SMALL, pretrained=False, shape=shape)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="named by text"):
        network(5)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="does not run on an input"):
        network("alexnet", pretrained=False, shape=(1, 3, 20, 20))


def test_a_classifier_finds_no_boxes() -> None:
    made = byocviz.models.gluoncv("mobilenet0.25", pretrained=False, shape=(1, 3, 64, 64))
    assert made.shape == (1, 3, 64, 64)
    with pytest.raises(ModelError, match="finds no boxes"):
        made.preprocess(ssd.photos()["coffee"])
    # Its weights go with it wherever a module goes.
    recording = byocviz.record(made, progress=False)
    assert recording.ir == "relay"
    assert recording.failed is None
    wanted = byocviz.record(made.mod, params=made.params, progress=False)
    assert recording.steps[0].profile == wanted.steps[0].profile
    assert recording.last.places == wanted.last.places
    assert byocviz.models.load(made) is made.mod
