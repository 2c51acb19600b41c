from __future__ import annotations

import contextlib

import numpy as np
import pytest

from byocviz.errors import ModelError
from byocviz.models import from_tflite, load

from .running import run

tflite = pytest.importorskip("tflite")
flatbuffers = pytest.importorskip("flatbuffers")

# [out, height, width, in]
FILTER = np.random.default_rng(0).standard_normal((8, 3, 3, 4)).astype("float32")
BIAS = np.random.default_rng(1).standard_normal(8).astype("float32")


def vector(b, start, items, prepend):
    start(b, len(items))
    for item in reversed(items):
        prepend(item)
    return b.EndVector()


def build(second: int | None = None) -> bytes:
    """conv2d (SAME, bias, ReLU) and the sum of it with itself; ``second`` is another operator."""
    b = flatbuffers.Builder(4096)
    builtin = tflite.BuiltinOperator
    second = builtin.ADD if second is None else second

    def buffer(data: bytes):
        at = b.CreateByteVector(data) if data else None
        tflite.BufferStart(b)
        if at is not None:
            tflite.BufferAddData(b, at)
        return tflite.BufferEnd(b)

    buffers = [buffer(b""), buffer(FILTER.tobytes()), buffer(BIAS.tobytes())]

    def tensor(name, shape, index):
        label = b.CreateString(name)
        dims = vector(b, tflite.TensorStartShapeVector, shape, b.PrependInt32)
        tflite.TensorStart(b)
        tflite.TensorAddShape(b, dims)
        tflite.TensorAddType(b, tflite.TensorType.FLOAT32)
        tflite.TensorAddBuffer(b, index)
        tflite.TensorAddName(b, label)
        return tflite.TensorEnd(b)

    tensors = [
        tensor("x", (1, 8, 8, 4), 0),
        tensor("w", FILTER.shape, 1),
        tensor("b", BIAS.shape, 2),
        tensor("c", (1, 8, 8, 8), 0),
        tensor("y", (1, 8, 8, 8), 0),
    ]

    def code(value):
        tflite.OperatorCodeStart(b)
        tflite.OperatorCodeAddDeprecatedBuiltinCode(b, min(value, 127))
        tflite.OperatorCodeAddBuiltinCode(b, value)
        tflite.OperatorCodeAddVersion(b, 1)
        return tflite.OperatorCodeEnd(b)

    codes = [code(builtin.CONV_2D), code(second)]

    tflite.Conv2DOptionsStart(b)
    tflite.Conv2DOptionsAddPadding(b, tflite.Padding.SAME)
    tflite.Conv2DOptionsAddStrideW(b, 1)
    tflite.Conv2DOptionsAddStrideH(b, 1)
    relu = tflite.ActivationFunctionType.RELU
    tflite.Conv2DOptionsAddFusedActivationFunction(b, relu)
    conv_options = tflite.Conv2DOptionsEnd(b)
    tflite.AddOptionsStart(b)
    add_options = tflite.AddOptionsEnd(b)

    def operator(index, inputs, outputs, kind, options):
        ins = vector(b, tflite.OperatorStartInputsVector, inputs, b.PrependInt32)
        outs = vector(b, tflite.OperatorStartOutputsVector, outputs, b.PrependInt32)
        tflite.OperatorStart(b)
        tflite.OperatorAddOpcodeIndex(b, index)
        tflite.OperatorAddInputs(b, ins)
        tflite.OperatorAddOutputs(b, outs)
        tflite.OperatorAddBuiltinOptionsType(b, kind)
        tflite.OperatorAddBuiltinOptions(b, options)
        return tflite.OperatorEnd(b)

    kinds = tflite.BuiltinOptions
    operators = [
        operator(0, [0, 1, 2], [3], kinds.Conv2DOptions, conv_options),
        operator(1, [3, 3], [4], kinds.AddOptions, add_options),
    ]

    def offsets(start, items):
        return vector(b, start, items, b.PrependUOffsetTRelative)

    all_tensors = offsets(tflite.SubGraphStartTensorsVector, tensors)
    ins = vector(b, tflite.SubGraphStartInputsVector, [0], b.PrependInt32)
    outs = vector(b, tflite.SubGraphStartOutputsVector, [4], b.PrependInt32)
    all_operators = offsets(tflite.SubGraphStartOperatorsVector, operators)
    tflite.SubGraphStart(b)
    tflite.SubGraphAddTensors(b, all_tensors)
    tflite.SubGraphAddInputs(b, ins)
    tflite.SubGraphAddOutputs(b, outs)
    tflite.SubGraphAddOperators(b, all_operators)
    graph = tflite.SubGraphEnd(b)

    all_codes = offsets(tflite.ModelStartOperatorCodesVector, codes)
    graphs = offsets(tflite.ModelStartSubgraphsVector, [graph])
    all_buffers = offsets(tflite.ModelStartBuffersVector, buffers)
    tflite.ModelStart(b)
    tflite.ModelAddVersion(b, 3)
    tflite.ModelAddOperatorCodes(b, all_codes)
    tflite.ModelAddSubgraphs(b, graphs)
    tflite.ModelAddBuffers(b, all_buffers)
    b.Finish(tflite.ModelEnd(b), b"TFL3")
    return bytes(b.Output())


def expected(x: np.ndarray) -> np.ndarray:
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    conv = np.einsum("nhwikl,okli->nhwo", windows, FILTER) + BIAS
    return 2 * np.maximum(conv, 0)


def test_the_module_computes_what_the_file_says(tmp_path):
    path = tmp_path / "m.tflite"
    path.write_bytes(build())
    mod = from_tflite(path)
    assert [p.name for p in mod["main"].params] == ["x"]
    x = np.random.default_rng(2).standard_normal((1, 8, 8, 4)).astype("float32")
    np.testing.assert_allclose(run(mod, x)[0], expected(x), rtol=1e-4, atol=1e-4)


def test_path_bytes_and_model_are_the_same(tmp_path):
    import tvm

    data = build()
    path = tmp_path / "m.tflite"
    path.write_bytes(data)
    other = tmp_path / "m.bin"
    other.write_bytes(data)
    first = from_tflite(path)
    for model in (data, tflite.Model.GetRootAs(data, 0)):
        tvm.ir.assert_structural_equal(first, from_tflite(model))
    for model in (path, other, tflite.Model.GetRootAs(data, 0)):
        tvm.ir.assert_structural_equal(first, load(model))


def test_unknown_inputs():
    with pytest.raises(ModelError, match=r"(?s)no input 'z'.*Its inputs: x"):
        from_tflite(build(), shapes={"z": (1,)})
    with pytest.raises(ModelError, match="no input 'z'"):
        from_tflite(build(), dtypes={"z": "float16"})


def test_an_operator_without_a_converter():
    with pytest.raises(ModelError, match="DELEGATE"):
        from_tflite(build(tflite.BuiltinOperator.DELEGATE))


@pytest.mark.parametrize("data", [b"", b"\0" * 8, b"PK\x03\x04aaaaaaaaaa", b"\x10\0\0\0TFL3"])
def test_files_that_are_no_model(tmp_path, data):
    path = tmp_path / "m.tflite"
    path.write_bytes(data)
    with pytest.raises(ModelError):
        from_tflite(path)


def test_every_cut_is_an_error_or_a_model():
    data = build()
    for cut in range(8, len(data), 97):
        with contextlib.suppress(ModelError):
            from_tflite(data[:cut])


def test_what_is_no_model():
    with pytest.raises(ModelError, match="not int"):
        from_tflite(3)
