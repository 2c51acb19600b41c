"""Multiply-accumulates against counts by other means, and the bytes and text of types."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tvm")

import tvm
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import relax
from tvm.relax import op as R

from byocviz.flow.relax import macs as module
from byocviz.flow.relax.macs import macs, tensor_bytes, type_text, visit_tir

SSD = Path(__file__).parents[3] / "assets" / "ssd_mobilenet_v2_coco.onnx"
few = settings(max_examples=40, deadline=None)


def var(name: str, shape: Any, dtype: str = "float32") -> relax.Var:
    return relax.Var(name, relax.TensorType(shape, dtype))


def call(expr: relax.Call) -> relax.Call:
    return relax.BlockBuilder().normalize(expr)


def lowered(build: Callable[..., Any], *params: relax.Var) -> tvm.IRModule:
    builder = relax.BlockBuilder()
    with builder.function("main", list(params)):
        builder.emit_func_output(builder.emit(build(*params)))
    return relax.transform.LegalizeOps()(builder.get())


def lowered_macs(build: Callable[..., Any], *params: relax.Var) -> int | None:
    """What the loops of TVM's own lowering come to."""
    mod = lowered(build, *params)
    counts = [macs(binding.value, mod) for binding in mod["main"].body.blocks[0].bindings]
    return None if None in counts else sum(counts)


sizes = st.integers(1, 4)


@st.composite
def convolutions(draw: st.DrawFn, ndim: int) -> dict[str, Any]:
    groups = draw(st.sampled_from([1, 2, 3]))
    kernel = draw(st.lists(st.integers(1, 3), min_size=ndim, max_size=ndim))
    spatial = [draw(st.integers(5, 7)) for _ in range(ndim)]
    return {
        "batch": draw(st.integers(1, 2)),
        "in": groups * draw(sizes),
        "out": groups * draw(sizes),
        "groups": groups,
        "kernel": kernel,
        "spatial": spatial,
        "strides": draw(st.lists(st.integers(1, 2), min_size=ndim, max_size=ndim)),
        "padding": draw(st.integers(0, 1)),
        "dilation": draw(st.lists(st.integers(1, 2), min_size=ndim, max_size=ndim)),
    }


AXES = {1: "W", 2: "HW", 3: "DHW"}
CONV = {1: R.nn.conv1d, 2: R.nn.conv2d, 3: R.nn.conv3d}


def conv(c: dict[str, Any], data_layout: str, kernel_layout: str) -> tuple[Any, ...]:
    axes = AXES[len(c["kernel"])]
    extent = {
        "N": c["batch"],
        "C": c["in"],
        "O": c["out"],
        "I": c["in"] // c["groups"],
        **dict(zip(axes, c["spatial"], strict=True)),
    }
    taps = {**extent, **dict(zip(axes, c["kernel"], strict=True))}
    x = var("x", [extent[a] for a in data_layout])
    w = var("w", [taps[a] for a in kernel_layout])
    op = CONV[len(axes)]

    def build(x: Any, w: Any) -> Any:
        return op(
            x,
            w,
            strides=c["strides"],
            padding=c["padding"],
            dilation=c["dilation"],
            groups=c["groups"],
            data_layout=data_layout,
            kernel_layout=kernel_layout,
        )

    return build, x, w


