"""Compiling, running and comparing modules of any step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tvm")

import tvm
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tvm import relax
from tvm.relax.dpl import is_op, wildcard
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T

from byocviz.errors import ModuleError
from byocviz.flow.relax import verify
from byocviz.flow.relax.verify import max_difference, run_module, seeded_inputs

SSD = Path(__file__).parents[3] / "assets" / "ssd_mobilenet_v2_coco.onnx"
PATTERNS = [
    ("demo.conv2d", is_op("relax.nn.conv2d")(wildcard(), wildcard())),
    ("demo.relu", is_op("relax.nn.relu")(wildcard())),
    ("demo.reshape", is_op("relax.reshape")(wildcard(), wildcard())),
]


def module(functions: str) -> tvm.IRModule:
    source = "@I.ir_module\nclass Module:\n" + functions
    return tvm.script.from_source(source, extra_vars={"I": I, "R": R, "T": T})


def tensor(*shape: Any, dtype: str = "float32") -> relax.TensorType:
    return relax.TensorType(shape, dtype)


def build(params: list[tuple[str, Any]], body: Any) -> tvm.IRModule:
    """A module whose ``main`` takes ``params``, by name and type, and returns what body emits."""
    builder = relax.BlockBuilder()
    variables = [relax.Var(name, ty) for name, ty in params]
    with builder.function("main", variables):
        builder.emit_func_output(body(builder, *variables))
    return builder.get()


def first(builder: relax.BlockBuilder, x: Any, *others: Any) -> Any:
    return x


CONV = """
    @R.function
    def main(x: R.Tensor(("n", 3, 8, 8), "float32"), w: R.Tensor((4, 3, 3, 3), "float32")):
        n = T.int64()
        with R.dataflow():
            a = R.nn.conv2d(x, w, padding=(1, 1))
            b = R.nn.relu(a)
            c = R.nn.leakyrelu(b)
            d = R.reshape(c, R.shape([n, 256]))
            e = R.nn.relu(d)
            R.output(b, e)
        return (e, (b, x))
