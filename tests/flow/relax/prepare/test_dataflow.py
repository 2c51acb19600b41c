from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tvm import relax
from tvm.script import ir as I
from tvm.script import relax as R

from byocviz.flow.relax import surgery as s
from byocviz.flow.relax.prepare import apply


@I.ir_module
class Branches:
    @R.function(private=True)
    def go(x: R.Tensor((1, 4), "float32"), c: R.Tensor((), "bool")) -> R.Tensor((1, 4), "float32"):
        a = R.add(x, x)
        if c:
            b = R.nn.relu(a)
            e = R.add(b, b)
            r = e
        else:

            @R.function
            def local(y: R.Tensor((1, 4), "float32")) -> R.Tensor((1, 4), "float32"):
                z = R.add(y, y)
                return z

            r = local(a)
        k = R.exp(r)
        return k


def outside(mod: Any) -> list[str]:
    return [
        s.op_name(b.value)
        for _, func in s.relax_functions(mod)
        for block in s.blocks_of(func)
        if not isinstance(block, relax.DataflowBlock)
        for b in block.bindings
        if s.op_name(b.value)
    ]


def test_blocks_in_branches_and_local_functions(lab: Any) -> None:
    mod = lab.tagged(Branches)
    after, ctx = apply(mod, "dataflow-blocks", entry="go")
    assert not outside(after)
    assert not ctx.left
    assert ctx.count == 5
    assert lab.marks(after) == lab.marks(mod)
    assert lab.well_formed(after)
    assert apply(after, "dataflow-blocks", entry="go")[0] is after
    x = np.array([[-1, 2, -3, 4]], "float32")
    for flag in (True, False):
        a, b = (lab.run(m, x, np.array(flag), entry="go")[0] for m in (mod, after))
        np.testing.assert_array_equal(a, b)


def test_one_operator_and_what_is_there_already(lab: Any) -> None:
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((2,), "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            first = bb.emit_output(relax.op.exp(x))
        bb.emit_func_output(bb.emit(relax.op.sin(first)))
    mod = lab.tagged(bb.get())
    after, ctx = apply(mod, "dataflow-blocks")
    assert ctx.count >= 1
    assert not outside(after)
    assert lab.marks(after) == lab.marks(mod)


def test_impure_calls_stay_outside(lab: Any) -> None:
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((2,), "float32"))
    with bb.function("main", [x], pure=False):
        bb.emit(relax.op.print(x, format="{}"))
        bb.emit_func_output(bb.emit(relax.op.exp(x)))
    mod = lab.tagged(bb.get())
    after, ctx = apply(mod, "dataflow-blocks")
    assert ctx.count == 1
    assert outside(after) == ["relax.print"]
    assert apply(after, "dataflow-blocks")[0] is after


@pytest.mark.parametrize("entry", ["main", "other"])
def test_imported_modules_have_theirs(lab: Any, entry: str) -> None:
    mod = lab.onnx([("Relu", ["x"], {})], {"x": [2]})
    assert apply(mod, "dataflow-blocks", entry=entry)[0] is mod
