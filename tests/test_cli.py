"""The command line, run as a person would run it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from byocviz.cli import main
from byocviz.recording import load
from tests.recording.strategies import built

posix = pytest.mark.skipif(os.name != "posix", reason="names, devices and pipes of POSIX")


def run(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "timeout": 120} | options
    return subprocess.run(
        [sys.executable, "-m", "byocviz", *arguments], text=True, check=False, **options
    )


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    return built(33).save(tmp_path / "recorded")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    import onnx
    from onnx import TensorProto, helper

    def tensor(name: str, shape: list[object]) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    graph = helper.make_graph(
        [
            helper.make_node("Relu", ["x"], ["a"], name="first"),
            helper.make_node("LeakyRelu", ["a"], ["b"], name="between"),
            helper.make_node("Sigmoid", ["b"], ["y"], name="last"),
        ],
        "small",
        [tensor("x", ["n", 8])],
        [tensor("y", ["n", 8])],
    )
    path = tmp_path / "small.onnx"
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)
    return path


def test_record_and_show(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.byocviz"
    assert (
        main(
            [
                "record",
                str(model),
                "--shape",
                "x=2,8",
                "--no-prune",
                "--verify",
                "--blockers",
                "-o",
                str(out),
                "--json",
            ]
        )
        == 0
    )
    data = json.loads(capsys.readouterr().out)
    assert next(s["step"] for s in data["steps"]) == "import"
    assert data["blockers"]
    assert main(["show", str(out)]) == 0
    text = capsys.readouterr().out
    assert "small" in text
    assert "prune" in text
    assert main(["show", str(out), "--step", "merge", "--function", "main"]) == 0
    assert "def main(x: R.Tensor((2, 8)" in capsys.readouterr().out
    assert main(["show", str(out), "--step", "merge", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["step"]["name"] == "merge"


def test_what_is_wrong_is_said_and_nothing_is_traced(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nothing = tmp_path / "nothing.byocviz"
    nothing.write_bytes(b"PK\x03\x04 and more")
    for arguments, word in (
        (["show", str(nothing)], "nothing.byocviz"),
        (["show", str(tmp_path / "absent.byocviz")], "absent.byocviz"),
        (["record", str(tmp_path / "absent.onnx")], "absent.onnx"),
        (["record", str(model), "--off", "tensorrt.nope"], "nope"),
        (["record", str(model), "-b", "nochip"], "nochip"),
        (["record", str(model), "--entry", "forward"], "forward"),
    ):
        assert main(arguments) == 1, arguments
        assert word in capsys.readouterr().err
    done = run(*arguments)  # a process of its own, once
    assert done.returncode == 1
    assert word in done.stderr
    assert "Traceback" not in done.stderr


def test_a_model_is_never_written_over(model: Path, tmp_path: Path) -> None:
    before = model.read_bytes()
    for target in (model, tmp_path):
        assert main(["record", str(model), "-o", str(target)]) == 1
    assert model.read_bytes() == before
    recording = tmp_path / "r.byocviz"
    for _ in range(2):
        assert main(["record", str(model), "--shape", "x=1,8", "-o", str(recording)]) == 0


def test_switches(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def steps(*arguments: str) -> dict[str, Any]:
        out = str(tmp_path / "r.byocviz")
        assert (
            main(["record", str(model), "--shape", "x=1,8", "-o", out, "--json", *arguments]) == 0
        )
        data = json.loads(capsys.readouterr().out)
        return {step["step"]: step for step in data["steps"]}

    assert steps()["prune"]["subgraphs"] == 0, "none has a multiply-accumulate"
    assert steps("--no-prune")["prune"]["subgraphs"] == 2
    assert steps("--no-prune", "--only", "sigmoid")["prune"]["subgraphs"] == 1
    assert steps("--no-prune", "--off", "nn.relu")["prune"]["subgraphs"] == 1
    assert steps("--no-rewrite", "dead-code")["prepare"]["operators"] >= 3
    with pytest.raises(SystemExit):
        main(["record", str(model), "--min-ops", "many"])


def test_lowerable(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The model's batch is left open here, and engines are built for fixed shapes."""

    def data(*arguments: str) -> dict[str, Any]:
        out = str(tmp_path / "r.byocviz")
        assert main(["record", str(model), "--no-prune", "-o", out, "--json", *arguments]) == 0
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return found

    plain, asked = data(), data("--lowerable")
    assert plain["steps"][-1]["subgraphs"] > asked["steps"][-1]["subgraphs"] == 0
    assert "not-lowerable" in {reason["code"] for reason in asked["reasons"]}


