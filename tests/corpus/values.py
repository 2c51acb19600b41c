"""Shapes, dtypes and arguments: dynamic dimensions, match_cast, slices, resizes, integers."""

from __future__ import annotations

import tvm

from .case import case, const, flow, module


@case("dynamic", subgraphs=2)
def dynamic_batch() -> tvm.IRModule:
    return flow(
        "x: R.Tensor(('n', 4, 8, 8), 'float32')",
        """
        a = R.nn.conv2d(x, W, padding=(1, 1))
        b = R.nn.leakyrelu(a)
        c = R.nn.relu(b)
        R.output(c)
        return c
    """,
    )


@case("dynamic", "all-offloaded", subgraphs=1)
def dynamic_batch_all_offloaded() -> tvm.IRModule:
    return flow(
        "x: R.Tensor(('n', 16), 'float32'), y: R.Tensor(('n', 16), 'float32')",
        """
        a = R.add(x, y)
        b = R.nn.relu(a)
        R.output(b)
        return b
    """,
    )


@case("dynamic", "shape", subgraphs=1)
def dynamic_reshape() -> tvm.IRModule:
    return module("""
        @R.function
        def main(x: R.Tensor(("n", 4, 8), "float32")):
            n = T.int64()
            with R.dataflow():
                a = R.nn.relu(x)
                b = R.reshape(a, R.shape([n, 32]))
                c = R.tanh(b)
                R.output(c)
            return c
    """)


@case("dynamic", "shape", subgraphs=1)
def shape_as_a_parameter() -> tvm.IRModule:
    return module("""
        @R.function
        def main(x: R.Tensor(("n", "m"), "float32"), s: R.Shape(["n", "m"])):
            with R.dataflow():
                a = R.nn.relu(x)
                b = R.reshape(a, s)
                R.output(b)
            return b
    """)


@case("shape", subgraphs=2)
def shape_of_a_tensor() -> tvm.IRModule:
    return module("""
        @R.function
        def main(x: R.Tensor(("n", 8), "float32"), y: R.Tensor(("n", 8), "float32")):
            with R.dataflow():
                a = R.nn.relu(x)
                s = R.shape_of(a)
                b = R.nn.leakyrelu(y)
                c = R.reshape(b, s)
                R.output(c, s)
            return (c, s)
    """)


@case("shape", "dynamic", subgraphs=1)
def shape_returned() -> tvm.IRModule:
    return module("""
        @R.function
        def main(x: R.Tensor(("n", 8), "float32")):
            n = T.int64()
            with R.dataflow():
                a = R.nn.relu(x)
                R.output(a)
            return (a, R.shape([n, 8]))
    """)


@case("match-cast", "dynamic")
def match_cast_in_the_block() -> tvm.IRModule:
    return module("""
        @R.function
        def main(x: R.Tensor(("n", 8), "float32")):
            with R.dataflow():
                a = R.nn.relu(x)
                k = T.int64()
                b = R.match_cast(a, R.Tensor((k, 8), "float32"))
                c = R.tanh(b)
                R.output(c)
            return c
    """)


@case("match-cast")
def match_cast_of_an_unknown_rank() -> tvm.IRModule:
    return module("""
        @R.function
        def main(x: R.Tensor("float32", ndim=2)):
            n = T.int64()
            m = T.int64()
            with R.dataflow():
                a = R.match_cast(x, R.Tensor((n, m), "float32"))
                b = R.nn.relu(a)
                c = R.nn.leakyrelu(b)
                R.output(c)
            return c
    """)


@case("slice", "all-offloaded", subgraphs=1)
def strided_slice_with_four_arguments() -> tvm.IRModule:
    return flow(
        "x: X",
        """
        a = R.nn.relu(x)
        b = R.strided_slice(a, axes=[2, 3], begin=[0, 0], end=[4, 8])
        c = R.tanh(b)
        R.output(c)
        return c
    """,
    )


@case("slice", "all-offloaded", subgraphs=1)
def strided_slice_with_five_arguments() -> tvm.IRModule:
    return flow(
        "x: X",
        """
        a = R.nn.relu(x)
        b = R.strided_slice(a, axes=[2, 3], begin=[0, 0], end=[8, 8], strides=[2, 2])
        c = R.tanh(b)
        R.output(c)
        return c
    """,
    )


@case("resize", "all-offloaded", subgraphs=1)
def resize_that_is_taken() -> tvm.IRModule:
    return flow(
        "x: X",
        """
        a = R.nn.relu(x)
        b = R.image.resize2d(a, size=(16, 16), layout="NCHW", method="linear",
            coordinate_transformation_mode="half_pixel")
        c = R.nn.relu(b)
        R.output(c)
        return c
    """,
    )


