"""Control flow and calls: If, recursion, local functions, call_tir, packed functions, blocks."""

from __future__ import annotations

import tvm
from tvm import relax

from .case import case, const, flow, module, tensor


@case("if", subgraphs=2)
def if_with_plain_branches() -> tvm.IRModule:
    return module("""
        @R.function
        def main(x: X, c: R.Tensor((), "bool")) -> X:
            with R.dataflow():
                a = R.nn.relu(x)
                R.output(a)
            if c:
                b = R.nn.leakyrelu(a)
                r = b
            else:
                d = R.nn.gelu(a)
                r = d
            with R.dataflow():
                e = R.tanh(r)
                R.output(e)
            return e
    """)


@case("if", "if-dataflow", subgraphs=2)
def if_with_dataflow_branches() -> tvm.IRModule:
    return module("""
        @R.function
        def main(x: X, c: R.Tensor((), "bool")) -> X:
            if c:
                with R.dataflow():
                    a = R.nn.conv2d(x, W, padding=(1, 1))
                    b = R.nn.relu(a)
                    R.output(b)
                r = b
            else:
                with R.dataflow():
                    d = R.nn.conv2d(x, K)
                    e = R.add(d, B)
                    R.output(e)
                r = e
            return r
    """)


@case("if", "if-dataflow", subgraphs=3)
def if_branch_outputs_used_later_in_the_branch() -> tvm.IRModule:
    """MergeCompositeFunctions of TVM 0.27 dies on this one."""
    return module("""
        @R.function
        def main(x: X, c: R.Tensor((), "bool")) -> X:
            if c:
                with R.dataflow():
                    a = R.add(x, x)
                    t = R.nn.leakyrelu(a)
                    b = R.nn.relu(t)
                    R.output(a, b)
                d = R.nn.softplus(a)
                r = R.subtract(d, b)
            else:
                with R.dataflow():
                    e = R.nn.conv2d(x, W, padding=(1, 1))
                    f = R.add(e, x)
                    R.output(f)
                r = f
            return r
    """)


@case("if", "if-dataflow", "tuple", subgraphs=3)
def if_that_gives_a_tuple() -> tvm.IRModule:
    return module("""
        @R.function
        def main(x: X, c: R.Tensor((), "bool")):
            if c:
                with R.dataflow():
                    a = R.nn.relu(x)
                    b = R.tanh(a)
                    R.output(a, b)
                t = (a, b)
            else:
                with R.dataflow():
                    d = R.sigmoid(x)
                    R.output(d)
                t = (d, x)
            with R.dataflow():
                p = t[0]
                q = t[1]
                r = R.add(p, q)
                R.output(r)
            return r
    """)


@case("if", "if-nested", "if-dataflow", subgraphs=3)
def if_nested() -> tvm.IRModule:
    return module("""
        @R.function
        def main(x: X, c: R.Tensor((), "bool"), d: R.Tensor((), "bool")) -> X:
            if c:
                if d:
                    with R.dataflow():
                        a = R.nn.relu(x)
                        R.output(a)
                    p = a
                else:
                    with R.dataflow():
                        b = R.tanh(x)
                        R.output(b)
                    p = b
                q = R.nn.leakyrelu(p)
                r = q
            else:
                with R.dataflow():
                    e = R.sigmoid(x)
                    R.output(e)
                r = e
            return r
    """)


@case("if", "if-dataflow", subgraphs=3)
def if_between_blocks_with_a_computed_condition() -> tvm.IRModule:
    return module("""
        @R.function
        def main(x: X, n: R.Tensor((), "int32")) -> X:
            with R.dataflow():
                a = R.nn.conv2d(x, W, padding=(1, 1))
                c = R.less(n, R.const(2, "int32"))
                R.output(a, c)
            if c:
                with R.dataflow():
                    b = R.nn.relu(a)
                    R.output(b)
                r = b
            else:
                r = a
            with R.dataflow():
                e = R.add(r, a)
                R.output(e)
            return e
    """)


@case("if", subgraphs=0)
def if_with_empty_branches() -> tvm.IRModule:
    return module("""
        @R.function
        def main(x: X, y: X, c: R.Tensor((), "bool")) -> X:
            if c:
                r = x
            else:
                r = y
            return r
    """)


@case("recursion", "if", subgraphs=1)
def loop_by_recursion() -> tvm.IRModule:
    return module("""
        @R.function
        def loop(i: R.Tensor((), "int32"), x: X) -> X:
            c = R.less(i, R.const(3, "int32"))
            if c:
                with R.dataflow():
                    a = R.nn.conv2d(x, W, padding=(1, 1))
                    b = R.nn.relu(a)
                    R.output(b)
                j = R.left_shift(R.const(2, "int32"), i)
                y = Module.loop(j, b)
                r = y
            else:
                r = x
            return r

        @R.function
        def main(x: X) -> X:
            z = Module.loop(R.const(0, "int32"), x)
            return z
    """)