@pytest.mark.parametrize("ndim", [1, 2, 3])
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_a_convolution_counts_what_its_loops_count(ndim: int, data: st.DataObject) -> None:
    c = data.draw(convolutions(ndim))
    build, x, w = conv(c, "NC" + AXES[ndim], "OI" + AXES[ndim])
    count = macs(call(build(x, w)))
    outputs = [
        (size + 2 * c["padding"] - dilation * (kernel - 1) - 1) // stride + 1
        for size, kernel, stride, dilation in zip(
            c["spatial"], c["kernel"], c["strides"], c["dilation"], strict=True
        )
    ]
    assert count == (
        c["batch"] * c["out"] * math.prod(outputs) * (c["in"] // c["groups"])
        * math.prod(c["kernel"])
    )  # fmt: skip
    if count:
        assert count == lowered_macs(build, x, w)


@given(convolutions(2), st.sampled_from(["NHWC", "NCHW"]), st.permutations("OIHW"))
@few
def test_a_convolution_counts_the_same_in_any_layout(
    c: dict[str, Any], data_layout: str, kernel_layout: list[str]
) -> None:
    plain, x, w = conv(c, "NCHW", "OIHW")
    other, y, v = conv(c, data_layout, "".join(kernel_layout))
    assert macs(call(plain(x, w))) == macs(call(other(y, v)))


def test_a_channel_split_into_blocks_counts_the_same() -> None:
    plain = R.nn.conv2d(var("x", (1, 8, 6, 6)), var("w", (16, 8, 3, 3)))
    split = R.nn.conv2d(
        var("x", (1, 2, 6, 6, 4)),
        var("w", (4, 2, 3, 3, 4, 4)),
        data_layout="NCHW4c",
        kernel_layout="OIHW4i4o",
        out_layout="NCHW4c",
    )
    assert macs(call(plain)) == macs(call(split)) == 16 * 4 * 4 * 8 * 9


@pytest.mark.parametrize("ndim", [1, 2, 3])
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_a_transposed_convolution_counts_its_scattered_products(
    ndim: int, data: st.DataObject
) -> None:
    c = data.draw(convolutions(ndim))
    op = {1: R.nn.conv1d_transpose, 2: R.nn.conv2d_transpose, 3: R.nn.conv3d_transpose}[ndim]
    per_group = c["out"] // c["groups"]
    x = var("x", [c["batch"], c["in"], *c["spatial"]])
    w = var("w", [c["in"], per_group, *c["kernel"]])
    expr = call(op(x, w, strides=c["strides"], groups=c["groups"]))
    # Scatter each input element over the kernel, one product at a time.
    count = 0
    for _ in itertools.product(*map(range, [c["batch"], c["in"], *c["spatial"]])):
        count += np.ones((per_group, *c["kernel"])).size
    assert macs(expr) == count


@st.composite
def products(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    rows, inner, columns = draw(sizes), draw(sizes), draw(sizes)
    batch = draw(st.lists(sizes, max_size=2))
    left = [1 if draw(st.booleans()) else b for b in batch]
    right = [1 if draw(st.booleans()) and a != 1 else b for a, b in zip(left, batch, strict=True)]
    right = right[draw(st.integers(0, len(right))) :]
    a, b = [*left, rows, inner], [*right, inner, columns]
    if draw(st.booleans()):
        a = [inner]
    if draw(st.booleans()):
        b = [inner]
    return a, b


@given(products())
@few
def test_a_matrix_product_counts_what_its_loops_count(shapes: tuple[list[int], list[int]]) -> None:
    a, b = var("a", shapes[0]), var("b", shapes[1])
    out = np.matmul(np.ones(shapes[0]), np.ones(shapes[1]))
    count = macs(call(R.matmul(a, b)))
    assert count == int(out.sum())  # ones: each element is its number of products
    assert count == lowered_macs(R.matmul, a, b)


@pytest.mark.parametrize(
    ("subscripts", "shapes", "expected"),
    [
        ("ij,jk->ik", [(3, 4), (4, 5)], 60),
        ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)], 120),
        ("ij,jk", [(3, 4), (4, 5)], 60),
        ("i,i->", [(7,), (7,)], 7),
        ("ij,ij->ij", [(3, 4), (3, 4)], 0),
        ("i,j->ij", [(3,), (4,)], 0),
        ("ij->ji", [(3, 4)], 0),
        ("ij->", [(3, 4)], 0),
        ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)], None),
    ],
)
def test_an_einstein_sum(subscripts: str, shapes: list[Any], expected: int | None) -> None:
    operands = [var(f"v{i}", shape) for i, shape in enumerate(shapes)]
    expr = call(R.einsum(relax.Tuple(operands), subscripts))
    assert macs(expr) == expected
    if expected is not None:
        assert lowered_macs(lambda *v: R.einsum(relax.Tuple(v), subscripts), *operands) == expected


@given(st.tuples(*[sizes] * 6), st.booleans())
@few
def test_attention_counts_what_its_loops_count(n: tuple[int, ...], biased: bool) -> None:
    batch, rows, columns, heads, width, value = n
    q = var("q", (batch, rows, heads, width))
    k = var("k", (batch, columns, heads, width))
    v = var("v", (batch, columns, heads, value))
    params = [q, k, v]
    if biased:
        params.append(var("b", (batch, heads, rows, columns)))
    scores = np.einsum("bsnh,btnh->bnst", np.ones((batch, rows, heads, width)),
                       np.ones((batch, columns, heads, width)))  # fmt: skip
    expected = int(scores.sum()) + scores.size * value
    assert macs(call(R.nn.attention(*params))) == expected
    assert lowered_macs(R.nn.attention, *params) == expected


ZERO = {
    "relu": lambda x: R.nn.relu(x),
    "softmax": lambda x: R.nn.softmax(x),
    "sum": lambda x: R.sum(x, axis=[1]),
    "max": lambda x: R.max(x),
    "mean": lambda x: R.mean(x),
    "variance": lambda x: R.variance(x, axis=[0]),
    "square": lambda x: R.multiply(x, x),
    "cumsum": lambda x: R.cumsum(x, axis=1),
    "resize": lambda x: R.image.resize2d(x, (8, 9), layout="NCHW"),
    "pool": lambda x: R.nn.avg_pool2d(x, (2, 2)),
    "take": lambda x: R.take(x, relax.const([0, 1], "int64"), axis=0),
    "split": lambda x: R.split(x, 2, axis=0),
    "norm": lambda x: R.nn.rms_norm(x, relax.const(np.ones(6, "float32")), [-1]),
}


