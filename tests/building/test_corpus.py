"""Every subgraph of the corpus, lowered: ONNX Runtime gives what TVM gives, or it is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("tvm")
pytest.importorskip("onnxruntime")

import onnx
import tvm
from tvm import relax

import byocviz
from byocviz.building.lower import LoweringError, check, lower
from byocviz.flow.relax.compat import attribute
from byocviz.flow.relax.surgery import dtype_of, static_shape
from byocviz.flow.relax.verify import run_module
from tests.building.lower.lab import Arg, difference, run_onnx
from tests.corpus import CASES, Case


def external(case: Case) -> list[tuple[str, Any]]:
    recording = byocviz.record(
        case.build(), case.backend, entry=case.entry, prune=False, progress=False
    )
    module = recording.__dict__["modules"]["partition"]
    return [
        (str(var.name_hint), function)
        for var, function in module.functions_items()
        if attribute(function, "Codegen")
    ]


@pytest.mark.thinned(3)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_each_subgraph_computes_the_same_in_onnx_runtime(case: Case) -> None:
    for name, function in external(case):
        errors = check(function)
        if errors:
            # Nothing in the corpus is refused but symbolic shapes, and what depends on them.
            assert errors[0].attribute == "type", [str(error) for error in errors]
            assert all(error.why and error.mend for error in errors)
            with pytest.raises(LoweringError, match="fixed shapes"):
                lower(function)
            continue
        lowered = lower(function, name=name)
        onnx.checker.check_model(lowered.model, full_check=True)
        alone = tvm.IRModule({tvm.ir.GlobalVar("main"): function})
        rng = np.random.default_rng(5)
        inputs = [_value(param.ty, rng) for param in function.params]
        values = [v for v in _flat(inputs) if isinstance(v, np.ndarray)]
        for given, wanted in zip(
            run_onnx(lowered, values), run_module(alone, "main", inputs), strict=True
        ):
            loose = 2e-2 if given.dtype == "float16" else 1e-4
            assert difference(given, wanted, loose) == ""


def _value(ty: Any, rng: np.random.Generator) -> Any:
    if isinstance(ty, relax.TupleType):
        return [_value(field, rng) for field in ty.fields]
    if isinstance(ty, relax.ShapeType):
        return tuple(int(v) for v in ty.values)
    return Arg(static_shape(ty), dtype_of(ty), low=0.1, high=1.0).make(rng)


def _flat(values: Any) -> list[Any]:
    if isinstance(values, list):
        return [leaf for value in values for leaf in _flat(value)]
    return [values]
