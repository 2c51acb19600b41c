"""MergeCompositeFunctions in parts: the same as TVM's pass where that works, and where it fails."""

from __future__ import annotations

from collections import Counter

import pytest
import tvm
import tvm_ffi
from tvm import relax

from byocviz import backends
from byocviz.flow.relax.passes import merge, merge_in_parts
from byocviz.flow.relax.passes.merge import is_plain
from byocviz.flow.relax.verify import max_difference, run_module, seeded_inputs
from tests.corpus import CASES, by_name, oracle
from tests.corpus.case import Case


def composite(case: Case, *, live: bool = False) -> tvm.IRModule:
    patterns = [rule.fusion for rule in backends.get(case.backend).rules()]
    module = relax.transform.Normalize()(case.build())
    if live:
        module = relax.transform.DeadCodeElimination([case.entry])(module)
    return relax.transform.FuseOpsByPattern(patterns, bind_constants=True)(module)


STRAIGHT = [c for c in CASES if c.entry == "main" and c.backend == "tensorrt"]


@pytest.mark.parametrize("case", STRAIGHT, ids=str)
def test_one_straight_main_merges_as_tvm_merges_it(case: Case) -> None:
    module = composite(case)
    if not is_plain(module):
        pytest.skip("TVM's pass does not take this module")
    try:
        bare = relax.transform.MergeCompositeFunctions()(module)
    except Exception:
        pytest.skip("TVM's pass has no case for an expression of this module")
    parts = merge_in_parts(module)
    assert tvm_ffi.structural_equal(main_of(parts), main_of(bare), map_free_vars=True)


def main_of(module: tvm.IRModule) -> relax.Function:
    return module["main"]


@pytest.mark.parametrize(
    "name",
    [
        "if_nested",
        "loop_by_recursion",
        "mutual_recursion",
        "local_function",
        "match_cast_in_the_block",
        "pure_packed_function_in_the_block",
        "entry_of_another_name",
        "walkthrough",
    ],
)
def test_what_tvms_pass_dies_on(name: str) -> None:
    case = by_name(name)
    module = composite(case)
    with pytest.raises(Exception, match=r"."):
        relax.transform.MergeCompositeFunctions()(module)
    merged, _ = merge(module)
    assert any(f.attrs and "Codegen" in f.attrs for f in merged.functions.values())
    assert not any(f.attrs and "Composite" in f.attrs for f in merged.functions.values())
    inputs = seeded_inputs(module, case.entry)
    before, after = (run_module(m, case.entry, inputs) for m in (case.build(), merged))
    assert max_difference(before, after) == 0


@pytest.mark.parametrize("case", [c for c in CASES if c.name.startswith("random")][::4], ids=str)
def test_the_counts_are_those_of_tvm_block_by_block(case: Case) -> None:
    merged, _ = merge(composite(case, live=True))
    called: Counter[str] = Counter()

    def visit(expr: object) -> None:
        if isinstance(expr, relax.Call) and isinstance(expr.op, tvm.ir.GlobalVar):
            attrs = merged[expr.op].attrs
            called["n"] += bool(attrs) and "Codegen" in attrs

    for function in merged.functions.values():
        if isinstance(function, relax.Function):
            relax.analysis.post_order_visit(function, visit)
    assert called["n"] == len(oracle.subgraphs(case.build(), case.backend, case.entry))
