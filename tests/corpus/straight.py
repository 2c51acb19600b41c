"""Modules without control flow: chains, branches, diamonds, tuples, several outputs."""

from __future__ import annotations

import numpy as np
import tvm
from tvm import relax

from .case import array, case, const, flow, module, tensor


@case("chain", "all-offloaded", subgraphs=1)
def chain() -> tvm.IRModule:
    return flow(
        "x: X",
        """
        a = R.nn.conv2d(x, W, padding=(1, 1))
        b = R.add(a, B)
        c = R.nn.relu(b)
        R.output(c)
        return c
    """,
    )


@case("chain", subgraphs=2)
def chain_cut_once() -> tvm.IRModule:
    return flow(
        "x: X",
        """
        a = R.nn.conv2d(x, W, padding=(1, 1))
        b = R.nn.leakyrelu(a)
        c = R.nn.conv2d(b, W, padding=(1, 1))
        R.output(c)
        return c
    """,
    )


@case("chain", "none-offloaded", subgraphs=0)
def none_offloaded() -> tvm.IRModule:
    return flow(
        "x: X",
        """
        a = R.nn.leakyrelu(x)
        b = R.nn.gelu(a)
        c = R.nn.softplus(b)
        R.output(c)
        return c
    """,
    )


@case("chain", "long", "all-offloaded", subgraphs=1)
def chain_of_200() -> tvm.IRModule:
    return _long(200, every=0)


@case("chain", "long", subgraphs=10)
def chain_of_200_cut_often() -> tvm.IRModule:
    return _long(200, every=20)


def _long(length: int, every: int) -> tvm.IRModule:
    builder = relax.BlockBuilder()
    x = relax.Var("x", tensor((2, 8)))
    steps = (relax.op.nn.relu, relax.op.tanh, relax.op.negative, relax.op.sigmoid)
    with builder.function("main", [x]):
        with builder.dataflow():
            value = x
            for index in range(length):
                cut = every and index % every == every - 1
                step = relax.op.nn.leakyrelu if cut else steps[index % 4]
                value = builder.emit(step(value))
            out = builder.emit_output(value)
        builder.emit_func_output(out)
    return builder.get()


@case("branch", "all-offloaded", subgraphs=1)
def two_branches_joined() -> tvm.IRModule:
    return flow(
        "x: X",
        """
        a = R.nn.conv2d(x, W, padding=(1, 1))
        l = R.nn.relu(a)
        r = R.sigmoid(a)
        y = R.multiply(l, r)
        R.output(y)
        return y
    """,
    )


@case("branch", "diamond", subgraphs=2)
def diamond_that_would_be_a_cycle() -> tvm.IRModule:
    """a -> TVM -> d, and a -> d: joining a and d would need d's own result."""
    return flow(
        "x: X",
        """
        a = R.nn.relu(x)
        t = R.nn.leakyrelu(a)
        d = R.add(a, t)
        R.output(d)
        return d
    """,
    )


@case("branch", "diamond", subgraphs=3)
def diamond_two_levels() -> tvm.IRModule:
    return flow(
        "x: X",
        """
        a = R.nn.conv2d(x, W, padding=(1, 1))
        t = R.nn.leakyrelu(a)
        b = R.add(a, t)
        c = R.nn.relu(b)
        u = R.nn.gelu(c)
        d = R.multiply(a, u)
        e = R.add(d, c)
        R.output(e)
        return e
    """,
    )


@case("branch", "diamond")
def diamond_with_a_free_side() -> tvm.IRModule:
    """The right side could join either end, but not both."""
    return flow(
        "x: X, y: X",
        """
        a = R.nn.relu(x)
        t = R.nn.leakyrelu(a)
        f = R.tanh(y)
        g = R.add(a, f)
        h = R.add(t, f)
        k = R.multiply(g, h)
        R.output(k)
        return k
    """,
    )


@case("branch", subgraphs=2)
def two_chains_apart() -> tvm.IRModule:
    return flow(
        "x: X, y: X",
        """
        a = R.nn.relu(x)
        b = R.sigmoid(y)
        p = R.nn.leakyrelu(a)
        q = R.nn.leakyrelu(b)
        z = R.nn.prelu(p, S, axis=1)
        w = R.maximum(q, B)
        R.output(z, w)
        return (z, w)
    """.replace("w = R.maximum(q, B)", "w = R.nn.softplus(q)"),
        S=const((4,), 4),
    )


@case("fan-out", "long", "all-offloaded", subgraphs=1)
def fan_out_of_50() -> tvm.IRModule:
    return _fan(50, relax.op.tanh)


@case("fan-out", "long", "multi-output", subgraphs=2)
def fan_out_of_50_to_tvm() -> tvm.IRModule:
    return _fan(50, relax.op.nn.leakyrelu)


