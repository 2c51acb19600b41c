"""The runtime alone is given the model file that was recorded, where there is one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tvm")
pytest.importorskip("onnxruntime")

import onnx
from onnx import TensorProto, helper
from tvm import relax

import byocviz
from byocviz.building.variants import engine_inputs

FILE = "the model file itself, as one graph"


def model(*nodes: Any, outputs: list[Any] | None = None, first: Any = 2) -> onnx.ModelProto:
    """Of an input ``x.1`` (a name that TVM does not keep) [first, 4, 8, 8] and a weight."""
    x = helper.make_tensor_value_info("x.1", TensorProto.FLOAT, [first, 4, 8, 8])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [first, 4, 10, 10])
    weight = np.random.default_rng(0).normal(size=(4, 4, 3, 3)).astype("float32")
    given = [onnx.numpy_helper.from_array(weight, "w")]
    given.append(onnx.numpy_helper.from_array(np.array([0, 0, 1, 1] * 2, "int64"), "pads"))
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["x.1", "w"], ["c"], pads=[1] * 4),
            helper.make_node("Pad", ["c", "pads"], ["y"], mode="constant", name="the_pad"),
            *nodes,
        ],
        "padded", [x], outputs or [y], given,
    )  # fmt: skip
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(made)
    return made


def built(what: Any, **kind: Any) -> Any:
    return byocviz.build(byocviz.record(what, progress=False, **kind), progress=False)


def agrees(build: Any) -> bool:
    whole, values = build.whole(), build.named(None)
    given = engine_inputs(whole.engine, [values[name] for name in whole.names])
    wanted = build.alone().outputs(values)
    return all(
        np.allclose(a, b, rtol=1e-4, atol=1e-4)
        for a, b in zip(whole.engine.run(given), wanted, strict=True)
    )


@pytest.mark.parametrize("kind", ["path", "loaded", "shapes", "model"])
def test_the_file_itself_is_run(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "padded.onnx"
    onnx.save(model(first="n" if kind == "shapes" else 2), path)
    given: Any = {
        "path": lambda: str(path),
        "loaded": lambda: byocviz.models.load(path),
        "shapes": lambda: byocviz.models.load(path, shapes={"x.1": (3, 4, 8, 8)}),
        "model": model,
    }[kind]()
    build = built(given)
    # The module itself has no equal in ONNX: TVM's importer makes a TIR function of Pad.
    assert build.whole().what == FILE
    assert agrees(build)
    assert build.latency(repeat=1, warmup=0).variants[-1].note == FILE


def test_a_module_that_is_not_the_files_is_not_taken_for_it(tmp_path: Path) -> None:
    path = tmp_path / "padded.onnx"
    onnx.save(model(), path)
    whole = built(relax.transform.Normalize()(byocviz.models.load(path))).whole()
    assert whole.engine is None
    assert whole.cannot == "the TIR function pad, which ONNX does not have"
    assert "from an ONNX file" in whole.detail


def test_a_file_that_changed_is_not_run(tmp_path: Path) -> None:
    path = tmp_path / "padded.onnx"
    onnx.save(model(), path)
    build = built(path)
    os.utime(path, (1, 1))
    assert "has changed" in build.whole().cannot
    gone = built(path)
    path.unlink()
    assert gone.whole().engine is None
    assert gone.latency(repeat=1, warmup=0).variants[2].cannot


def test_results_whose_shape_depends_on_the_data() -> None:
    """What is fixed in the module only is asked of the file last, and tried first."""
    where = helper.make_node("NonZero", ["y"], ["z"])
    float_ = helper.make_node("Cast", ["z"], ["o"], to=TensorProto.FLOAT)
    out = helper.make_tensor_value_info("o", TensorProto.FLOAT, [4, None])
    try:
        build = built(model(where, float_, outputs=[out]))
    except byocviz.ByocvizError:
        pytest.skip("this TVM does not take it")
    whole = build.whole()
    assert whole.engine is None or agrees(build)
