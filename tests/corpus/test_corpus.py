"""The corpus itself: every module is well formed, runs, and is the same each time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("tvm")

import tvm
import tvm_ffi
from tvm import relax

from byocviz.flow.relax.verify import max_difference, run_module, seeded_inputs

from . import CASES, Case, by_name, random_module
from .oracle import patterns_of, subgraphs
from .walkthrough import SUBGRAPHS

each = pytest.mark.parametrize("case", CASES, ids=str)

# What TVM's passes die of even within one block.
PASSES_DIE = {
    "pure_packed_function_in_the_block",
    "match_cast_in_the_block",
    "match_cast_of_an_unknown_rank",
}


def test_the_names_differ_and_there_are_enough() -> None:
    names = [case.name for case in CASES]
    assert len(names) == len(set(names)) >= 70
    assert by_name("walkthrough").backend == "tutorial"
    with pytest.raises(KeyError):
        by_name("none such")


def test_every_shape_that_was_asked_for_is_there() -> None:
    tags = set().union(*(case.tags for case in CASES))
    assert tags >= {
        "chain", "branch", "diamond", "tuple", "tuple-param", "constants", "equal", "if",
        "if-nested", "if-dataflow", "recursion", "local", "closure", "call-tir", "packed",
        "impure", "dynamic", "all-offloaded", "none-offloaded", "empty", "functions", "private",
        "dead", "entry", "no-dataflow", "blocks", "multi-output", "match-cast", "shape", "onnx",
        "batch-norm", "split", "slice", "resize", "float16", "int8", "int64", "duplicate",
        "composite", "long", "fan-out", "random", "walkthrough", "params",
    }  # fmt: skip


@pytest.mark.thinned(3)
@each
def test_it_is_well_formed_and_runs_the_same_each_time(case: Case) -> None:
    mod = case.build()
    relax.analysis.well_formed(mod)
    again = case.build()
    assert tvm_ffi.structural_equal(mod, again)
    inputs = seeded_inputs(mod, case.entry, seed=3)
    first = run_module(mod, case.entry, inputs)
    second = run_module(again, case.entry, seeded_inputs(again, case.entry, seed=3))
    assert first
    assert max_difference(first, second) == 0
    for value in first:
        if value.dtype.kind == "f":
            assert np.isfinite(value).all()


@each
def test_parameters_to_bind_are_parameters(case: Case) -> None:
    if case.params is not None:
        inputs = seeded_inputs(case.build(), case.entry)
        for name, value in case.params().items():
            assert inputs[name].shape == value.shape
            assert inputs[name].dtype == value.dtype


@pytest.mark.parametrize(
    "case", [c for c in CASES if c.subgraphs is not None and c.name not in PASSES_DIE], ids=str
)
def test_tvm_finds_the_subgraphs_that_reasoning_found(case: Case) -> None:
    assert len(subgraphs(case.build(), case.backend, case.entry)) == case.subgraphs


def _without_control_flow(case: Case) -> bool:
    """Modules that MergeCompositeFunctions of TVM 0.26 and 0.27 takes whole."""
    odd = {"if", "recursion", "functions", "entry", "local", "impure"}
    return not case.tags & odd and case.name not in PASSES_DIE and "touch" not in case.name


@pytest.mark.thinned(3)
@pytest.mark.parametrize("case", [c for c in CASES if _without_control_flow(c)], ids=str)
def test_block_by_block_equals_the_whole_and_keeps_the_outputs(case: Case) -> None:
    mod = case.build()
    merged = relax.transform.FuseOpsByPattern(patterns_of(case.backend), bind_constants=True)(mod)
    merged = relax.transform.MergeCompositeFunctions()(merged)
    calls: list[Any] = []

    def visit(expr: Any) -> None:
        if isinstance(expr, relax.Call) and isinstance(expr.op, tvm.ir.GlobalVar):
            callee = merged[expr.op]
            if isinstance(callee, relax.Function) and callee.attrs and "Codegen" in callee.attrs:
                calls.append(expr)

    relax.analysis.post_order_visit(merged[case.entry], visit)
    assert len(calls) == len(subgraphs(mod, case.backend, case.entry))
    inputs = seeded_inputs(mod, case.entry)
    before = run_module(mod, case.entry, inputs)
    assert max_difference(before, run_module(merged, case.entry, inputs)) == 0


def test_the_walkthrough_has_the_demo_s_three_subgraphs() -> None:
    case = by_name("walkthrough")
    found = subgraphs(case.build(), case.backend)
    assert sorted(sorted(ops.items()) for ops in found) == sorted(
        sorted(ops.items()) for ops in SUBGRAPHS
    )


def test_the_walkthrough_computes_what_numpy_computes() -> None:
    mod = by_name("walkthrough").build()
    inputs = seeded_inputs(mod)
    value = inputs["x"].astype("float64")
    for _ in range(4):
        padded = np.pad(value, ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
        value = np.einsum("nchwij,ocij->nohw", windows, inputs["weight"]) + inputs["bias"]
        value = np.maximum(value, 0)
    (out,) = run_module(mod, "main", inputs)
    np.testing.assert_allclose(out, value.reshape(1, 256), rtol=1e-5, atol=1e-5)


def test_a_random_module_is_the_same_for_the_same_seed_only() -> None:
    text = random_module(5, 9).script(show_meta=False)
    assert random_module(5, 9).script(show_meta=False) == text
    assert random_module(6, 9).script(show_meta=False) != text
