"""What TVM's own pipeline compiles of the corpus, and what it asserts without help."""

from __future__ import annotations

import pytest

pytest.importorskip("tvm")
pytest.importorskip("onnxruntime")

import byocviz
from byocviz.building.compiled import compiled, public, target_of
from byocviz.flow.relax.verify import max_difference, run_module, seeded_inputs
from tests.corpus import by_name

SHAPES = ("shape_of_a_tensor", "shape_as_a_parameter")


@pytest.mark.parametrize("name", [*SHAPES, "local_function"])
def test_the_module_that_is_compiled_stays_as_it_is(name: str) -> None:
    case = by_name(name)
    module = public(case.build(), case.entry)
    before = module.script(show_meta=False)
    compiled(module, target_of(None))
    assert module.script(show_meta=False) == before


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("step", ["import", None])
def test_shapes_that_are_values(name: str, step: str | None) -> None:
    """LegalizeOps asserts that a call's shape is written out, not a variable's."""
    case = by_name(name)
    module = case.build()
    recording = byocviz.record(module, case.backend, entry=case.entry, progress=False)
    built = byocviz.build(
        recording, runtime="onnxruntime", step=step, cache=False, isolate=False, progress=False
    )
    inputs = seeded_inputs(module, case.entry, seed=2)
    wanted = run_module(module, case.entry, inputs)
    assert max_difference(built.run(inputs), wanted) < 1e-4