@case("recursion", "if", subgraphs=2)
def mutual_recursion() -> tvm.IRModule:
    return module("""
        @R.function
        def even(i: R.Tensor((), "int32"), x: X) -> X:
            c = R.less(i, R.const(3, "int32"))
            if c:
                with R.dataflow():
                    j = R.add(i, R.const(1, "int32"))
                    R.output(j)
                y = Module.odd(j, x)
                r = y
            else:
                r = x
            return r

        @R.function
        def odd(i: R.Tensor((), "int32"), x: X) -> X:
            with R.dataflow():
                a = R.tanh(x)
                R.output(a)
            y = Module.even(i, a)
            return y

        @R.function
        def main(x: X) -> X:
            z = Module.even(R.const(0, "int32"), x)
            return z
    """)


@case("functions", subgraphs=2)
def several_functions() -> tvm.IRModule:
    return module("""
        @R.function
        def block(x: X, w: R.Tensor((4, 4, 3, 3), "float32")) -> X:
            with R.dataflow():
                a = R.nn.conv2d(x, w, padding=(1, 1))
                b = R.nn.relu(a)
                R.output(b)
            return b

        @R.function
        def main(x: X) -> X:
            y = Module.block(x, W)
            z = Module.block(y, W)
            with R.dataflow():
                s = R.add(y, z)
                R.output(s)
            return s
    """)


@case("functions", "dead", subgraphs=1)
def private_function_that_nobody_calls() -> tvm.IRModule:
    return module("""
        @R.function(private=True)
        def forgotten(x: X) -> X:
            with R.dataflow():
                a = R.nn.relu(x)
                R.output(a)
            return a

        @R.function
        def main(x: X) -> X:
            with R.dataflow():
                a = R.tanh(x)
                R.output(a)
            return a
    """)


@case("functions", "private", subgraphs=1)
def private_function_called() -> tvm.IRModule:
    return module("""
        @R.function(private=True)
        def helper(x: X) -> X:
            with R.dataflow():
                a = R.nn.relu(x)
                R.output(a)
            return a

        @R.function
        def main(x: X) -> X:
            y = Module.helper(x)
            z = R.nn.leakyrelu(y)
            return z
    """)


@case("entry", entry="serve", subgraphs=1)
def entry_of_another_name() -> tvm.IRModule:
    return module("""
        @R.function
        def serve(x: X) -> X:
            with R.dataflow():
                a = R.nn.relu(x)
                R.output(a)
            return a
    """)


@case("entry", "private", entry="hidden")
def private_entry_beside_a_main() -> tvm.IRModule:
    return module("""
        @R.function(private=True)
        def hidden(x: X) -> X:
            with R.dataflow():
                a = R.nn.relu(x)
                R.output(a)
            return a

        @R.function
        def main(x: X) -> X:
            with R.dataflow():
                a = R.tanh(x)
                R.output(a)
            return a
    """)


@case("no-dataflow", subgraphs=0)
def no_dataflow_block() -> tvm.IRModule:
    return module("""
        @R.function
        def main(x: X) -> X:
            a = R.nn.conv2d(x, W, padding=(1, 1))
            b = R.nn.relu(a)
            c = R.nn.leakyrelu(b)
            return c
    """)


@case("no-dataflow", "blocks")
def dataflow_blocks_and_bindings_between() -> tvm.IRModule:
    return module("""
        @R.function
        def main(x: X):
            with R.dataflow():
                a = R.nn.relu(x)
                b = R.tanh(a)
                R.output(a, b)
            c = R.nn.leakyrelu(b)
            d = R.add(c, a)
            with R.dataflow():
                e = R.sigmoid(d)
                f = R.add(e, a)
                R.output(e, f)
            return (e, f)
    """)


@case("blocks")
def two_blocks_that_touch() -> tvm.IRModule:
    return module("""
        @R.function
        def main(x: X) -> X:
            with R.dataflow():
                a = R.nn.relu(x)
                R.output(a)
            b = R.nn.leakyrelu(a)
            with R.dataflow():
                c = R.tanh(a)
                d = R.add(c, b)
                R.output(d)
            return d
    """)


@case("local", subgraphs=1)
def local_function() -> tvm.IRModule:
    return module("""
        @R.function
        def main(x: X) -> X:
            @R.function
            def inner(y: X) -> X:
                with R.dataflow():
                    a = R.nn.relu(y)
                    R.output(a)
                return a
            b = inner(x)
            c = R.nn.leakyrelu(b)
            d = inner(c)
            return d
    """)


@case("local", "closure", subgraphs=0)
def closure_over_a_result() -> tvm.IRModule:
    return module("""
        @R.function
        def main(x: X, z: X) -> X:
            t = R.nn.leakyrelu(z)
            @R.function
            def inner(y: X) -> X:
                a = R.add(y, t)
                return a
            b = inner(x)
            c = inner(b)
            return c
    """)


