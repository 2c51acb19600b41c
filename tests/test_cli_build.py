"""``byocviz build`` and what it leaves behind."""

from __future__ import annotations

import _thread
import json
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tvm")
pytest.importorskip("onnxruntime")

import onnx
from onnx import TensorProto, helper
from PIL import Image

import byocviz
from byocviz.building.names import RUNTIMES
from byocviz.building.runtimes import names
from byocviz.cli import main
from byocviz.models import ssd
from byocviz.models._detector import METADATA, Detector


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
    failing = ["build", str(model), "-o", str(output), "--no-cache", "--time-limit", "0.0001"]
    assert main(failing) == 1
    said = capsys.readouterr().err
    assert "took longer" in said
    assert "--time-limit SECONDS" in said
    assert byocviz.load(output).results.build is None
    earlier = output.read_bytes()
    assert main(failing) == 1
    assert "small-unbuilt.byocviz" in capsys.readouterr().err
    assert byocviz.load(tmp_path / "small-unbuilt.byocviz").results.build is None
    assert output.read_bytes() == earlier
    (tmp_path / "small-unbuilt.byocviz").write_text("mine")
    assert main(failing) == 1
    assert "the recording is lost" in capsys.readouterr().err
    assert (tmp_path / "small-unbuilt.byocviz").read_text() == "mine"