@pytest.mark.parametrize("name", ZERO)
def test_no_products_before_lowering_none_after(name: str) -> None:
    x = var("x", (1, 2, 4, 6) if name in ("resize", "pool") else (4, 6))
    assert macs(call(ZERO[name](x))) == 0
    assert lowered_macs(ZERO[name], x) == 0


def test_every_operator_of_this_tvm_is_known() -> None:
    names = {str(n) for n in tvm.ir.Op.list_op_names() if str(n).startswith("relax.")}
    known = module.WITHOUT_MACS | set(module._COUNTED) | module._CALL_TIR
    assert not module.WITHOUT_MACS & set(module._COUNTED)
    assert not names - known


def test_what_cannot_be_known_is_none() -> None:
    n = tvm.tirx.Var("n", "int64")
    w = var("w", (8, 5))
    out = relax.TensorType((4,), "float32")
    x = var("x", (4,))
    assert macs(call(R.matmul(var("x", (n, 8)), w))) is None
    assert macs(call(R.nn.conv2d(var("x", (n, 3, 8, 8)), var("w", (4, 3, 3, 3))))) is None
    assert macs(call(R.matmul(relax.Var("x", relax.TensorType(ndim=2)), w))) is None
    assert macs(call(R.call_dps_packed("any", relax.Tuple([x]), out))) is None
    assert macs(call(R.call_pure_packed("any", x, ty_args=[out]))) is None
    assert macs(relax.Call(relax.ExternFunc("any"), [x], ty_args=[out])) is None


def test_call_tir_needs_its_module_and_a_form_that_can_be_counted() -> None:
    x, y, n = var("x", (3, 4)), var("y", (4, 5)), tvm.tirx.Var("n", "int64")
    mod = lowered(R.matmul, x, y)
    lowered_call = mod["main"].body.blocks[0].bindings[0].value
    assert macs(lowered_call, mod) == 60
    assert macs(lowered_call) is None
    assert lowered_macs(R.matmul, var("x", (n, 4)), y) is None
    assert lowered_macs(R.nn.relu, var("x", (n, 4))) == 0
    assert lowered_macs(lambda v: R.prod(v), x) is None


def test_a_product_of_a_tensor_with_itself_is_counted() -> None:
    x = var("x", (4, 4))
    assert lowered_macs(lambda v: R.matmul(v, v), x) == 64


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("c[vi] = c[vi] + a[vi, vj] * b[vj]", 12),
        ("c[vi] = a[vi, vj] * b[vj] + c[vi]", 12),
        ("c[vi] = c[vi] + a[vi, vj]", 0),
        ("c[vi] = T.max(c[vi], a[vi, vj])", 0),
        ("c[vi] = c[vi] + a[vi, vj] * a[vi, vj]", 0),
        ("c[vi] = c[vi] * a[vi, vj]", None),
        ("c[vi] = c[vi] + a[vi, vj] * b[vj] + b[vj]", None),
        ("c[vi] = c[vi] + a[vi, vj] * T.float32(2)", None),
        ("c[vi] = c[vi] - a[vi, vj] * b[vj]", None),
        ("c[vi] = c[vi] + c[vi] * b[vj]", None),
        ("c[vi] = a[vi, vj] * b[vj]", 0),
    ],
)
@pytest.mark.parametrize("block", [True, False])
def test_forms_of_a_reduction(line: str, expected: int | None, block: bool) -> None:
    if block:
        body = f"""
        for i, j in T.grid(3, 4):
            with T.sblock("c"):
                vi, vj = T.axis.remap("SR", [i, j])
                {line}"""
    else:
        body = f"""
        for vi in range(3):
            for vj in range(4):
                {line}"""
    assert prim_macs(body) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # In place, element by element: no reduction.
        ("for i in range(3):\n            c[i] = c[i] + a[i, 0] * b[i]", 0),
        # A recurrence.
        ("for i in range(2):\n            c[i + 1] = c[i] + a[i, 0] * b[i]", None),
        # Only some of the iterations.
        ("for i, j in T.grid(3, 4):\n            if i < j:\n"
         "                c[i] = c[i] + a[i, j] * b[j]", None),
        ("for i, j in T.grid(3, 4):\n            if i < j:\n"
         "                c[i] = c[i] + a[i, j]", 0),
        ("T.evaluate(T.call_extern('int32', 'anything', c.data))", None),
        ("while c[0] < T.float32(3):\n            c[0] = c[0] + a[0, 0] * b[0]", None),
        # Products of indices are no products of tensors.
        ("for i, j in T.grid(3, 2):\n            c[i] = c[i] + a[i, j * 2]", 0),
    ],
)  # fmt: skip
def test_what_surrounds_a_reduction(body: str, expected: int | None) -> None:
    assert prim_macs("        " + body) == expected