def _fan(width: int, step: object) -> tvm.IRModule:
    builder = relax.BlockBuilder()
    x = relax.Var("x", tensor((2, 8)))
    with builder.function("main", [x]):
        with builder.dataflow():
            root = builder.emit(relax.op.nn.relu(x))
            total = root
            for _ in range(width):
                total = builder.emit(relax.op.add(total, builder.emit(step(root))))
            out = builder.emit_output(total)
        builder.emit_func_output(out)
    return builder.get()


@case("tuple", "multi-output", "all-offloaded", subgraphs=1)
def tuple_out() -> tvm.IRModule:
    return flow(
        "x: X",
        """
        a = R.nn.relu(x)
        b = R.tanh(a)
        R.output(a, b)
        return (a, b)
    """,
    )


@case("tuple", "multi-output", subgraphs=1)
def tuple_out_bound_to_a_variable() -> tvm.IRModule:
    return flow(
        "x: X",
        """
        a = R.nn.relu(x)
        b = R.tanh(a)
        t = (a, b, x)
        R.output(t)
        return t
    """,
    )


@case("tuple", subgraphs=2)
def tuple_nested_out() -> tvm.IRModule:
    return flow(
        "x: X",
        """
        a = R.nn.relu(x)
        b = R.nn.leakyrelu(a)
        c = R.tanh(b)
        t = ((a, b), (c, (x, a)))
        R.output(t)
        return t
    """,
    )


@case("tuple", "tuple-param", subgraphs=1)
def tuple_in() -> tvm.IRModule:
    return flow(
        "p: R.Tuple(X, X)",
        """
        a = p[0]
        b = p[1]
        c = R.add(a, b)
        R.output(c)
        return c
    """,
    )


@case("tuple", "tuple-param", subgraphs=1)
def tuple_nested_in() -> tvm.IRModule:
    return flow(
        "p: R.Tuple(X, R.Tuple(X, X)), y: X",
        """
        q = p[1]
        a = R.add(p[0], q[1])
        b = R.nn.leakyrelu(q[0])
        c = R.add(a, b)
        d = R.add(c, y)
        R.output(d)
        return d
    """,
    )


@case("tuple", "split", "all-offloaded", subgraphs=1)
def split_and_concat() -> tvm.IRModule:
    return flow(
        "x: X",
        """
        s = R.split(x, 2, axis=1)
        a = s[0]
        b = s[1]
        c = R.nn.relu(a)
        d = R.concat((c, b), axis=1)
        R.output(d)
        return d
    """,
    )


@case("tuple", "split", subgraphs=2)
def split_across_tvm() -> tvm.IRModule:
    return flow(
        "x: X",
        """
        s = R.split(x, 2, axis=1)
        a = R.nn.leakyrelu(s[0])
        b = R.nn.relu(s[1])
        c = R.concat((a, b), axis=1)
        d = R.nn.relu(c)
        R.output(d)
        return d
    """,
    )


@case("tuple", "split", subgraphs=1)
def split_tuple_returned() -> tvm.IRModule:
    return flow(
        "x: X",
        """
        s = R.split(x, 2, axis=1)
        R.output(s)
        return s
    """,
    )


@case("tuple")
def tuple_made_and_taken_apart() -> tvm.IRModule:
    return flow(
        "x: X",
        """
        a = R.nn.relu(x)
        t = (a, x)
        b = t[0]
        c = R.add(b, t[1])
        R.output(c)
        return c
    """,
    )


@case("tuple", "concat", subgraphs=2)
def concat_of_mixed_sources() -> tvm.IRModule:
    return flow(
        "x: X, y: X",
        """
        a = R.nn.conv2d(x, W, padding=(1, 1))
        b = R.nn.leakyrelu(a)
        c = R.concat((a, b, y, B8), axis=1)
        d = R.nn.relu(c)
        R.output(d)
        return d
    """,
        B8=const((1, 2, 8, 8), 5),
    )


@case("multi-output", subgraphs=1)
def two_outputs_of_one_region() -> tvm.IRModule:
    return flow(
        "x: X",
        """
        a = R.nn.conv2d(x, W, padding=(1, 1))
        b = R.nn.relu(a)
        p = R.nn.leakyrelu(a)
        q = R.nn.leakyrelu(b)
        c = R.nn.prelu(p, S, axis=1)
        R.output(c, q)
        return (c, q)
    """,
        S=const((4,), 4),
    )


@case("multi-output", subgraphs=1)
def outputs_inside_and_at_the_end() -> tvm.IRModule:
    """The region's value is an output of the block and is used by TVM as well."""
    return flow(
        "x: X",
        """
        a = R.nn.relu(x)
        b = R.tanh(a)
        c = R.nn.leakyrelu(a)
        R.output(a, b, c)
        return (b, c, a)
    """,
    )


