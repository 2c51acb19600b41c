"""What has no equal in ONNX is refused by name before anything is built."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("tvm")
pytest.importorskip("onnx")

from tvm import relax, tirx

from byocviz.building.lower import LoweringError, check, lower
from byocviz.errors import ByocvizError, ModuleError
from tests.building.lower.lab import C, Cases, T, V, build

op, nn = relax.op, relax.op.nn
X = T(1, 4, 6, 6)
NMS = relax.op.vision.all_class_non_max_suppression

REFUSED: list[tuple[str, Any, tuple[Any, ...], dict[str, Any]]] = [
    ("dtype", nn.conv2d, (T(1, 4, 6, 6, dtype="int8"), C(4, 4, 3, 3, dtype="int8")),
     {"out_dtype": "int32"}),
    ("layout", nn.max_pool2d, (T(1, 1, 6, 6, 4),), {"layout": "NCHW4c", "pool_size": 2}),
    ("dtype", nn.max_pool2d, (T(1, 4, 6, 6, dtype="int32"),), {"pool_size": 2}),
    ("dtype", nn.avg_pool2d, (T(1, 4, 6, 6, dtype="int32"),), {"pool_size": 2}),
    ("index_map", op.layout_transform, (X, lambda n, c, h, w: (n, c // 4, h, w, c % 4)), {}),
    ("index_map", op.layout_transform, (X, lambda n, c, h, w: (n * 4 + c, h, w)), {}),
    ("begin, end", op.strided_slice, (X, [1], [3], [1], [1]), {}),
    ("indices_or_sections", op.split, (T(4, 5), 4, 1), {}),
    ("min", op.clip, (T(4, dtype="int8"), -1000, 4), {}),
    ("max", op.clip, (T(4, dtype="int32"), 0, 2.5), {}),
    ("dtype", op.power, (T(4, dtype="int32"), T(4, dtype="int32")), {}),
    ("dtype", op.sum, (T(4, dtype="int8"),), {}),
    ("dtype", op.mean, (T(4, dtype="int32"),), {}),
    ("dtype", op.mean, (T(4, dtype="uint32"),), {}),
    ("dtype", nn.conv2d, (T(1, 4, 6, 6, dtype="bfloat16"), C(4, 4, 3, 3, dtype="bfloat16")), {}),
    ("dtype", nn.max_pool2d, (T(1, 4, 6, 6, dtype="bfloat16"),), {"pool_size": 2}),
    ("dtype", op.sin, (T(4, dtype="bfloat16"),), {}),
    ("shape", nn.conv2d, (T(1, 2, 3, 2), C(2, 2, 1, 3)), {}),
    ("shape", nn.conv2d_transpose, (T(2, 4, 1, 9), C(4, 2, 1, 3)), {"padding": (0, 1, 1, 0)}),
    ("shape", nn.avg_pool2d, (T(1, 2, 3, 1),),
     {"pool_size": (1, 2), "padding": (0, 0, 1, 1), "dilation": (1, 2)}),
    ("shape", nn.avg_pool2d, (T(1, 4, 0, 6),), {"pool_size": 2, "padding": 1}),
    ("shape", op.image.resize2d, (X, (0, 3)), {}),
    ("axis", op.argmax, (T(2, 0, 3),), {"axis": 1}),
    ("axis", op.take, (T(2, 0, 3), V([0, 0], "int64"), 1), {"mode": "clip"}),
    ("pad_width", nn.pad, (T(2, 0), [0, 0, 1, 1]), {"pad_mode": "replicate"}),
    ("dtype", op.negative, (T(4, dtype="uint8"),), {}),
    ("dtype", op.bitwise_and, (T(4, dtype="int32"), T(4, dtype="int32")), {}),
    ("dtype", op.matmul, (T(2, 3, dtype="int8"), T(3, 2, dtype="int8")), {}),
    ("center", nn.layer_norm, (X, C(6), C(6), [-1]), {"center": False}),
    ("axes", nn.layer_norm, (X, C(6, 6), C(6, 6), [3, 2]), {}),
    ("axes", nn.group_norm, (X, C(4), C(4), 2, 1, [2]), {}),
    ("training", nn.batch_norm, (X, C(4), C(4), C(4), C(4), 1), {"training": True}),
    ("coordinate_transformation_mode", op.image.resize2d, (X, (3, 3)),
     {"coordinate_transformation_mode": "tf_crop_and_resize"}),
    ("dtype", op.image.resize2d, (T(1, 1, 4, 4, dtype="int32"), (3, 3)), {"method": "linear"}),
    ("size", op.image.resize2d, (X, (1, 3)),
     {"coordinate_transformation_mode": "align_corners", "method": "linear"}),
    ("layout", op.image.resize2d, (T(1, 1, 4, 4, 4), (3, 3)), {"layout": "NCHW4c"}),
    ("indices", op.take, (X, V([9], "int64", True), 1), {}),
    ("mode", op.take, (X, V([1], "int64"), 1), {"mode": "nan"}),
    ("pad_mode", nn.pad, (X, [0, 0, 0, 0, 1, 1, 1, 1]), {"pad_mode": "circular"}),
    ("pad_width", nn.pad, (T(2, 2), [3, 0, 0, 0]), {"pad_mode": "reflect"}),
    ("reduction", op.scatter_elements, (T(2, 3), V([[0, 1]], "int64"), T(1, 2)),
     {"reduction": "max"}),
    ("indexing", op.meshgrid, ([T(3), T(4)], "xy"), {}),
    ("causal_mask, window_size", nn.attention, (T(1, 4, 2, 8), T(1, 4, 2, 8), T(1, 4, 2, 8)),
     {"causal_mask": "TopLeft"}),
    ("method, padding_mode", op.image.grid_sample,
     (T(1, 2, 4, 4), T(1, 2, 3, 3)), {"method": "area"}),
    ("divisor", op.divide, (T(2, 3, dtype="int32"), V([1, 0, 2], "int32", True)), {}),
    ("divisor", op.floor_mod, (T(2, 3, dtype="int64"), V([0], "int64", True)), {}),
    ("dtype", op.outer, (T(3, dtype="bool"), T(2, dtype="bool")), {}),
    ("dtype", op.square, (T(3, dtype="bool"),), {}),
    ("", op.median, (X, 1), {}),
    ("dtype", op.left_shift, (T(3, dtype="int32"), T(3, dtype="int32")), {}),
    ("bits", op.right_shift, (T(3, dtype="int32"), V([31], "int32", True)), {}),
    ("dtype", op.cumprod, (T(3, dtype="int8"), 0), {}),
    ("axis", op.cumprod, (T(2, 5000), 1), {}),
    ("method", op.image.resize3d, (T(1, 1, 4, 4, 4), (3, 3, 3)), {"method": "cubic"}),
    ("mode", op.vision.roi_align, (X, T(2, 5), (2, 2), 1.0), {"mode": "max"}),
    ("dtype", op.quantize, (X, C(), V(0, "int8", True)), {"out_dtype": "int16"}),
    ("zero_point", op.dequantize, (T(4, dtype="int8"), C(), T(dtype="int32")), {}),
    ("output_format", NMS, (T(1, 3, 4), T(1, 2, 3), relax.const(3, "int64"),
     relax.const(0.5, "float32"), relax.const(0.1, "float32")), {"output_format": "tensorflow"}),
    ("argument 2", NMS, (T(1, 3, 4), T(1, 2, 3), T(dtype="int64"), relax.const(0.5, "float32"),
     relax.const(0.1, "float32")), {}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("attribute", "make", "args", "kwargs"),
    REFUSED,
    ids=[f"{getattr(make, '__name__', '')}-{a}".strip("-") for a, make, *_ in REFUSED],
)
def test_it_names_the_operator_the_attribute_and_the_mend(
    attribute: str, make: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    cases = Cases()
    cases(make, *args, **kwargs)
    module, _, _ = build(cases)
    with pytest.raises(LoweringError) as caught:
        lower(module["main"])
    error = caught.value
    assert isinstance(error, ByocvizError)
    assert error.attribute == attribute
    assert error.operator.endswith(make.__name__)
    assert error.variable == "lv"
    assert error.mend
    assert error.operator in str(error)
    assert attribute in str(error)
    (same,) = check(module["main"])
    assert str(same) == str(error)


def test_check_finds_all_and_lower_the_first() -> None:
    cases = Cases()
    cases(op.atan2, X, X)
    cases(nn.relu, X)
    cases(op.power, T(4, dtype="int32"), T(4, dtype="int32"))
    module, _, _ = build(cases)
    assert [e.operator for e in check(module["main"])] == ["relax.atan2", "relax.power"]
    with pytest.raises(LoweringError, match="atan2"):
        lower(module["main"])


def test_a_call_that_reads_what_was_refused_is_asked_too() -> None:
    x = relax.Var("x", relax.TensorType((2, 3), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            a = builder.emit(op.atan2(x, x))
            b = builder.emit(nn.relu(a))
            b = builder.emit_output(op.atan2(b, b))
        builder.emit_func_output(b)
    assert len(check(builder.get()["main"])) == 2


def test_symbolic_shapes_are_refused_with_the_mend() -> None:
    n = tirx.Var("n", "int64")
    x = relax.Var("x", relax.TensorType((n, 3), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit_output(nn.relu(x))
        builder.emit_func_output(y)
    function = builder.get()["main"]
    with pytest.raises(LoweringError, match=r"'x'.*fixed shapes") as caught:
        lower(function)
    assert "BindSymbolicVars" in caught.value.mend
    assert check(function)


def test_a_branch_and_a_tir_function_are_refused() -> None:
    from tests.corpus import CASES

    errors: set[str] = set()
    for case in CASES:
        if not case.tags & {"if", "call-tir"}:
            continue
        module = case.build()
        function = module[case.entry]
        for error in check(function, module=module):
            errors.add(error.operator)
    assert {"if", "relax.call_tir"} <= errors


def test_what_is_no_function_and_an_opset_that_is_not_written() -> None:
    module, _, _ = build(_one())
    with pytest.raises(ModuleError, match="Relax function"):
        lower(module)
    for opset in (16, 99):
        with pytest.raises(ModuleError, match="opset"):
            lower(module["main"], opset=opset)


def _one() -> Cases:
    cases = Cases()
    cases(nn.relu, T(2))
    return cases