def prim_macs(body: str) -> int | None:
    from tvm.script import tirx as T

    from byocviz.flow.relax.tir_macs import prim_func_macs

    source = f"""
@T.prim_func(s_tir=True)
def f(a: T.Buffer((3, 4), "float32"), b: T.Buffer((4,), "float32"), c: T.Buffer((3,), "float32")):
{body.strip(chr(10))}
"""
    if not body.startswith("        "):
        source = source.replace("\n        ", "\n    ")
    return prim_func_macs(tvm.script.from_source(source, extra_vars={"T": T}))


@pytest.mark.skipif(not SSD.exists(), reason="the bundled SSD is not in this checkout")
def test_the_ssd_counts_what_its_onnx_counts() -> None:
    onnx = pytest.importorskip("onnx")
    from tvm.relax.frontend.onnx import from_onnx

    model = onnx.shape_inference.infer_shapes(onnx.load(SSD))
    weights = {w.name: list(w.dims) for w in model.graph.initializer}
    shapes = {
        v.name: [d.dim_value for d in v.type.tensor_type.shape.dim]
        for v in [*model.graph.value_info, *model.graph.output]
    }
    expected = [
        math.prod(shapes[node.output[0]]) * math.prod(weights[node.input[1]][1:])
        for node in model.graph.node
        if node.op_type == "Conv"
    ]
    mod = from_onnx(model)
    counts: list[int | None] = []

    def visit(expr: Any) -> None:
        if isinstance(expr, relax.Call):
            counts.append(macs(expr, mod))

    relax.analysis.post_order_visit(mod["main"], visit)
    assert None not in counts
    assert sorted(filter(None, counts)) == sorted(expected)
    assert len(expected) == 88


def test_visit_tir_reaches_every_store() -> None:
    mod = lowered(R.matmul, var("x", (3, 4)), var("y", (4, 5)))
    kinds: list[str] = []
    visit_tir(mod["matmul"].body, lambda node: kinds.append(type(node).__name__))
    assert kinds.count("BufferStore") == 2


@given(
    st.lists(st.integers(0, 9), max_size=4),
    st.sampled_from(["float32", "float16", "int8", "int64", "bool"]),
)
@few
def test_bytes_are_numpy_s(shape: list[int], dtype: str) -> None:
    ty = relax.TensorType(shape, dtype)
    assert tensor_bytes(ty) == np.zeros(shape, dtype).nbytes
    assert type_text(ty) == f"{dtype}[{', '.join(map(str, shape))}]"


def test_bytes_of_the_other_types() -> None:
    n = tvm.tirx.Var("n", "int64")
    assert tensor_bytes(relax.TensorType((3,), "int4")) == 2
    assert tensor_bytes(relax.TensorType((3,), "float8_e4m3fn")) == 3
    assert tensor_bytes(relax.TensorType((2,), "bfloat16")) == 4
    assert tensor_bytes(relax.TensorType((n, 3), "float32")) is None
    assert tensor_bytes(relax.TensorType(ndim=2, dtype="float32")) is None
    assert tensor_bytes(relax.TensorType((2,), None)) is None
    pair = [relax.TensorType((2, 3), "float32"), relax.TensorType((5,), "int8")]
    assert tensor_bytes(relax.TupleType(pair)) == 29
    assert tensor_bytes(relax.TupleType([*pair, relax.TensorType((n,), "int8")])) is None
    assert tensor_bytes(relax.TupleType([])) == 0
    assert tensor_bytes(relax.ShapeType([1, n])) == 16
    assert tensor_bytes(tvm.ir.PrimType("int32")) == 4
    assert tensor_bytes(relax.AnyType()) is None


def test_text_of_the_other_types() -> None:
    n = tvm.tirx.Var("n", "int64")
    assert type_text(relax.TensorType((n, n * 2, 3), "float32")) == "float32[n, n * 2, 3]"
    assert type_text(relax.TensorType(ndim=2, dtype="int8")) == "int8[?, ?]"
    assert type_text(relax.TensorType(ndim=-1, dtype="float32")) == "float32[*]"
    assert type_text(relax.TensorType(ndim=1, dtype=None)) == "?[?]"
    pair = relax.TupleType([relax.TensorType((), "bool"), relax.ShapeType([1, n])])
    assert type_text(pair) == "(bool[], shape[1, n])"
    assert type_text(relax.ShapeType(ndim=-1)) == "shape[*]"
    assert type_text(tvm.ir.PrimType("int64")) == "int64"
    assert type_text(relax.FuncType([pair], pair)) == "function"
    assert type_text(relax.AnyType()) == "object"
