"""The bundled SSD, its subgraph on ONNX Runtime and the rest on TVM."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("tvm")
pytest.importorskip("onnxruntime")

import onnxruntime
from PIL import Image

import byocviz
from byocviz.building.lower import check
from byocviz.building.module import Runnable, build_module
from byocviz.flow.relax.compat import attribute
from byocviz.models import ssd


@pytest.fixture(scope="module")
def recording() -> Any:
    return byocviz.record(ssd.load(), progress=False)


@pytest.fixture(scope="module")
def built(recording: Any) -> Runnable:
    return build_module(
        recording.__dict__["modules"]["prune"],
        "tensorrt",
        "onnxruntime",
        operators={s.function: s.op_ids for s in recording.step("prune").subgraphs},
    )


@pytest.mark.parametrize("photo", ["coffee", "chelsea", "astronaut"])
def test_detections_equal_those_of_onnx_runtime_alone(built: Runnable, photo: str) -> None:
    image = ssd.preprocess(ssd.photos()[photo])
    size = Image.open(ssd.photos()[photo]).size
    session = onnxruntime.InferenceSession(ssd.path(), providers=["CPUExecutionProvider"])
    wanted = ssd.postprocess(session.run(None, {ssd.INPUT: image}), size)
    given = ssd.postprocess([t.numpy() for t in built.run([image])], size)
    assert [d.label for d in given] == [d.label for d in wanted]
    assert given
    for one, other in zip(given, wanted, strict=True):
        assert one.score == pytest.approx(other.score, abs=0.005)
        assert one.box == pytest.approx(other.box, abs=0.5)


def test_every_step_s_subgraphs_lower(recording: Any) -> None:
    """A subgraph that is shown as offloadable is one that lowers, at every step."""
    for step in ("annotate", "partition", "prune"):
        for _, function in recording.__dict__["modules"][step].functions_items():
            if attribute(function, "Codegen"):
                assert check(function) == []


def test_names_in_the_onnx_lead_to_the_recording_s_operators(
    recording: Any, built: Runnable
) -> None:
    (lowered,) = built.lowered.values()
    (subgraph,) = recording.step("prune").subgraphs
    assert list(lowered.operators) == subgraph.op_ids
    for node in lowered.model.graph.node:
        for identity in lowered.nodes[node.name]:
            assert recording.ops[identity].name == lowered.calls[node.name]


def test_outputs_are_written_where_tvm_wants_them(built: Runnable) -> None:
    (engine,) = built.engines.values()
    image = ssd.preprocess(ssd.photos()["coffee"])
    outputs = [np.full(p.shape, np.nan, p.dtype) for p in engine.outputs]
    addresses = [o.ctypes.data for o in outputs]
    engine.run_into([image], outputs)
    assert [o.ctypes.data for o in outputs] == addresses
    for given, wanted in zip(outputs, engine.run([image]), strict=True):
        np.testing.assert_array_equal(given, wanted)