def test_the_recording_is_kept_where_something_unforeseen_happens(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(byocviz.Build, "check", fails)
    output = tmp_path / "small.byocviz"
    with pytest.raises(ZeroDivisionError):
        main(["build", str(model), "-o", str(output), "--no-cache"])
    assert byocviz.load(output).results.build is not None


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_recording_is_kept_where_somebody_interrupts(model: Path, tmp_path: Path) -> None:
    output = tmp_path / "small.byocviz"
    done = threading.Event()
    here = threading.get_ident()

    def timing() -> bool:
        frame = sys._current_frames().get(here)
        while frame is not None:
            if Path(frame.f_code.co_filename).parts[-2:] == ("building", "timing.py"):
                return True
            frame = frame.f_back
        return False

    def interrupt() -> None:
        # More than once, as people do: one that falls into a callback of C is lost.
        while not done.wait(0.5):
            if timing():
                _thread.interrupt_main()

    watcher = threading.Thread(target=interrupt)
    watcher.start()
    try:
        arguments = ["build", str(model), "-o", str(output), "--no-cache", "--no-check"]
        assert main([*arguments, "--rounds", "100000000"]) == 130
    finally:
        done.set()
        watcher.join()
    kept = byocviz.load(output)
    assert kept.results.build is not None
    assert kept.results.latency is None


def refused_first(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The same of a model that is not there: what is wrong is found before it is looked for."""
    try:
        status = main(["build", *arguments])
    except SystemExit as exit_:
        status = int(exit_.code or 0)
    assert status in (1, 2)
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--rounds", "0"], "'0' is not a whole number from 1"),
        (["--warmup", "-1"], "'-1' is not a whole number from 0"),
        (["--time-limit", "nan"], "seconds above 0"),
        (["--time-limit", "0"], "seconds above 0"),
        (["--inputs", "nowhere.npz"], "holds no arrays by name"),
        (["--inputs", "cut.npz"], "holds no arrays by name"),
        (["--inputs", "lone.npy"], "holds no arrays by name"),
        (["--plot", "z.xyz"], "no format of figures"),
        (["--plot", "z.pgf"], "no format of figures"),
        (["--plot", ""], "not the name of a file"),
        (["--plot", "nowhere/z.png"], "cannot be written"),
        (["--plot", "z.png", "--no-latency"], "--no-latency"),
        (["--html", "z.png"], "no page"),
        (["--html", ""], "not the name of a file"),
        (["--save", "."], "names no folder"),
        (["--save", "taken"], "something else than a build"),
        (["--option", "thread=1"], "no option 'thread'"),
        (["--option", "threads=x"], "It takes a whole number"),
        (["--option", "optimize=no"], "It takes True or False"),
    ],
)
def test_what_is_wrong_is_found_before_the_model_is_read(
    tmp_path: Path,
    arguments: list[str],
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("cut.npz", x=np.zeros(1000))
    Path("cut.npz").write_bytes(Path("cut.npz").read_bytes()[:200])
    np.save("lone.npy", np.zeros(3))
    Path("taken").mkdir()
    Path("taken", "thesis.txt").write_text("years")
    refused_first(["nowhere.onnx", "--runtime", "onnxruntime", *arguments], said, capsys)
    assert not Path("nowhere.byocviz").exists()


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"y": np.zeros((1, 3, 8, 8), "float32")}, "y"),
        ({}, "x"),
        ({"x": np.zeros((1, 3, 8, 9), "float32")}, "x"),
        ({"x": np.zeros((1, 3, 8, 8), "int8")}, "x"),
    ],
)
def test_inputs_that_do_not_fit_are_found_before_the_recording(
    model: Path,
    tmp_path: Path,
    inputs: dict[str, np.ndarray],
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    np.savez(tmp_path / "in.npz", **inputs)
    output = tmp_path / "x.byocviz"
    arguments = ["build", str(model), "-o", str(output), "--inputs", str(tmp_path / "in.npz")]
    assert main(arguments) == 1
    assert f"'{said}'" in capsys.readouterr().err
    assert not output.exists()


def test_a_photo_that_the_model_does_not_take_is_found_before_the_recording(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "x.byocviz"
    photo = ssd.photos()["coffee"]
    assert main(["build", str(model), "-o", str(output), "--detect", str(photo)]) == 1
    assert "--detect gives a photo as the bundled SSD takes" in capsys.readouterr().err
    assert main(["build", str(model), "-o", str(output), "--detect", str(model)]) == 1
    assert "cannot be read as an image" in capsys.readouterr().err
    assert not output.exists()


def test_photos_a_page_and_a_figure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    photos = [str(ssd.photos()[name]) for name in ("coffee", "chelsea")]
    arguments = ["build", str(ssd.path()), "-o", "ssd", "--no-check", "--no-latency", "--no-cache"]
    for photo in photos:
        arguments += ["--detect", photo]
    assert main([*arguments, "--html", "page", "--plot", "figure"]) == 0
    assert Path("figure.png").read_bytes().startswith(b"\x89PNG")
    assert "<html" in Path("page.html").read_text(encoding="utf-8")[:1000]
    coffee, chelsea = byocviz.load("ssd.byocviz").results.photos
    assert (coffee.name, chelsea.name) == ("coffee", "chelsea")
    assert all("cat" in {f.label for f in one.found} for one in chelsea.detected)


def test_a_model_that_says_how_photos_go_in(tmp_path: Path) -> None:
    """Outputs as GluonCV's: one row, whose score is the photo's mean red."""
    outputs = {"ids": [1, 1, 1], "scores": [1, 1, 1], "boxes": [1, 1, 4]}
    constants = {
        "zero": np.zeros((1, 1, 1), "float32"),
        "box": np.array([[[0, 0, 16, 8]]], "float32"),
        "shape": np.array([1, 1, 1]),
        "starts": np.array([0]),
        "ends": np.array([1]),
        "axes": np.array([1]),
    }
    graph = helper.make_graph(
        [
            helper.make_node("Slice", ["data", "starts", "ends", "axes"], ["red"]),
            helper.make_node("GlobalAveragePool", ["red"], ["mean"]),
            helper.make_node("Reshape", ["mean", "shape"], ["scores"]),
            helper.make_node("Mul", ["scores", "zero"], ["ids"]),
            helper.make_node("Mul", ["box", "one"], ["scaled"]),
            helper.make_node("Add", ["scaled", "ids"], ["boxes"]),
        ],
        "detector",
        [helper.make_tensor_value_info("data", TensorProto.FLOAT, [1, 3, 16, 32])],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in outputs.items()],
        [
            onnx.numpy_helper.from_array(value, name)
            for name, value in {**constants, "one": np.ones(1, "float32")}.items()
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    own = Detector(
        network="red", input="data", height=16, width=32, classes=("red",),
        mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0),
    )  # fmt: skip
    helper.set_model_props(model, {METADATA: own.metadata()})
    onnx.save(model, tmp_path / "red.onnx")
    Image.new("RGB", (64, 64), (204, 0, 0)).save(tmp_path / "photo.png")
    arguments = ["build", str(tmp_path / "red.onnx"), "-o", str(tmp_path / "red"), "--no-latency"]
    arguments += ["--no-cache", "--detect", str(tmp_path / "photo.png")]
    assert main(arguments) == 0
    (photo,) = byocviz.load(tmp_path / "red.byocviz").results.photos
    for variant in photo.detected:
        (found,) = variant.found
        assert found.label == "red"
        assert found.score == pytest.approx(204 / 255, abs=1e-5)
        assert found.box == pytest.approx((0, 0, 32, 32))


def test_a_mend_names_the_option_of_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])],
        "unranked",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, None)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    path = tmp_path / "unranked.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    assert main(["build", str(path), "-o", str(tmp_path / "x")]) == 1
    said = capsys.readouterr().err
    assert "shapes=" in said
    assert "--shape NAME=" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--option", "threads"], "NAME=VALUE"),
        (["--runtime", "tensort"], "invalid choice"),
        (["--target", "no_such_target"], "no target"),
        (["--target", "c"], "cannot compile and run for 'c'"),
        (["--target", '{"kind": "llvm", "mtriple": "riscv64"}'], "processor riscv64"),
        (["--backend", "no_such"], "no_such"),
        (["--off", "no_such"], "no rule 'no_such'"),
        (["--no-rewrite", "no_such"], "no rewrite named 'no_such'"),
        (["--only", "add", "--on", "add"], "--only cannot go with"),
        (["--min-ops", "-1"], "--min-ops is -1"),
        (["--option", "treads=2"], "treads"),
        (["--option", "threads=-2"], "threads"),
        (["--inputs", "none.npz"], "none.npz"),
        (["--detect", "none.jpg"], "none.jpg"),
        (["--html", "x.txt"], "no page"),
        (["--plot", "x.txt"], "no format"),
        (["--plot", "x.png", "--no-latency"], "--no-latency leaves it out"),
    ],
)
def test_bad_arguments_are_refused_before_the_model_is_read(
    model: Path,
    tmp_path: Path,
    arguments: list[str],
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def read(*_: object, **__: object) -> None:
        raise AssertionError("the model was read")

    monkeypatch.setattr(byocviz.models, "load", read)
    monkeypatch.chdir(tmp_path)
    try:
        status = main(["build", str(model), "-o", "x", "--no-cache", *arguments])
    except SystemExit as exit_:
        status = int(exit_.code or 0)
    assert status in (1, 2)
    assert said in capsys.readouterr().err