@case("multi-output", subgraphs=1)
def same_output_twice() -> tvm.IRModule:
    return flow(
        "x: X",
        """
        a = R.nn.relu(x)
        R.output(a)
        return (a, a)
    """,
    )


@case("dead", subgraphs=1)
def dead_code_in_the_block() -> tvm.IRModule:
    return flow(
        "x: X",
        """
        a = R.nn.relu(x)
        u = R.tanh(a)
        v = R.nn.leakyrelu(u)
        b = R.sigmoid(a)
        R.output(b)
        return b
    """,
    )


@case("dead", "multi-output", subgraphs=1)
def unused_output_of_the_block() -> tvm.IRModule:
    return flow(
        "x: X",
        """
        a = R.nn.relu(x)
        b = R.tanh(a)
        R.output(a, b)
        return b
    """,
    )


@case("dead", "tuple", subgraphs=1)
def unused_half_of_a_split() -> tvm.IRModule:
    return flow(
        "x: X",
        """
        s = R.split(x, 2, axis=1)
        a = R.nn.relu(s[0])
        R.output(a)
        return a
    """,
    )


@case("equal", subgraphs=2)
def equal_composites_with_weights_as_params() -> tvm.IRModule:
    return flow(
        "x: X, w: R.Tensor((4, 4, 3, 3), 'float32'), v: R.Tensor((4, 4, 3, 3), 'float32')",
        """
        a = R.nn.conv2d(x, w, padding=(1, 1))
        t = R.nn.leakyrelu(a)
        b = R.nn.conv2d(t, v, padding=(1, 1))
        R.output(b)
        return b
    """,
    )


@case(
    "equal",
    "params",
    subgraphs=2,
    params=lambda: {"w": array((4, 4, 3, 3), 7), "v": array((4, 4, 3, 3), 8)},
)
def equal_composites_with_weights_to_bind() -> tvm.IRModule:
    return equal_composites_with_weights_as_params()


@case("equal", subgraphs=3)
def equal_composites_of_one_constant() -> tvm.IRModule:
    return flow(
        "x: X",
        """
        a = R.nn.conv2d(x, W, padding=(1, 1))
        t = R.nn.leakyrelu(a)
        b = R.nn.conv2d(t, W, padding=(1, 1))
        u = R.nn.leakyrelu(b)
        c = R.nn.conv2d(u, W, padding=(1, 1))
        R.output(c)
        return c
    """,
    )


@case("equal", subgraphs=2)
def equal_composites_of_equal_constants() -> tvm.IRModule:
    return flow(
        "x: X",
        """
        a = R.nn.conv2d(x, W1, padding=(1, 1))
        t = R.nn.leakyrelu(a)
        b = R.nn.conv2d(t, W2, padding=(1, 1))
        R.output(b)
        return b
    """,
        W1=const((4, 4, 3, 3), 9),
        W2=const((4, 4, 3, 3), 9),
    )


@case("equal", subgraphs=4)
def equal_regions_of_several_operators() -> tvm.IRModule:
    builder = relax.BlockBuilder()
    x = relax.Var("x", tensor((1, 4, 8, 8)))
    with builder.function("main", [x]):
        with builder.dataflow():
            value = x
            for _ in range(4):
                value = builder.emit(relax.op.add(value, const((1, 4, 1, 1), 3)))
                value = builder.emit(relax.op.nn.relu(value))
                value = builder.emit(relax.op.nn.leakyrelu(value))
            out = builder.emit_output(value)
        builder.emit_func_output(out)
    return builder.get()


@case("equal", "duplicate")
def identical_calls_twice() -> tvm.IRModule:
    """The same operator of the same arguments, bound to two variables."""
    return flow(
        "x: X",
        """
        a = R.nn.relu(x)
        b = R.nn.relu(x)
        c = R.nn.leakyrelu(a)
        d = R.nn.leakyrelu(a)
        e = R.add(b, c)
        f = R.add(e, d)
        R.output(f)
        return f
    """,
    )


@case("equal", "duplicate")
def one_argument_twice() -> tvm.IRModule:
    return flow(
        "x: X",
        """
        a = R.add(x, x)
        b = R.multiply(a, a)
        c = R.nn.leakyrelu(b)
        d = R.concat((c, c, b), axis=1)
        R.output(d)
        return d
    """,
    )


@case("constants", subgraphs=2)
def one_constant_shared_by_tvm_and_backend() -> tvm.IRModule:
    return flow(
        "x: X",
        """
        a = R.add(x, B)
        b = R.floor_mod(a, B)
        c = R.multiply(b, B)
        R.output(c)
        return c
    """,
    )


@case("constants", "no-input", subgraphs=1)
def constants_only() -> tvm.IRModule:
    return flow(
        "",
        """
        a = R.nn.conv2d(A, W, padding=(1, 1))
        b = R.nn.relu(a)
        R.output(b)
        return b
    """,
        A=const((1, 4, 8, 8), 6),
    )