"""


def steps(mod: tvm.IRModule) -> dict[str, tvm.IRModule]:
    fuse = relax.transform.FuseOpsByPattern
    composite = fuse(PATTERNS)(mod)
    return {
        "composite": composite,
        "annotate": fuse(PATTERNS, annotate_codegen=True)(mod),
        "merge": relax.transform.MergeCompositeFunctions()(composite),
    }


@pytest.mark.parametrize("step", ["composite", "annotate", "merge"])
def test_a_step_computes_what_the_module_computes(step: str) -> None:
    mod = module(CONV)
    inputs = seeded_inputs(mod)
    before = run_module(mod, "main", inputs)
    after = run_module(steps(mod)[step], "main", inputs)
    assert [v.shape for v in before] == [(2, 256), (2, 4, 8, 8), (2, 3, 8, 8)]
    assert max_difference(before, after) == 0


def test_no_backend_is_looked_for() -> None:
    merged = steps(module(CONV))["merge"]
    marks = [
        f.attrs["Codegen"] for f in merged.functions.values() if f.attrs and "Codegen" in f.attrs
    ]
    assert set(marks) == {"demo"}
    plain = verify.plain_module(merged)
    for func in plain.functions.values():
        assert not {"Codegen", "Composite", "Primitive"} & set(dict(func.attrs))
        assert func.attrs["global_symbol"]


def test_the_result_is_numpy_s() -> None:
    mod = module(CONV)
    inputs = seeded_inputs(mod, seed=4)
    flat, conv, same = run_module(mod, "main", list(inputs.values()))
    padded = np.pad(inputs["x"], ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    expected = np.maximum(np.einsum("nchwij,ocij->nohw", windows, inputs["w"]), 0)
    np.testing.assert_allclose(conv, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(flat, expected.reshape(2, 256), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(same, inputs["x"])


def test_branches_that_need_storage_of_their_own() -> None:
    """TVM's memory planner lets one branch use what only the other allocates."""
    mod = module("""
    @R.function
    def main(x: R.Tensor((8, 8), "float32"), c: R.Tensor((), "bool")):
        if c:
            a = R.add(x, x)
            b = R.multiply(a, x)
            r = R.tanh(b)
        else:
            d = R.subtract(x, R.const(1.0))
            e = R.multiply(d, x)
            r = R.exp(e)
        return r
""")
    x = seeded_inputs(mod)["x"]
    (then,) = run_module(mod, "main", {"x": x, "c": np.array(True)})
    (other,) = run_module(mod, "main", {"x": x, "c": np.array(False)})
    np.testing.assert_allclose(then, np.tanh(2 * x * x), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(other, np.exp((x - 1) * x), rtol=1e-4, atol=1e-5)


def test_kernels_are_compiled_once_for_steps_that_share_them(monkeypatch: Any) -> None:
    built: list[int] = []
    build = tvm.tirx.build

    def counted(mod: tvm.IRModule, *args: Any, **kwargs: Any) -> Any:
        built.append(len(mod.functions))
        return build(mod, *args, **kwargs)

    monkeypatch.setattr(tvm.tirx, "build", counted)
    source = CONV.replace("256", "4, 64").replace("leakyrelu", "softplus")
    mod = module(source.replace("8, 8", "9, 8").replace("4, 64", "288"))
    inputs = seeded_inputs(mod)
    run_module(mod, "main", inputs)
    assert built
    first = sum(built)
    built.clear()
    run_module(mod, "main", inputs)
    # What is left is TVM's own arithmetic on shapes.
    assert sum(built) < first


def test_functions_that_the_entry_does_not_reach_are_not_compiled() -> None:
    mod = module("""
    @R.function
    def main(x: R.Tensor((2,), "float32")):
        return x

    @R.function
    def other(x: R.Tensor((2,), "float32")):
        y = R.call_pure_packed("no.such.function", x, ty_args=R.Tensor((2,), "float32"))
        return y
""")
    x = np.ones(2, "float32")
    np.testing.assert_array_equal(run_module(mod, "main", {"x": x})[0], x)


@pytest.mark.parametrize("target", [None, "llvm", {"kind": "llvm", "opt-level": 0}])
def test_targets(target: Any) -> None:
    mod = module(CONV)
    inputs = seeded_inputs(mod)
    assert (
        max_difference(
            run_module(mod, "main", inputs), run_module(mod, "main", inputs, target=target)
        )
        < 1e-5
    )


@pytest.mark.skipif(not SSD.exists(), reason="the bundled SSD is not in this checkout")
def test_the_ssd_partitioned_detects_what_it_detected() -> None:
    onnx = pytest.importorskip("onnx")
    from PIL import Image
    from tvm.relax.backend.contrib.tensorrt import partition_for_tensorrt
    from tvm.relax.frontend.onnx import from_onnx

    photo = Image.open(SSD.parent / "coffee.jpg").convert("RGB").resize((300, 300))
    pixels = np.asarray(photo, "float32").transpose(2, 0, 1)[None] / np.float32(127.5)
    mod = from_onnx(onnx.load(SSD))
    before = run_module(mod, "main", {"image": pixels - 1})
    after = run_module(partition_for_tensorrt(mod), "main", {"image": pixels - 1})
    assert before[2].shape[0] > 0
    assert max_difference(before, after) == 0


# --------------------------------------------------------------------------- inputs


def test_inputs_are_the_same_for_the_same_seed_only() -> None:
    mod = module(CONV)
    for name, value in seeded_inputs(mod, seed=1).items():
        np.testing.assert_array_equal(value, seeded_inputs(mod, seed=1)[name])
        assert not np.array_equal(value, seeded_inputs(mod, seed=2)[name])


def test_inputs_of_every_type() -> None:
    mod = module("""
    @R.function
    def main(x: R.Tensor(("n", "m"), "float32"), y: R.Tensor(("m", "n * 2"), "float16"),
             i: R.Tensor(("n",), "int64"), b: R.Tensor((20,), "bool"), s: R.Shape(["n", 3]),
             p: R.Tuple(R.Tensor((2,), "int8"), R.Tuple(R.Tensor(("n",), "float64")))):
        return x
""")
    v = seeded_inputs(mod)
    n, m = v["x"].shape
    assert n != m
    assert v["y"].shape == (m, 2 * n)
    assert v["y"].dtype == "float16"
    assert v["i"].shape == (n,)
    assert set(np.unique(v["i"])) <= {1, 2}
    assert set(np.unique(v["b"])) == {False, True}
    assert v["s"] == (n, 3)
    assert v["p"][0].dtype == "int8"
    assert v["p"][1][0].shape == (n,)
    np.testing.assert_array_equal(run_module(mod, "main", v)[0], v["x"])


def test_a_variance_is_positive_and_a_weight_is_scaled() -> None:
    mod = module("""
    @R.function
    def main(x: R.Tensor((1, 64, 4, 4), "float32"), w: R.Tensor((64, 64, 3, 3), "float32"),
             g: R.Tensor((64,), "float32"), h: R.Tensor((64,), "float32"),
             m: R.Tensor((64,), "float32"), v: R.Tensor((64,), "float32")):
        a = R.nn.conv2d(x, w, padding=(1, 1))
        b = R.nn.batch_norm(a, g, h, m, v, axis=1, training=False)
        c = b[0]
        return c
""")
    inputs = seeded_inputs(mod)
    assert (inputs["v"] >= 0.5).all()
    (out,) = run_module(mod, "main", inputs)
    assert 0.01 < np.abs(out).max() < 100


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda v: {"x": v["x"]}, "no input for 'w'"),
        (lambda v: {**v, "z": v["x"]}, "'z' is no parameter"),
        (lambda v: [v["x"]], "takes 2 inputs; 1 were given"),
        (lambda v: {**v, "x": v["x"].astype("float64")}, "dtype float64"),
        (lambda v: v["x"], "are a ndarray; they must be a dictionary, or a list"),
        (lambda v: tvm.runtime.tensor(v["x"]), "they must be a dictionary, or a list"),
        (lambda v: "x", "are a str"),
        (lambda v: 3, "are a int"),
        (lambda v: {**v, "x": [[1.0], [1.0, 2.0]]}, "cannot be made an array"),
        (lambda v: {**v, "x": None}, "dtype object"),
        (lambda v: {**v, "w": v["w"][:, :2]}, "[4, 2, 3, 3]"),
        (lambda v: {**v, "x": v["x"][0]}, "the module wants float32[n, 3, 8, 8]"),
    ],
)
def test_inputs_that_do_not_fit(change: Any, said: str) -> None:
    mod = module(CONV)
    with pytest.raises(ModuleError) as error:
        run_module(mod, "main", change(seeded_inputs(mod)))
    assert said in str(error.value)
    assert error.value.mend


