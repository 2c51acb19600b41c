"""GluonCV's networks as ONNX, which MXNet, ONNX Runtime and Relax must read alike."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("mxnet")

import mxnet
import onnx
import onnxruntime

from byocviz.cli import main
from byocviz.errors import ByocvizError, ModelError
from byocviz.models import detector, ssd
from byocviz.models.gluon_export import OPSET, _Suppression, export_gluoncv, to_onnx
from byocviz.models.gluon_network import Network, network
from tests.corpus_relay import ssd as demo

pytestmark = demo.together
ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def made() -> Network:
    found: Network = demo.model().network
    return found


@pytest.fixture(scope="module")
def file(made: Network, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export_gluoncv(tmp_path_factory.mktemp("export") / "ssd.onnx", made)


@pytest.fixture(scope="module")
def photos(made: Network) -> dict[str, np.ndarray]:
    assert made.detector is not None
    return {name: made.detector.preprocess(path) for name, path in ssd.photos().items()}


def session(model: Any) -> Any:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model, options)


def same(theirs: Any, mine: Any) -> None:
    """All 100 rows: the class, the score, the box."""
    for found in (theirs, mine):
        assert [np.asarray(f).shape for f in found] == [(1, 100, 1), (1, 100, 1), (1, 100, 4)]
    assert int((theirs[0] == mine[0]).sum()) == 100
    np.testing.assert_allclose(mine[1], theirs[1], atol=2e-5)
    np.testing.assert_allclose(mine[2], theirs[2], atol=2e-2)


def test_every_row_is_that_of_mxnet(
    made: Network, file: Path, photos: dict[str, np.ndarray]
) -> None:
    runs = session(str(file))
    for data in photos.values():
        theirs = made.run(data)
        assert len(np.unique(theirs[0])) > 5  # several classes, or nothing is shown
        same(theirs, runs.run(["ids", "scores", "boxes"], {"data": data}))


def test_the_file_says_how_photos_go_in(made: Network, file: Path) -> None:
    assert detector(file) == made.detector
    model = onnx.load_model(str(file))
    onnx.checker.check_model(model)
    assert [i.name for i in model.graph.input] == ["data"]
    assert [(o.domain, o.version) for o in model.opset_import] == [("", OPSET)]
    read = {name for node in model.graph.node for name in node.input}
    assert {one.name for one in model.graph.initializer} <= read


def test_relax_takes_the_file_and_finds_the_same(
    made: Network, file: Path, photos: dict[str, np.ndarray], tmp_path: Path
) -> None:
    python = os.environ.get("BYOCVIZ_RELAX_PYTHON")
    if not python:
        pytest.skip("BYOCVIZ_RELAX_PYTHON names no Python with Relax (tests/run.py sets it)")
    np.savez(tmp_path / "in.npz", **photos)
    script = Path(__file__).with_name("relax_check.py")
    done = subprocess.run(
        [python, str(script), str(file), str(tmp_path / "in.npz"), str(tmp_path / "out.npz")],
        cwd=ROOT,
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    with np.load(tmp_path / "out.npz") as found:
        assert int(found["subgraphs"]) == 1
        assert int(found["convolutions"]) == 73
        for name, data in photos.items():
            same(made.run(data), [found[f"{name}_{w}"] for w in ("ids", "scores", "boxes")])


def rows(random: np.random.Generator, many: int, classes: int, valid: float) -> np.ndarray:
    """What a network hands to box_nms: id, score, box; no two scores alike, some worth nothing."""
    corner = random.uniform(0, 60, (many, 2))
    boxes = np.concatenate([corner, corner + random.uniform(5, 40, (many, 2))], axis=1)
    scores = random.permutation(np.linspace(0.02, 1, many))
    ids = random.integers(0, classes, many).astype(float)
    out = random.random(many) >= valid
    scores[out], ids[out] = 0, -1
    return np.column_stack([ids, scores, boxes])[None].astype(np.float32)


@pytest.mark.parametrize("seed", range(24))
def test_suppression_is_that_of_mxnet(seed: int) -> None:
    random = np.random.default_rng(seed)
    many = int(random.integers(20, 200))
    classes = int(random.choice([1, 2, 7]))
    candidates = int(random.integers(5, many + 1))
    wanted = _Suppression(
        source="",
        rows=int(random.integers(1, candidates + 1)),
        candidates=candidates,
        overlap=float(random.choice([0.2, 0.45, 0.7])),
        least=0.01,
        classes=classes,
    )
    data = rows(random, many, classes, float(random.choice([0, 0.2, 0.7, 1])))
    nodes, constants = wanted.written("before")
    value = onnx.helper.make_tensor_value_info
    kind = onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        nodes,
        "nms",
        [value("before", kind, data.shape)],
        [value(n, kind, (1, wanted.rows, w)) for n, w in (("ids", 1), ("scores", 1), ("boxes", 4))],
        constants,
    )
    model = onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", OPSET)], ir_version=8
    )
    onnx.checker.check_model(model, full_check=True)
    mine = session(model.SerializeToString()).run(None, {"before": data})
    theirs = mxnet.nd.contrib.box_nms(
        mxnet.nd.array(data),
        overlap_thresh=wanted.overlap,
        topk=candidates,
        valid_thresh=wanted.least,
        id_index=0 if classes > 1 else -1,
        score_index=1,
        coord_start=2,
        force_suppress=False,
    ).asnumpy()[:, : wanted.rows]
    np.testing.assert_array_equal(np.concatenate(mine, axis=2), theirs)


def test_a_classifier(tmp_path: Path) -> None:
    classifier = network("resnet18_v1", pretrained=False, shape=(1, 3, 64, 64))
    path = export_gluoncv(tmp_path / "c.onnx", classifier)
    data = np.random.default_rng(0).standard_normal(classifier.shape).astype(np.float32)
    (mine,) = session(str(path)).run(None, {"data": data})
    np.testing.assert_allclose(mine, classifier.run(data)[0], rtol=1e-4, atol=1e-4)
    with pytest.raises(ModelError, match="does not say how photos"):
        detector(path)


def test_a_suppression_of_another_form_is_refused(made: Network) -> None:
    made.block.set_nms(nms_thresh=0.45, nms_topk=400, post_nms=-1)
    try:
        with pytest.raises(ModelError, match="unknown form"):
            to_onnx(made)
    finally:
        made.block.set_nms(nms_thresh=0.45, nms_topk=400, post_nms=100)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.onnx"
    command = ["import-gluoncv", "mobilenet0.25", "--no-pretrained", "--shape", "1,3,64,64"]
    assert main([*command, "-o", str(path)]) == 0
    assert str(path) in capsys.readouterr().err
    first = path.read_bytes()
    assert main([*command, "-o", str(path), "--seed", "0"]) == 0
    assert path.read_bytes() == first
    assert main([*command, "-o", str(path), "--seed", "1"]) == 0
    assert path.read_bytes() != first


def test_what_the_command_refuses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, output, said in (
        ("mobilenet0.25", "m.txt", "does not end in .onnx"),
        ("mobilenet0.25", "absent/m.onnx", "no folder"),
        ("mobilenet0.2", "m.onnx", "no network"),
    ):
        assert main(["import-gluoncv", name, "--no-pretrained", "-o", output]) == 1
        assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written(made: Network, tmp_path: Path) -> None:
    with pytest.raises(ByocvizError, match="cannot be written"):
        export_gluoncv(tmp_path, made)