@case("composite", "functions")
def composite_function_in_the_input() -> tvm.IRModule:
    """As FuseOpsByPattern leaves it, made by hand for a backend of another name."""
    return module("""
        @R.function(private=True)
        def fused_conv2d_relu(x: X, w: R.Tensor((4, 4, 3, 3), "float32")) -> X:
            R.func_attr({"Composite": "other.conv2d_relu", "Primitive": True})
            with R.dataflow():
                a = R.nn.conv2d(x, w, padding=(1, 1))
                b = R.nn.relu(a)
                R.output(b)
            return b

        @R.function
        def main(x: X) -> X:
            with R.dataflow():
                a = R.nn.relu(x)
                b = Module.fused_conv2d_relu(a, W)
                c = R.tanh(b)
                R.output(c)
            return c
    """)


_SCALE = """
    @T.prim_func(private=True, s_tir=True)
    def scale(a: T.Buffer((1, 4, 8, 8), "float32"), b: T.Buffer((1, 4, 8, 8), "float32")):
        T.func_attr({"tirx.noalias": True})
        for i, j, k, l in T.grid(1, 4, 8, 8):
            with T.sblock("scale"):
                vi, vj, vk, vl = T.axis.remap("SSSS", [i, j, k, l])
                b[vi, vj, vk, vl] = a[vi, vj, vk, vl] * T.float32(2.0)
"""


@case("call-tir", subgraphs=2)
def call_tir_between() -> tvm.IRModule:
    return module(
        _SCALE
        + """
    @R.function
    def main(x: X) -> X:
        with R.dataflow():
            a = R.nn.relu(x)
            b = R.call_tir(Module.scale, (a,), out_ty=R.Tensor((1, 4, 8, 8), "float32"))
            c = R.tanh(b)
            R.output(c)
        return c
    """
    )


@case("call-tir", "none-offloaded", subgraphs=0)
def legalized_to_call_tir_only() -> tvm.IRModule:
    mod = flow(
        "x: X",
        """
        a = R.nn.conv2d(x, W, padding=(1, 1))
        b = R.nn.relu(a)
        c = R.sum(b, axis=[2, 3])
        R.output(c)
        return c
    """,
    )
    return relax.transform.LegalizeOps()(mod)


@case("call-tir", subgraphs=2)
def legalized_in_part() -> tvm.IRModule:
    """Some operators were lowered before the flow was asked: the rest still match."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", tensor((1, 4, 8, 8)))
    with builder.function("main", [x]):
        with builder.dataflow():
            a = builder.emit(relax.op.nn.conv2d(x, const((4, 4, 3, 3), 1), padding=1))
            b = builder.emit_te(tvm.topi.nn.relu, a)
            c = builder.emit_te(lambda t: tvm.topi.transpose(t, (0, 2, 3, 1)), b)
            d = builder.emit(relax.op.tanh(c))
            out = builder.emit_output(d)
        builder.emit_func_output(out)
    return builder.get()


@case("call-tir", "tuple", "multi-output", subgraphs=2)
def call_tir_with_two_results() -> tvm.IRModule:
    return module("""
    @T.prim_func(private=True, s_tir=True)
    def both(a: T.Buffer((8,), "float32"), b: T.Buffer((8,), "float32"),
             c: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.sblock("b"):
                vi = T.axis.spatial(8, i)
                b[vi] = a[vi] + T.float32(1.0)
        for i in range(8):
            with T.sblock("c"):
                vi = T.axis.spatial(8, i)
                c[vi] = a[vi] * a[vi]

    @R.function
    def main(x: R.Tensor((8,), "float32")):
        with R.dataflow():
            a = R.nn.relu(x)
            t = R.call_tir(Module.both, (a,), out_ty=[R.Tensor((8,), "float32"),
                           R.Tensor((8,), "float32")])
            p = t[0]
            q = t[1]
            b = R.add(p, q)
            R.output(b)
        return b
    """)


@case("packed", subgraphs=2)
def packed_function_called() -> tvm.IRModule:
    """``vm.builtin.copy`` is one of the runtime's own."""
    return module("""
        @R.function(pure=False)
        def main(x: X) -> X:
            with R.dataflow():
                a = R.nn.relu(x)
                R.output(a)
            b = R.call_packed("vm.builtin.copy", a, ty_args=R.Tensor((1, 4, 8, 8), "float32"))
            with R.dataflow():
                c = R.tanh(b)
                R.output(c)
            return c
    """)


@case("packed")
def pure_packed_function_in_the_block() -> tvm.IRModule:
    return module("""
        @R.function
        def main(x: X) -> X:
            with R.dataflow():
                a = R.nn.relu(x)
                b = R.call_pure_packed("vm.builtin.copy", a,
                    ty_args=R.Tensor((1, 4, 8, 8), "float32"))
                c = R.tanh(b)
                R.output(c)
            return c
    """)


@case("impure", subgraphs=2)
def assertion_between_blocks() -> tvm.IRModule:
    return module("""
        @R.function(pure=False)
        def main(x: X, c: R.Tensor((), "bool")) -> X:
            with R.dataflow():
                a = R.nn.relu(x)
                t = R.logical_or(c, R.const(True, "bool"))
                R.output(a, t)
            u = R.assert_op(t, format="never")
            with R.dataflow():
                b = R.tanh(a)
                R.output(b)
            return b
    """)