def test_a_symbol_has_one_value() -> None:
    mod = module("""
    @R.function
    def main(x: R.Tensor(("n",), "float32"), y: R.Tensor(("n",), "float32")):
        z = R.add(x, y)
        return z
""")
    five, six = np.ones(5, "float32"), np.ones(6, "float32")
    assert run_module(mod, "main", [five, five])[0].shape == (5,)
    with pytest.raises(ModuleError, match="wherever it stands"):
        run_module(mod, "main", [five, six])


def test_a_size_counts_for_parameters_before_it() -> None:
    n = tvm.tirx.Var("n", "int64")
    mod = build([("x", relax.TensorType((n * 2 + 1,), "float32")), ("y", tensor(n))], first)
    five, two, three = (np.ones(size, "float32") for size in (5, 2, 3))
    assert run_module(mod, "main", [five, two])[0].shape == (5,)
    with pytest.raises(ModuleError, match="wherever it stands"):
        run_module(mod, "main", [five, three])


def test_tensors_of_tvm_are_inputs() -> None:
    mod = module(CONV)
    inputs = seeded_inputs(mod)
    owned = {name: tvm.runtime.tensor(value) for name, value in inputs.items()}
    assert max_difference(run_module(mod, "main", inputs), run_module(mod, "main", owned)) == 0


@pytest.mark.parametrize(
    ("ty", "value", "said"),
    [
        (relax.ShapeType(ndim=2), 3, "is a int; the module wants a shape"),
        (relax.ShapeType(ndim=2), (1, 2, 3), "has shape [1, 2, 3]"),
        (tvm.ir.PrimType("bool"), 1, "wants a scalar of bool"),
        (tvm.ir.PrimType("int64"), 1.5, "wants a scalar of int64"),
        (tvm.ir.PrimType("int64"), "3", "wants a scalar of int64"),
        (relax.TupleType([tensor(2)]), [], "must be a tuple of 1 values"),
    ],
    ids=str,
)
def test_what_is_no_tensor_is_checked(ty: Any, value: Any, said: str) -> None:
    mod = build([("x", tensor(2)), ("other", ty)], first)
    with pytest.raises(ModuleError) as error:
        run_module(mod, "main", [np.ones(2, "float32"), value])
    assert said in str(error.value)
    assert error.value.mend


def test_two_parameters_of_one_name() -> None:
    mod = build(
        [("x", tensor(2)), ("x", tensor(2))],
        lambda b, x, y: b.emit(relax.op.subtract(x, y)),
    )
    one = np.ones(2, "float32")
    np.testing.assert_array_equal(run_module(mod, "main", [one, 3 * one])[0], -2 * one)
    with pytest.raises(ModuleError, match="several parameters are named 'x'") as error:
        run_module(mod, "main", {"x": one})
    assert "list" in error.value.mend
    with pytest.raises(ModuleError, match="two parameters named 'x'"):
        seeded_inputs(mod)


INTEGER = relax.TensorType((64,), "int32")


