"""ONNX Runtime is asked once for each kind of node."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("tvm")
pytest.importorskip("onnxruntime")

from tvm import relax

from byocviz.building.lower import Graph, examine
from byocviz.building.runtimes import kernels
from byocviz.building.runtimes.kernels import without_kernel
from tests.building.lower.lab import Cases, T, build

conv = relax.op.nn.conv2d


def graph(*types: str) -> Graph:
    made = Cases()
    for number, dtype in enumerate(types):
        made(conv, T(1, 2, 4 + number, 4, dtype=dtype), T(2, 2, 1, 1, dtype=dtype))
    errors, found = examine(build(made)[0]["main"])
    assert not errors
    return found


def test_a_kind_of_node_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    ask = kernels._ask

    def noting(*what: Any) -> str:
        asked.append(what)
        return ask(*what)

    monkeypatch.setattr(kernels, "_ask", noting)
    monkeypatch.setattr(kernels, "_known", {})
    assert list(without_kernel(graph("float32", "float32"))) == []
    assert len(asked) == 1, "the sizes do not matter"
    assert len(list(without_kernel(graph("float32", "float64", "float64")))) == 2
    assert len(asked) == 2


def test_it_names_the_operator_and_the_types() -> None:
    ((operator, node, said),) = without_kernel(graph("float64"))
    assert operator == "relax.nn.conv2d"
    assert node == "Conv of float64, float64"
    assert said
