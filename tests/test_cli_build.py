"""``byocviz build`` and what it leaves behind."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tvm")
pytest.importorskip("onnxruntime")

import onnx
from onnx import TensorProto, helper

import byocviz
from byocviz.building.names import RUNTIMES
from byocviz.building.runtimes import names
from byocviz.cli import main


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A convolution and an activation, as ONNX."""
    weight = np.random.default_rng(0).standard_normal((4, 3, 3, 3)).astype(np.float32)
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1]),
            helper.make_node("Relu", ["y"], ["z"]),
        ],
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, [1, 4, 8, 8])],
        [onnx.numpy_helper.from_array(weight, "w")],
    )
    path = tmp_path_factory.mktemp("model") / "small.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


def test_the_names_are_those_of_the_runtimes() -> None:
    assert sorted(RUNTIMES) == names()


def test_it_builds_checks_times_and_keeps(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inputs = np.random.default_rng(1).standard_normal((1, 3, 8, 8)).astype(np.float32)
    np.savez(tmp_path / "in.npz", x=inputs)
    arguments = ["build", str(model), "-o", str(tmp_path / "small"), "--no-cache"]
    arguments += ["--option", "threads=1", "--inputs", str(tmp_path / "in.npz"), "--json"]
    arguments += ["--rounds", "2", "--save", str(tmp_path / "kept"), "--runtime", "onnxruntime"]
    arguments += ["--plot", str(tmp_path / "latency.png")]
    assert main(arguments) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["results"]["build"]["engines"][0]["facts"]["threads"] == "1"
    assert (tmp_path / "latency.png").read_bytes().startswith(b"\x89PNG")
    recording = byocviz.load(tmp_path / "small.byocviz")
    assert recording.results.check is not None
    assert recording.results.check.inputs == "as given"
    assert recording.results.latency is not None
    assert recording.results.latency.repeat == 2
    loaded = byocviz.load_build(tmp_path / "kept", progress=False)
    weights = onnx.numpy_helper.to_array(onnx.load(model).graph.initializer[0])
    (found,) = loaded.run({"x": inputs})
    middle = np.maximum((weights * inputs[0, :, 2:5, 3:6]).sum((1, 2, 3)), 0)
    np.testing.assert_allclose(found[0, :, 3, 4], middle, atol=1e-4)


def test_the_recording_is_kept_where_the_build_fails(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "small.byocviz"
    assert main(["build", str(model), "-o", str(output), "--option", "thread=1"]) == 1
    assert "no option 'thread'" in capsys.readouterr().err
    assert byocviz.load(output).results.build is None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--inputs", "nowhere.npz"], "holds no arrays by name"),
        (["--option", "threads"], "NAME=VALUE"),
        (["--runtime", "tensort"], "invalid choice"),
        (["--target", "no_such_target"], "no target"),
        (["--rounds", "0"], "at least one round"),
        (["--plot", "latency.xyz", "--rounds", "1"], "cannot be written"),
    ],
)
def test_bad_arguments(
    model: Path,
    tmp_path: Path,
    arguments: list[str],
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        status = main(["build", str(model), "-o", "x", "--no-cache", *arguments])
    except SystemExit as exit_:
        status = int(exit_.code or 0)
    assert status in (1, 2)
    assert said in capsys.readouterr().err