@case("constants", "no-input", subgraphs=0)
def a_constant_returned() -> tvm.IRModule:
    return flow(
        "x: X",
        """
        a = A
        R.output(a)
        return a
    """,
        A=const((3,), 6),
    )


@case("empty", subgraphs=0)
def parameter_returned() -> tvm.IRModule:
    return module("""
        @R.function
        def main(x: X) -> X:
            return x
    """)


@case("empty", "tuple", subgraphs=0)
def parameters_returned_in_a_tuple() -> tvm.IRModule:
    return module("""
        @R.function
        def main(x: X, y: V) -> R.Tuple(X, R.Tuple(V, X)):
            return (x, (y, x))
    """)


@case("params", "multi-output", subgraphs=1)
def parameter_beside_a_result() -> tvm.IRModule:
    return flow(
        "x: X, unused: V",
        """
        a = R.nn.relu(x)
        R.output(a)
        return (a, x)
    """,
    )


@case("alias", subgraphs=2)
def variables_bound_to_variables() -> tvm.IRModule:
    return flow(
        "x: X",
        """
        a = R.nn.relu(x)
        b = a
        c = R.nn.leakyrelu(b)
        d = c
        e = R.tanh(d)
        f = e
        R.output(f)
        return f
    """,
    )


@case("batch-norm", "tuple", subgraphs=2)
def batch_norm_between_convolutions() -> tvm.IRModule:
    return flow(
        "x: X",
        """
        a = R.nn.conv2d(x, W, padding=(1, 1))
        n = R.nn.batch_norm(a, G, H, M, P, axis=1, training=False)
        b = n[0]
        c = R.nn.relu(b)
        d = R.nn.conv2d(c, K)
        m = R.nn.batch_norm(d, G, H, M, P, axis=1, training=False)
        e = m[0]
        R.output(e)
        return e
    """,
        **_norm(),
    )


def _norm() -> dict[str, object]:
    positive = relax.const((np.abs(array((4,), 13)) + 0.5).astype("float32"))
    return {"G": const((4,), 10), "H": const((4,), 11), "M": const((4,), 12), "P": positive}


@case("batch-norm", "params", subgraphs=1)
def batch_norm_of_parameters() -> tvm.IRModule:
    return flow(
        "x: X, gamma: V, beta: V, moving_mean: V, moving_var: V",
        """
        n = R.nn.batch_norm(x, gamma, beta, moving_mean, moving_var, axis=1, training=False)
        b = n[0]
        c = R.nn.relu(b)
        R.output(c)
        return c
    """,
    )


@case("conv", "all-offloaded", subgraphs=1)
def depthwise_and_grouped_convolutions() -> tvm.IRModule:
    return flow(
        "x: X",
        """
        a = R.nn.conv2d(x, D, padding=(1, 1), groups=4)
        b = R.nn.conv2d(a, G, padding=(1, 1), groups=2, strides=(2, 2))
        c = R.nn.conv2d_transpose(b, U, strides=(2, 2))
        R.output(c)
        return c
    """,
        D=const((4, 1, 3, 3), 14),
        G=const((4, 2, 3, 3), 15),
        U=const((4, 4, 2, 2), 16),
    )


@case("matmul", "all-offloaded", subgraphs=1)
def perceptron() -> tvm.IRModule:
    return flow(
        "x: R.Tensor((2, 16), 'float32')",
        """
        a = R.matmul(x, A)
        b = R.add(a, C)
        c = R.nn.relu(b)
        d = R.matmul(c, D)
        e = R.nn.softmax(d, axis=-1)
        R.output(e)
        return e
    """,
        A=const((16, 8), 17),
        C=const((8,), 18),
        D=const((8, 4), 19),
    )


@case("matmul", "attention", subgraphs=1)
def attention_written_out() -> tvm.IRModule:
    return flow(
        "q: R.Tensor((1, 2, 4, 8), 'float32'), k: R.Tensor((1, 2, 4, 8), 'float32'), "
        "v: R.Tensor((1, 2, 4, 8), 'float32')",
        """
        t = R.permute_dims(k, axes=[0, 1, 3, 2])
        s = R.matmul(q, t)
        m = R.divide(s, R.const(2.0, "float32"))
        p = R.nn.softmax(m, axis=-1)
        o = R.matmul(p, v)
        R.output(o)
        return o
    """,
    )


@case("attention", subgraphs=0)
def attention_operator() -> tvm.IRModule:
    return flow(
        "q: R.Tensor((1, 4, 2, 8), 'float32'), k: R.Tensor((1, 6, 2, 8), 'float32'), "
        "v: R.Tensor((1, 6, 2, 8), 'float32')",
        """
        o = R.nn.attention(q, k, v)
        R.output(o)
        return o
    """,
    )