def test_a_reader_that_stops_reading_is_no_error(model: Path) -> None:
    script = f"{sys.executable} -m byocviz doctor | head -1"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout.count("\n") == 1
    assert not done.stderr


def test_usage() -> None:
    assert run().returncode == 2
    assert run("record", "m.onnx", "--shape", "x").returncode == 2
    assert run("--version").stdout.startswith("byocviz ")


def test_doctor(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    findings = {f["name"]: f for f in json.loads(capsys.readouterr().out)}
    assert findings["tvm"]["state"] == "ok"
    assert "llvm" in findings["tvm targets"]["value"]
    assert "tensorrt" in findings["tvm pattern tables"]["value"]
    for finding in findings.values():
        assert finding["state"] == "ok" or finding["mend"] or finding["name"].startswith("GPU")
    assert main(["doctor"]) == 0
    assert "python" in capsys.readouterr().out


@posix
@pytest.mark.parametrize(
    "output",
    ["", ".", "..", "/", "folder", "folder/", "absent/x", "/dev/null", "pipe", "n\0l", "x" * 300],
)
def test_an_output_that_cannot_be_is_said_before_anything_is_recorded(
    output: str,
    model: Path,
    recorded: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    before = sorted(os.listdir())

    def never(*_: object, **__: object) -> None:
        raise AssertionError("recorded, to be lost")

    monkeypatch.setattr("byocviz.flow.record.record", never)
    monkeypatch.setattr("byocviz.models.load", never)
    monkeypatch.setattr("byocviz.demo.demo", never)
    commands = [["record", str(model)], ["demo"]]
    if output != "folder":  # a page "folder.html" can lie beside it
        commands.append(["show", str(recorded)])
    for command in commands:
        assert main([*command, "-o", output]) == 1
        said = capsys.readouterr()
        assert said.err.startswith("byocviz: ")
        assert not said.out
    assert sorted(os.listdir()) == before


@posix
def test_a_model_whose_name_is_no_unicode(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    odd = model.rename(tmp_path / os.fsdecode(b"caf\xe9.onnx"))
    assert main(["record", str(odd), "--shape", "x=1,8"]) == 0
    saved = tmp_path / os.fsdecode(b"caf\xe9.byocviz")
    assert load(saved).title == r"caf\udce9"
    assert r"Saved caf\udce9.byocviz" in capsys.readouterr().err
    assert main(["show", str(saved)]) == 0


@pytest.mark.parametrize("columns", ["0", "00", "99999999", "x", ""])
def test_any_width_of_the_terminal_prints(columns: str, recorded: Path) -> None:
    done = run("show", str(recorded), env={**os.environ, "COLUMNS": columns})
    assert done.returncode == 0
    assert "partition" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is full")
def test_output_that_cannot_be_written_is_said(recorded: Path) -> None:
    for arguments in (
        ["show", str(recorded)],
        ["show", str(recorded), "--json"],
        ["show", str(recorded), "--step", "import"],
    ):
        with open("/dev/full", "w") as full:
            done = run(*arguments, stdout=full)
        assert done.returncode == 1, arguments
        assert done.stderr == "byocviz: No space left on device\n"


@posix
def test_closed_output_is_no_error(recorded: Path) -> None:
    script = f"{sys.executable} -m byocviz show {recorded} >&-"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_empty_name_is_a_name(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(recorded), "--step", ""]) == 1
    assert "No step ''" in capsys.readouterr().err
    assert main(["show", str(recorded), "--step", "import", "--function", ""]) == 1
    assert "no function ''" in capsys.readouterr().err
    assert main(["show", str(recorded), "--function", ""]) == 1
    assert "--function needs --step" in capsys.readouterr().err


@posix
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    for name in ("pipe", "pipe.byocviz", "pipe.onnx"):
        os.mkfifo(tmp_path / name)
        for command in ("show", "record"):
            done = run(command, str(tmp_path / name), cwd=tmp_path)
            assert done.returncode == 1
            assert "is a device or pipe, not a file" in done.stderr


def test_an_error_of_several_lines_is_printed_in_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["record", "."]) == 1
    said = capsys.readouterr().err
    assert "\\n" not in said
    assert "is a folder" in said.splitlines()[0]
    assert not list(tmp_path.iterdir())
