from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import relax, topi
from tvm.script import tirx as script

from byocviz.flow.relax import surgery as s
from byocviz.flow.relax.prepare import apply, fold, foldable

A = np.float32([[1, 2, 3], [4, 5, 6]])


def module(build: Any, private: bool = False) -> Any:
    """``build(bb, x)`` gives the output; x is 2 x 3."""
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((2, 3), "float32"))
    with bb.function("main", [x], private=private):
        with bb.dataflow():
            out = bb.emit_output(build(bb, x))
        bb.emit_func_output(out)
    return bb.get()


def check(lab: Any, mod: Any, expected: dict[str, int]) -> Any:
    mod = lab.tagged(mod)
    after, ctx = apply(mod, "fold-constants")
    assert lab.ops(after) == expected
    lab.kept(mod, after)
    assert lab.well_formed(after)
    assert apply(after, "fold-constants")[0] is after
    for a, b in zip(lab.run(mod, A), lab.run(after, A), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    return ctx


def test_arithmetic_on_constants(lab: Any) -> None:
    def build(bb: Any, x: Any) -> Any:
        c = bb.emit(relax.op.add(relax.const(A), relax.const(1.0, "float32")))
        d = bb.emit(relax.op.sqrt(c))
        shared = bb.emit(relax.op.multiply(c, d))
        return relax.op.add(relax.op.multiply(x, d), shared)

    ctx = check(lab, module(build), {"relax.multiply": 1, "relax.add": 1})
    assert ctx.count == 3
    assert not ctx.left


def test_a_known_shape_that_is_read_as_a_tensor(lab: Any) -> None:
    """And what is computed of it; the shape's own operator is dead code then."""

    def build(bb: Any, x: Any) -> Any:
        sizes = bb.emit(relax.op.shape_to_tensor(bb.emit(relax.op.shape_of(x))))
        rows = bb.emit(relax.op.take(sizes, relax.const(0, "int64"), axis=0, mode="clip"))
        return relax.op.multiply(x, relax.op.astype(rows, "float32"))

    ctx = check(lab, module(build), {"relax.shape_of": 1, "relax.multiply": 1})
    assert ctx.count == 3
    assert not ctx.left


def test_creation_concat_and_aliases(lab: Any) -> None:
    def build(bb: Any, x: Any) -> Any:
        alias = bb.emit(relax.const(A), "alias")
        zeros = bb.emit(relax.op.zeros((2, 3), "float32"))
        both = bb.emit(relax.op.concat([alias, zeros], axis=0))
        return relax.op.matmul(both, relax.op.permute_dims(x))

    ctx = check(lab, module(build), {"relax.permute_dims": 1, "relax.matmul": 1})
    assert ctx.count == 2


def test_a_primfunc_on_constants_is_not_run(lab: Any) -> None:
    def build(bb: Any, x: Any) -> Any:
        c = bb.emit_te(topi.add, relax.const(A), relax.const(A))
        return relax.op.add(x, bb.emit(relax.op.exp(c)))

    ctx = check(lab, module(build), {"relax.call_tir": 1, "relax.exp": 1, "relax.add": 1})
    assert ctx.left == {foldable.PRIM_FUNC: 1}


def test_symbolic_values_and_tuples_are_no_target(lab: Any) -> None:
    n = tvm.tirx.Var("n", "int64")
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((n, 3), "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            ones = bb.emit(relax.op.ones((n, 3), "float32"))
            parts = bb.emit(relax.op.split(relax.const(A), 3, axis=1))
            one = bb.emit(relax.TupleGetItem(parts, 0))
            out = bb.emit_output(relax.op.add(relax.op.add(x, ones), relax.op.sum(one)))
        bb.emit_func_output(out)
    mod = bb.get()
    assert apply(mod, "fold-constants")[0] is mod


def test_large_and_quantised_are_left(lab: Any) -> None:
    mod = module(
        lambda bb, x: relax.op.add(
            relax.op.sum(relax.op.zeros((1100, 1000), "float32")), relax.op.sum(x)
        )
    )
    after, ctx = apply(mod, "fold-constants")
    assert after is mod
    assert ctx.left == {fold.TOO_LARGE: 1}

    def quantised(bb: Any, x: Any) -> Any:
        scale, zero = relax.const(np.float32([0.5])), relax.const(np.int8([0]))
        w = relax.const(np.ones((1, 3), "int8"))
        return relax.op.add(x, relax.op.dequantize(w, scale, zero, axis=0))

    mod = module(quantised)
    after, ctx = apply(mod, "fold-constants")
    assert after is mod
    assert ctx.left == {foldable.QUANTISED: 1}


def test_an_operator_that_raises_costs_no_other(lab: Any) -> None:
    def build(bb: Any, x: Any) -> Any:
        good = bb.emit(relax.op.exp(relax.const(A)))
        chained = bb.emit(relax.op.sqrt(good))
        bad = bb.emit(relax.op.cos(bb.emit(relax.op.abs(chained))))
        return relax.op.add(relax.op.add(x, chained), bb.emit(relax.op.negative(bad)))

    def raising(bb: Any, call: Any) -> Any:
        raise ValueError("no lowering today")

    cos = tvm.ir.Op.get("relax.cos")
    lowering = cos.get_attr("FLegalize")
    cos.reset_attr("FLegalize")
    cos.set_attr("FLegalize", raising)
    try:
        after, ctx = apply(module(build), "fold-constants")
    finally:
        cos.reset_attr("FLegalize")
        cos.set_attr("FLegalize", lowering)
    assert ctx.count == 3
    assert ctx.left == {fold.TVM_RAISED: 1, fold.NOT_FOLDED: 1}
    assert lab.ops(after) == {"relax.add": 2, "relax.cos": 1, "relax.negative": 1}


def test_private_function_with_branches(lab: Any) -> None:
    bb = relax.BlockBuilder()
    c = relax.Var("c", relax.TensorType((), "bool"))
    x = relax.Var("x", relax.TensorType((2, 3), "float32"))
    ty = relax.TensorType((2, 3), "float32")

    def branch(op: Any) -> Any:
        k, v = relax.Var("k", ty), relax.Var("v", ty)
        bindings = [
            relax.VarBinding(k, op(relax.const(A))),
            relax.VarBinding(v, relax.op.add(x, k)),
        ]
        return relax.SeqExpr([relax.BindingBlock(bindings)], v)

    with bb.function("start", [x, c], private=True):
        bb.emit_func_output(bb.emit(relax.If(c, branch(relax.op.exp), branch(relax.op.sqrt))))
    mod = bb.get()
    after, ctx = apply(mod, "fold-constants", entry="start")
    assert ctx.count == 2
    assert lab.ops(after) == {"relax.add": 2}
    for flag in (True, False):
        a, b = (lab.run(m, A, np.array(flag), entry="start")[0] for m in (mod, after))
        np.testing.assert_allclose(a, b, rtol=1e-6)
    assert len(s.relax_functions(after)) == 1


INT = np.int32([[7, -7, -(2**31)]])


def integers(values: Any) -> Any:
    return relax.const(np.int32(values))


def sums(*made: Any) -> Any:
    """Adds what each of them gives, as floats, to the input."""

    def build(bb: Any, x: Any) -> Any:
        for make in made:
            total = relax.op.sum(relax.op.astype(bb.emit(make()), "float32"))
            x = bb.emit(relax.op.add(x, bb.emit(bb.emit(total))))
        return x

    return module(build)


def endless() -> Any:
    @script.prim_func
    def loop(a: script.handle, b: script.handle) -> None:
        x = script.match_buffer(a, (2, 3), "float32")
        y = script.match_buffer(b, (2, 3), "float32")
        while x[0, 0] > 0.0:
            y[0, 0] = x[0, 0]

    def build(bb: Any, x: Any) -> Any:
        loop_var = bb.add_func(loop, "loop")
        return relax.op.add(x, bb.emit(relax.call_tir(loop_var, [relax.const(A)], x.ty)))

    return module(build)


def large_product() -> Any:
    w = relax.const(np.ones((3000, 3000), "float32"))
    return sums(lambda: relax.op.matmul(w, w))


def division(name: str, by: Any, of: Any = INT) -> Any:
    return sums(lambda: getattr(relax.op, name)(integers(of), integers(by)))


def at(index: Any, mode: str = "fast") -> Any:
    return sums(lambda: relax.op.take(relax.const(A), relax.const(np.int64(index)), 1, mode))


def elements(index: Any, axis: int) -> Any:
    return sums(
        lambda: relax.op.gather_elements(relax.const(A), relax.const(np.int64(index)), axis)
    )


def inbound() -> Any:
    return sums(
        lambda: relax.op.strided_slice(relax.const(A), [0], [0], [10**6], assume_inbound=True)
    )


FAR = 2**30
DANGEROUS = {
    "divide by 0": (lambda: division("divide", [[1, 0, 1]]), foldable.DIVISOR),
    "floor_divide by 0": (lambda: division("floor_divide", 0), foldable.DIVISOR),
    "mod by 0": (lambda: division("mod", 0), foldable.DIVISOR),
    "floor_mod by 0": (lambda: division("floor_mod", 0), foldable.DIVISOR),
    "the least by -1": (lambda: division("floor_divide", -1), foldable.DIVISOR),
    "shift": (lambda: division("left_shift", 40), foldable.SHIFT),
    "take far": (lambda: at([0, FAR]), foldable.INDEX),
    "take before": (lambda: at([-FAR]), foldable.INDEX),
    "gather far": (lambda: elements([[0, FAR, 1]], 0), foldable.INDEX),
    "gather before": (lambda: elements([[-FAR], [0]], 1), foldable.INDEX),
    "slice": (inbound, foldable.INBOUND),
    "endless": (endless, foldable.PRIM_FUNC),
    "matmul": (large_product, fold.TOO_MUCH),
}


EACH = """
import runpy
names = runpy.run_path({here!r})
for name, (make, cause) in names["DANGEROUS"].items():
    print(name, end=": ", flush=True)
    after, ctx = names["apply"](make(), "fold-constants")
    print(ctx.left == {{cause: 1}}, flush=True)
"""


def test_what_is_dangerous_is_left() -> None:
    """In a process of its own: it would end, or not end, with the operator that it names last."""
    code = EACH.format(here=str(Path(__file__)))
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.stdout.splitlines() == [f"{name}: True" for name in DANGEROUS], done.stderr[-2000:]
    assert done.returncode == 0


@pytest.mark.parametrize(
    "make",
    [
        lambda: division("floor_divide", 2),
        lambda: division("floor_mod", -1, [5, -5]),
        lambda: division("mod", [[3, 4, -5]], [7, -7, 8]),
        lambda: division("left_shift", 31, [1, 2]),
        lambda: at([2, 0]),
        lambda: elements([[1, 0, 1]], 0),
    ],
)
def test_what_is_proved_is_computed(lab: Any, make: Any) -> None:
    ctx = check(lab, make(), {"relax.add": 1})
    assert not ctx.left


def test_a_proof_waits_for_values_that_are_computed_first(lab: Any) -> None:
    def divisor(start: int) -> Any:
        def build(bb: Any, x: Any) -> Any:
            three = bb.emit(relax.op.add(integers([start]), integers([2])))
            one = bb.emit(relax.op.floor_divide(three, integers([3])), "alias")
            quotient = bb.emit(relax.op.floor_divide(integers([[9, 8, 7]]), one))
            again = bb.emit(relax.op.mod(quotient, bb.emit(relax.op.add(one, integers([4])))))
            return relax.op.add(x, bb.emit(relax.op.astype(again, "float32")))

        return module(build)

    ctx = check(lab, divisor(1), {"relax.add": 1})
    assert ctx.count == 6
    assert not ctx.left
    after, ctx = apply(divisor(0), "fold-constants")
    assert ctx.count == 3  # one is 0: what does not divide by it is known
    assert ctx.left == {foldable.DIVISOR: 1}
    assert lab.ops(after)["relax.floor_divide"] == 1


def test_long_chains_are_one_run(lab: Any, monkeypatch: Any) -> None:
    def build(bb: Any, x: Any) -> Any:
        c = bb.emit(relax.op.exp(relax.const(A)))
        for number in range(200):
            c = bb.emit(relax.op.add(c, relax.const(number / 64, "float32")))
        return relax.op.add(x, c)

    runs = []
    compiled = fold.compile_module

    def counted(mod: Any) -> Any:
        runs.append(mod)
        return compiled(mod)

    monkeypatch.setattr(fold, "compile_module", counted)
    ctx = check(lab, module(build), {"relax.add": 1})
    assert ctx.count == 201
    assert len(runs) == 1


@pytest.mark.parametrize(
    ("limit", "value"), [("MOST_CALLS", 5), ("MOST_KINDS", 2), ("WORK", 100.0), ("MOST_RUNS", 0)]
)
def test_limits(lab: Any, monkeypatch: Any, limit: str, value: Any) -> None:
    def build(bb: Any, x: Any) -> Any:
        c = relax.const(A)
        for _ in range(6):
            for op in (relax.op.exp, relax.op.negative, relax.op.sin):
                c = bb.emit(op(c))
        return relax.op.add(x, c)

    mod = module(build)
    monkeypatch.setattr(fold, limit, value)
    after, ctx = apply(mod, "fold-constants")
    assert ctx.count < 18
    # What reads an operator that was left is no operator on constants any more.
    assert list(ctx.left) == [fold.TOO_MUCH if limit == "WORK" else fold.TOO_MANY]
    assert sum(lab.ops(after).values()) == 19 - ctx.count
    np.testing.assert_allclose(lab.run(mod, A)[0], lab.run(after, A)[0], rtol=1e-6)


@pytest.mark.parametrize("dtype", ["int64", "float64", "uint8", "float16"])
def test_other_types_are_kept(dtype: str) -> None:
    big = 2**40 if dtype == "int64" else 5
    a = np.array([[big, 1, 2]], dtype)
    moved = relax.op.permute_dims(relax.const(a, dtype))
    mod = sums(lambda: relax.op.add(relax.const(a, dtype), relax.const(a, dtype)))
    func = apply(mod, "fold-constants")[0]["main"]
    assert not [c for c in s.calls_in(func) if s.op_name(c) != "relax.add"]
    bb = relax.BlockBuilder()
    with bb.function("main", []):
        first = bb.emit(relax.op.add(moved, relax.const(1, dtype)))
        bb.emit_func_output(bb.emit(relax.Tuple([first])))
    after, ctx = apply(bb.get(), "fold-constants")
    (made,) = [b.value for block in s.blocks_of(after["main"]) for b in block.bindings]
    assert ctx.count >= 1
    np.testing.assert_array_equal(s.to_numpy(made.fields[0]), a.T + np.ones(1, dtype))
    assert s.dtype_of(made.fields[0].ty) == dtype


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn"])
def test_types_that_are_not_computed(dtype: str) -> None:
    mod = sums(lambda: relax.op.zeros((2, 3), dtype))
    after, ctx = apply(mod, "fold-constants")
    assert after is mod
    assert ctx.left == {foldable.TYPES: 1}


def test_other_operators_are_named() -> None:
    mod = sums(lambda: relax.op.image.resize2d(relax.const(A[None, None]), (4, 6)))
    after, ctx = apply(mod, "fold-constants")
    assert after is mod
    assert ctx.left == {foldable.not_listed("relax.image.resize2d"): 1}


def test_every_listed_operator_is_one_of_tvms() -> None:
    for name in foldable._ALLOWED:
        assert tvm.ir.Op.get("relax." + name).get_attr("FLegalize") is not None, name
