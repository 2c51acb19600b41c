"""The bundled network: what each rewrite finds in it, and what TVM's own rules then take."""

from __future__ import annotations

import importlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import tvm
from tvm import relax
from tvm.relax.backend.pattern_registry import get_patterns_with_prefix

from byocviz.flow.relax import surgery as s
from byocviz.flow.relax.prepare import REWRITES, PrepareContext

MODEL = Path(__file__).parents[4] / "assets" / "ssd_mobilenet_v2_coco.onnx"


@pytest.fixture(scope="module")
def imported(lab: Any) -> Any:
    import onnx
    from tvm.relax.frontend.onnx import from_onnx

    if not MODEL.is_file():
        pytest.skip(f"{MODEL.name} is not there")
    return lab.tagged(from_onnx(onnx.load(str(MODEL))))


def partitioned(mod: Any) -> tuple[int, Counter[str]]:
    """Calls of TensorRT's subgraphs, and the operators that stayed on TVM."""
    importlib.import_module("tvm.relax.backend.contrib.tensorrt")

    rules = get_patterns_with_prefix("tensorrt")
    mod = relax.transform.FuseOpsByPattern(rules, bind_constants=True)(mod)
    mod = relax.transform.MergeCompositeFunctions()(mod)
    taken = {
        s.key(gv)
        for gv, func in s.relax_functions(mod)
        if func.attrs is not None and "Codegen" in func.attrs
    }
    calls = list(s.calls_in(mod["main"]))
    subgraphs = sum(isinstance(c.op, tvm.ir.GlobalVar) and s.key(c.op) in taken for c in calls)
    return subgraphs, Counter(s.op_name(c) for c in calls if s.op_name(c))


def test_one_subgraph_and_its_suppression(lab: Any, imported: Any) -> None:
    counts = {}
    mod = imported
    for spec in REWRITES:
        ctx = PrepareContext()
        after = spec.run(mod, ctx)
        assert not ctx.left
        assert (after is mod) == (ctx.count == 0)
        lab.kept(mod, after)
        assert spec.run(after, PrepareContext()) is after
        counts[spec.name], mod = ctx.count, after
    assert sum(lab.ops(imported).values()) == 705
    # 59 Clip and 10 Sum nodes in the file; every convolution of which the bias was reshaped.
    assert counts["clip"] == 59
    assert counts["nary"] == 10
    assert (
        counts["layout-of-constants"]
        == lab.ops(imported)["relax.reshape"] - lab.ops(mod)["relax.reshape"]
    )
    assert lab.ops(mod)["relax.nn.conv2d"] == 88
    assert not {"relax.stack", "relax.isnan", "relax.where", "relax.call_tir"} & set(lab.ops(mod))
    assert [str(gv.name_hint) for gv in mod.get_global_vars()] == ["main"]
    subgraphs, left = partitioned(mod)
    assert subgraphs == 1
    assert left == {"relax.vision.all_class_non_max_suppression": 1}
    assert partitioned(imported)[0] > 1