@case("resize", subgraphs=2)
def resize_refused_for_its_layout() -> tvm.IRModule:
    return flow(
        "x: R.Tensor((1, 8, 8, 4), 'float32')",
        """
        a = R.nn.relu(x)
        b = R.image.resize2d(a, size=(16, 16), layout="NHWC", method="linear",
            coordinate_transformation_mode="half_pixel")
        c = R.nn.relu(b)
        R.output(c)
        return c
    """,
    )


@case("resize", subgraphs=2)
def resize_refused_for_its_rounding() -> tvm.IRModule:
    return flow(
        "x: X",
        """
        a = R.nn.relu(x)
        b = R.image.resize2d(a, size=(16, 16), layout="NCHW", method="nearest_neighbor",
            coordinate_transformation_mode="asymmetric", rounding_method="round")
        c = R.nn.relu(b)
        R.output(c)
        return c
    """,
    )


@case("clip", "all-offloaded", subgraphs=1)
def clip_operator() -> tvm.IRModule:
    return flow(
        "x: X",
        """
        a = R.nn.conv2d(x, W, padding=(1, 1))
        b = R.clip(a, 0, 6)
        R.output(b)
        return b
    """,
    )


@case("dtype", "float16", subgraphs=2)
def half_precision() -> tvm.IRModule:
    return flow(
        "x: R.Tensor((1, 4, 8, 8), 'float16')",
        """
        a = R.nn.conv2d(x, H, padding=(1, 1))
        b = R.astype(a, "float32")
        c = R.nn.relu(b)
        R.output(c)
        return c
    """,
        H=const((4, 4, 3, 3), 20, "float16"),
    )


@case("dtype", "int8", subgraphs=2)
def quantized_matmul() -> tvm.IRModule:
    return flow(
        "x: R.Tensor((2, 8), 'int8'), w: R.Tensor((8, 4), 'int8')",
        """
        a = R.matmul(x, w, out_dtype="int32")
        b = R.astype(a, "float32")
        c = R.multiply(b, R.const(0.5, "float32"))
        R.output(c)
        return c
    """,
    )


@case("dtype", "int64", subgraphs=2)
def indices() -> tvm.IRModule:
    return flow(
        "x: R.Tensor((4, 8), 'float32'), i: R.Tensor((3,), 'int64')",
        """
        j = R.add(i, R.const(1, "int64"))
        a = R.take(x, j, axis=0)
        b = R.nn.relu(a)
        R.output(b, j)
        return (b, j)
    """,
    )


@case("dtype", "bool", subgraphs=2)
def masks() -> tvm.IRModule:
    return flow(
        "x: X, y: X",
        """
        m = R.less(x, y)
        n = R.logical_not(m)
        a = R.nn.relu(x)
        b = R.where(n, a, y)
        c = R.tanh(b)
        R.output(c, m)
        return (c, m)
    """,
    )


@case("reduce", "all-offloaded", subgraphs=1)
def reductions() -> tvm.IRModule:
    return flow(
        "x: X",
        """
        a = R.mean(x, axis=[2, 3])
        b = R.max(a, axis=[1], keepdims=True)
        c = R.squeeze(b, axis=[1])
        R.output(c)
        return c
    """,
    )


@case("reduce", "multi-output", subgraphs=2)
def top_of_a_row() -> tvm.IRModule:
    return flow(
        "x: R.Tensor((2, 8), 'float32')",
        """
        a = R.nn.softmax(x, axis=-1)
        t = R.topk(a, k=3, axis=-1, ret_type="both", dtype="int32")
        v = t[0]
        i = t[1]
        b = R.sqrt(v)
        R.output(b, i)
        return (b, i)
    """,
    )


@case("normalization", "all-offloaded", subgraphs=1)
def layer_norm() -> tvm.IRModule:
    return flow(
        "x: R.Tensor((2, 8), 'float32')",
        """
        a = R.nn.layer_norm(x, G, C, axes=[-1])
        b = R.nn.silu(a)
        R.output(b)
        return b
    """,
        G=const((8,), 21),
        C=const((8,), 22),
    )


@case("scalar", subgraphs=1)
def scalars_of_rank_0() -> tvm.IRModule:
    return flow(
        "x: R.Tensor((), 'float32'), y: X",
        """
        a = R.multiply(x, R.const(2.0, "float32"))
        b = R.add(y, a)
        R.output(b, a)
        return (b, a)
    """,
    )


@case("layout", subgraphs=1)
def channels_last() -> tvm.IRModule:
    return flow(
        "x: R.Tensor((1, 8, 8, 4), 'float32')",
        """
        a = R.nn.conv2d(x, C, padding=(1, 1), data_layout="NHWC", kernel_layout="HWIO")
        b = R.nn.relu(a)
        c = R.permute_dims(b, axes=[0, 3, 1, 2])
        d = R.nn.conv2d(c, W, padding=(1, 1))
        R.output(d)
        return d
    """,
        C=const((3, 3, 4, 4), 23),
    )
