"""What the README shows runs, as it stands there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from tvm import relax

import byocviz
from byocviz.cli import commands
from byocviz.models import ssd
from tests import small_ssd

README = (Path(__file__).parent.parent / "README.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


@pytest.fixture(scope="module")
def scope() -> dict[str, Any]:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, 4, 8, 8), "float32"))
    w = relax.Var("w", relax.TensorType((4, 4, 3, 3), "float32"))
    with builder.function("main", [x, w]):
        with builder.dataflow():
            value = builder.emit(relax.op.nn.relu(builder.emit(relax.op.nn.conv2d(x, w))))
            out = builder.emit_output(builder.emit(relax.op.nn.softmax(value)))
        builder.emit_func_output(out)
    return {"byocviz": byocviz, "mod": builder.get(), "record": byocviz.record}


def test_the_python_examples(
    scope: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first, second, building, explorer, third = blocks("python")
    model = small_ssd.write(tmp_path / "small.onnx")  # the SSD's own figures: see the notebooks
    monkeypatch.setattr("byocviz._show._has_display", lambda: False)
    exec(first.replace("model.onnx", str(model)).replace("model.byocviz", "m.byocviz"), scope)
    assert (tmp_path / "m.byocviz").exists()
    exec(second, scope)
    photo = ssd.photos()["chelsea"]
    exec(building.replace("photo.jpg", str(photo)).replace("model.byocviz", "m.byocviz"), scope)
    assert scope["build"].recording.results.latency.variants
    assert scope["build"].recording.results.photos
    assert (tmp_path / "ssd.png").exists()
    loaded = byocviz.load_build(tmp_path / "model-build", progress=False)
    for one, other in zip(loaded.run(scope["image"]), scope["outputs"], strict=True):
        assert one.shape == other.shape
    exec(explorer.replace("model.onnx", str(model)), scope)
    assert scope["explorer"].wait(120)
    assert scope["explorer"].recording.steps
    exec(third, scope)
    assert scope["rec"].backend.name == "mychip"


def test_the_table_of_ways(scope: dict[str, Any]) -> None:
    from tvm.relax.dpl import is_op, wildcard

    scope["pattern"] = is_op("relax.nn.leakyrelu")(wildcard())
    scope["patterns"] = [("mychip.relu", is_op("relax.nn.relu")(wildcard()))]
    section = README[README.index("| what you want |") : README.index("## Build, check, time")]
    calls = re.findall(r"`((?:record|byocviz)\([^`]*\)|byocviz\.[^`]*\))`", section)
    assert len(calls) >= 8
    for call in calls:
        if "verify" not in call:
            exec(call, scope)


def test_the_commands() -> None:
    for block in blocks("bash"):
        for line in block.splitlines():
            words = shlex.split(line.split("#")[0])
            if words[:1] == ["byocviz"]:
                commands().parse_args(words[1:])
