"""The demo itself: GluonCV's SSD, partitioned for TensorRT, built, against MXNet."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.relay import needs_relay

needs_relay()
pytest.importorskip("mxnet")
pytest.importorskip("gluoncv")

import byocviz  # noqa: E402
from byocviz.models import ssd  # noqa: E402
from byocviz.models.gluon import GluonModel  # noqa: E402
from tests.corpus_relay import ssd as demo  # noqa: E402

pytestmark = demo.together


@pytest.fixture(scope="module")
def model() -> GluonModel:
    return demo.model()


@pytest.fixture(scope="module")
def build() -> byocviz.Build:
    return byocviz.build(demo.recording(), cache=False, progress=False)


def test_the_demo_s_figures(build: byocviz.Build) -> None:
    recording = build.recording
    first = recording.step("import").places
    operators = {i: recording.ops[i].name for i in first if recording.ops[i].kind == "operator"}
    assert len(operators) == 676
    assert len(recording.step("partition").subgraphs) == 5
    (subgraph,) = recording.step("prune").subgraphs
    inside = [recording.ops[i].name for i in subgraph.op_ids]
    assert inside.count("nn.conv2d") == list(operators.values()).count("nn.conv2d") == 73
    assert len(build.engines) == 1


@pytest.mark.parametrize("name", sorted(ssd.photos()))
def test_every_row_is_that_of_mxnet(model: GluonModel, build: byocviz.Build, name: str) -> None:
    data = model.preprocess(ssd.photos()[name])
    theirs, mine = model.network.run(data), build.run({model.input: data})
    assert [m.shape for m in mine] == [(1, 100, 1), (1, 100, 1), (1, 100, 4)]
    assert len(np.unique(theirs[0])) > 5  # several classes, or nothing is shown
    assert int((theirs[0] == mine[0]).sum()) == 100
    np.testing.assert_allclose(mine[1], theirs[1], atol=2e-5)
    np.testing.assert_allclose(mine[2], theirs[2], atol=2e-2)


@pytest.mark.slow
def test_tvm_alone_agrees_and_finds_the_same(model: GluonModel, build: byocviz.Build) -> None:
    photo = ssd.photos()["coffee"]
    check = build.check({model.input: model.preprocess(photo)})
    assert not any(d.exceeds for d in check.differences), check
    (found,) = build.detect(
        {"coffee": photo},
        preprocess=model.preprocess,
        postprocess=lambda outputs, size: model.postprocess(outputs, size, 0.05),
    )
    assert [d.kind for d in found.detected] == ["tvm", "byoc"]
    alone, both = found.detected
    assert alone.found
    assert [f.label for f in alone.found] == [f.label for f in both.found]
    assert {f.label for f in both.found} <= set(model.classes)


@pytest.mark.slow
def test_kept_it_gives_the_same(model: GluonModel, build: byocviz.Build, tmp_path: Path) -> None:
    data = {model.input: model.preprocess(ssd.photos()["coffee"])}
    loaded = byocviz.load_build(build.save(tmp_path / "kept"), progress=False)
    for one, other in zip(loaded.run(data), build.run(data), strict=True):
        assert one.tobytes() == other.tobytes()