@pytest.mark.parametrize("seed", range(3))
def test_seeded_integers_divide(seed: int) -> None:
    mod = build(
        [("x", INTEGER), ("y", INTEGER)],
        lambda b, x, y: b.emit(relax.op.floor_divide(x, y)),
    )
    inputs = seeded_inputs(mod, seed=seed)
    assert set(np.unique(inputs["y"])) == {1, 2}
    (out,) = run_module(mod, "main", inputs)
    np.testing.assert_array_equal(out, inputs["x"] // inputs["y"])


@pytest.mark.parametrize(("rows", "seen"), [(1, {0}), (2, {0, 1}), (9, {0, 1, 2})])
def test_seeded_indices_are_places_that_there_are(rows: int, seen: set[int]) -> None:
    """Also where the index is computed from the parameter."""

    def gather(b: relax.BlockBuilder, x: Any, i: Any, d: Any) -> Any:
        index = b.emit(relax.op.astype(b.emit(relax.op.reshape(i, (8, 8))), "int64"))
        taken = b.emit(relax.op.take(x, index, axis=0))
        divided = b.emit(relax.op.floor_divide(d, d))
        return b.emit(relax.Tuple([taken, divided]))

    mod = build([("x", tensor(rows, 1)), ("i", INTEGER), ("d", INTEGER)], gather)
    inputs = seeded_inputs(mod)
    assert set(np.unique(inputs["i"])) == seen
    assert set(np.unique(inputs["d"])) == {1, 2}
    taken, _ = run_module(mod, "main", inputs)
    np.testing.assert_array_equal(taken, inputs["x"][inputs["i"].reshape(8, 8)])


def test_integers_that_a_kernel_takes_are_one() -> None:
    mod = build(
        [("x", INTEGER), ("y", INTEGER)],
        lambda b, x, y: b.emit(relax.op.floor_divide(x, y)),
    )
    inputs = seeded_inputs(relax.transform.LegalizeOps()(mod))
    assert set(np.unique(inputs["y"])) == {1}


def test_absurd_inputs_are_not_made() -> None:
    mod = build([("x", tensor(2)), ("w", tensor(10**6, 10**6))], first)
    with pytest.raises(ModuleError, match="more than 2 GiB: parameter 'w'") as error:
        seeded_inputs(mod)
    assert "verify=False" in error.value.mend


def test_no_such_entry() -> None:
    with pytest.raises(ModuleError, match="no Relax function named 'start'") as error:
        run_module(module(CONV), "start", {})
    assert "main" in error.value.mend


# --------------------------------------------------------------------------- comparing

floats = hnp.arrays("float32", hnp.array_shapes(max_dims=3), elements=st.floats(width=32))


@given(floats)
def test_nothing_differs_from_itself(value: np.ndarray) -> None:
    assert max_difference([value], [value.copy()]) == 0


@given(floats.filter(lambda a: np.isfinite(a).all()), st.data())
def test_one_changed_element_is_the_difference(value: np.ndarray, data: st.DataObject) -> None:
    value = value.astype("float64")
    index = data.draw(st.integers(0, value.size - 1))
    other = value.copy()
    other.flat[index] += 0.5
    expected = abs(other.flat[index] - value.flat[index])
    assert max_difference([value], [other]) == max_difference([other], [value]) == expected


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ([np.nan, 1.0], [np.nan, 1.0], 0.0),
        ([np.nan, 1.0], [1.0, np.nan], np.inf),
        ([np.inf], [np.inf], 0.0),
        ([np.inf], [-np.inf], np.inf),
        ([np.inf], [3.0], np.inf),
        ([], [], 0.0),
    ],
)
def test_what_is_not_finite(a: list[float], b: list[float], expected: float) -> None:
    assert max_difference([np.array(a)], [np.array(b)]) == expected


def test_integers_are_exact() -> None:
    big = np.array([2**63 - 1, -(2**63)], "int64")
    assert max_difference([big], [big - np.array([1, 0])]) == 1
    assert max_difference([big[:1]], [big[1:]]) == float(2**64 - 1)
    assert max_difference([np.array([True])], [np.array([False])]) == 1
    assert max_difference([np.array([255], "uint8")], [np.array([0], "uint8")]) == 255


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ([np.zeros(2)], [np.zeros(3)]),
        ([np.zeros((0, 3), "int64")], [np.zeros((2, 3), "int64")]),
        ([np.zeros(2, "float32")], [np.zeros(2)]),
        ([np.zeros(2)], []),
    ],
)
def test_what_cannot_be_compared(a: list[Any], b: list[Any]) -> None:
    with pytest.raises(ModuleError):
        max_difference(a, b)


def test_no_outputs_do_not_differ() -> None:
    assert max_difference([], []) == 0
