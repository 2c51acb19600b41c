from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relax
from tvm.script import ir as I
from tvm.script import relax as R

from byocviz.flow.relax.prepare import apply


@I.ir_module
class Private:
    @R.function(private=True)
    def unused(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        return R.exp(x)

    @R.function(private=True)
    def used(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        return R.sin(x)

    @R.function(private=True)
    def start(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Private
        a = R.add(x, x)
        b = R.cos(a)  # noqa: F841
        c = cls.used(a)
        return c

    @R.function
    def public(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        return R.tan(x)


def names(mod: Any) -> set[str]:
    return {str(gv.name_hint) for gv in mod.get_global_vars()}


def test_a_private_entry_stays(lab: Any) -> None:
    mod = lab.tagged(Private)
    after, ctx = apply(mod, "dead-code", entry="start")
    assert names(after) == {"start", "used", "public"}
    assert lab.ops(after) == {"relax.add": 1, "relax.sin": 1, "relax.tan": 1, "": 1}
    assert ctx.count >= 2
    lab.kept(mod, after)
    assert apply(after, "dead-code", entry="start")[0] is after


def test_primfuncs_that_a_rewrite_left(lab: Any) -> None:
    constants = {"lo": 0.0, "hi": 6.0}
    mod = lab.onnx(
        [("Clip", ["x", "lo", "hi"], {})],
        {"x": [3]},
        {n: np.float32(v) for n, v in constants.items()},
    )
    mod, _ = apply(mod, "clip")
    assert len(mod.functions) == 3
    after, ctx = apply(mod, "dead-code")
    assert names(after) == {"main"}
    assert ctx.count == 2


def test_nothing_dead(lab: Any) -> None:
    mod = lab.onnx([("Relu", ["x"], {})], {"x": [3]})
    assert apply(mod, "dead-code")[0] is mod
    assert apply(mod, "dead-code", entry="absent")[0] is mod
    assert isinstance(mod["main"], relax.Function)
