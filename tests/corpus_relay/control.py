"""Modules with branches, loops, functions, data types and references."""

from __future__ import annotations

from typing import Any

import tvm
from tvm import relay

from .case import array, case, const, conv, main, x


@case("if", subgraphs=2, operators=2)
def branches() -> Any:
    data = x()
    return relay.If(x("c", (), "bool"), conv(data), relay.nn.relu(data))


@case("if", "shared", operators=4)
def shared_by_branches() -> Any:
    """Both branches use one result: it is computed before the If."""
    made = conv(x())
    chosen = relay.If(x("c", (), "bool"), relay.nn.relu(made), relay.tanh(made))
    return relay.exp(chosen)


@case("if", "nested", operators=5)
def nested_ifs() -> Any:
    data, c, d = x(), x("c", (), "bool"), x("d", (), "bool")
    inner = relay.If(d, relay.nn.relu(data), relay.tanh(data))
    return relay.If(c, relay.add(inner, data), relay.round(conv(data)))


@case("if", "tuple", operators=4)
def branches_of_tuples() -> Any:
    data = x()
    chosen = relay.If(
        x("c", (), "bool"),
        relay.Tuple([relay.nn.relu(data), relay.round(data)]),
        relay.Tuple([relay.tanh(data), data]),
    )
    return relay.add(relay.TupleGetItem(chosen, 0), relay.TupleGetItem(chosen, 1))


@case("if", operators=3)
def computed_condition() -> Any:
    data, i = x(), x("i", (), "int32")
    return relay.If(relay.greater(i, relay.const(0, "int32")), relay.nn.relu(data), conv(data))


@case("if", "same", operators=1)
def same_in_both_branches() -> Any:
    made = relay.nn.relu(x())
    return relay.If(x("c", (), "bool"), made, made)


@case("let", operators=3, fails="partition")
def lets() -> Any:
    a, b = relay.var("a"), relay.var("b")
    return relay.Let(a, conv(x()), relay.Let(b, relay.nn.relu(a), relay.add(b, relay.const(1.0))))


@case("let", "dead", operators=2)
def unused_let() -> Any:
    return relay.Let(relay.var("a"), relay.round(x()), relay.nn.relu(x("y")))


@case("let", "tuple", operators=3, fails="partition")
def let_of_a_tuple() -> Any:
    data, pair = x(), relay.var("pair")
    return relay.Let(
        pair,
        relay.Tuple([relay.nn.relu(data), conv(data)]),
        relay.add(relay.TupleGetItem(pair, 0), relay.TupleGetItem(pair, 1)),
    )


@case("closure", operators=2)
def closure() -> Any:
    f, data = relay.var("f"), x()
    y = x("y")
    function = relay.Function([y], relay.nn.relu(y))
    return relay.Let(f, function, relay.round(relay.Call(f, [data])))


@case("closure", "captured", operators=3)
def captured() -> Any:
    """The local function uses a value of the one round it."""
    f, data = relay.var("f"), x()
    outside, y = conv(data), x("y")
    function = relay.Function([y], relay.add(y, outside))
    return relay.Let(f, function, relay.nn.relu(relay.Call(f, [data])))


@case("closure", "twice", operators=2)
def called_twice() -> Any:
    f, data, y = relay.var("f"), x(), x("y")
    function = relay.Function([y], relay.nn.relu(y))
    return relay.Let(f, function, relay.add(relay.Call(f, [data]), relay.Call(f, [x("z")])))


@case("closure", operators=2)
def called_where_written() -> Any:
    y = x("y")
    return relay.Call(relay.Function([y], relay.nn.relu(conv(y))), [x()])


@case("loop", "recursion", operators=3)
def counting_loop() -> Any:
    loop, i, value = relay.var("loop"), x("i", (), "int32"), x("value")
    body = relay.If(
        relay.less(i, relay.const(4, "int32")),
        relay.Call(loop, [i + relay.const(1, "int32"), relay.nn.relu(value)]),
        value,
    )
    function = relay.Function([i, value], body, relay.TensorType((1, 4, 8, 8)))
    start = relay.Call(loop, [relay.const(0, "int32"), x()])
    return relay.Let(loop, function, start)


@case("loop", "recursion", "tuple", operators=3)
def loop_of_tuples() -> Any:
    loop, i, value = relay.var("loop"), x("i", (), "int32"), x("value")
    kind = relay.TupleType([relay.TensorType((), "int32"), relay.TensorType((1, 4, 8, 8))])
    body = relay.If(
        relay.less(i, relay.const(2, "int32")),
        relay.Call(loop, [i + relay.const(1, "int32"), conv(value)]),
        relay.Tuple([i, value]),
    )
    function = relay.Function([i, value], body, kind)
    return relay.Let(loop, function, relay.Call(loop, [relay.const(0, "int32"), x()]))


@case("functions", operators=3)
def two_functions() -> tvm.IRModule:
    mod, y = tvm.IRModule(), x("y")
    helper = relay.GlobalVar("helper")
    mod[helper] = relay.Function([y], relay.nn.relu(conv(y)), relay.TensorType((1, 4, 8, 8)))
    data = x()
    mod["main"] = relay.Function([data], relay.round(relay.Call(helper, [data])))
    return mod


@case("functions", "unused", operators=2)
def unused_function() -> tvm.IRModule:
    mod = main(relay.nn.relu(x()))
    y = x("y")
    mod["spare"] = relay.Function([y], relay.tanh(y))
    return mod


@case("functions", "recursion", operators=3)
def global_recursion() -> tvm.IRModule:
    mod = tvm.IRModule()
    loop, i, value = relay.GlobalVar("loop"), x("i", (), "int32"), x("value")
    body = relay.If(
        relay.less(i, relay.const(2, "int32")),
        relay.Call(loop, [i + relay.const(1, "int32"), conv(value)]),
        value,
    )
    mod[loop] = relay.Function([i, value], body, relay.TensorType((1, 4, 8, 8)))
    data = x()
    mod["main"] = relay.Function([data], relay.Call(loop, [relay.const(0, "int32"), data]))
    return mod


@case("adt", "match", fails="partition")
def matched() -> tvm.IRModule:
    """A data type's value taken apart again."""
    mod = tvm.IRModule()
    mod.import_from_std("prelude.rly")
    _, cons, nil = mod.get_type("List")
    head, data = relay.var("head"), x()
    clauses = [
        relay.Clause(
            relay.PatternConstructor(cons, [relay.PatternVar(head), relay.PatternWildcard()]),
            relay.nn.relu(head),
        ),
        relay.Clause(relay.PatternConstructor(nil, []), data),
    ]
    made = cons(conv(data), nil())
    mod["main"] = relay.Function([data], relay.Match(made, clauses))
    return mod


@case("reference", "no-vm", operators=2, fails="merge")
def reference() -> Any:
    """A value is written to a reference and read back."""
    ref, ignored = relay.var("ref"), relay.var("ignored")
    data = x()
    return relay.Let(
        ref,
        relay.RefCreate(data),
        relay.Let(
            ignored,
            relay.RefWrite(ref, relay.nn.relu(data)),
            relay.tanh(relay.RefRead(ref)),
        ),
    )


@case("given", "composite", operators=2)
def composite_given() -> Any:
    """A composite function that came with the module."""
    y, w = x("y"), relay.var("w", shape=(4, 4, 3, 3))
    body = relay.nn.conv2d(y, w, channels=4, kernel_size=(3, 3), padding=(1, 1))
    function = relay.Function([y, w], relay.nn.relu(body))
    function = function.with_attr("Composite", "tensorrt.mine")
    function = function.with_attr("PartitionedFromPattern", "nn.conv2d_nn.relu_")
    return relay.Call(function, [x(), relay.const(array((4, 4, 3, 3), 1))])


@case("given", "external", operators=3)
def subgraph_given() -> tvm.IRModule:
    """A subgraph of another backend that came with the module."""
    mod, y = tvm.IRModule(), x("y")
    outer = relay.GlobalVar("other_main_0")
    function = relay.Function([y], relay.nn.relu(relay.tanh(y)), relay.TensorType((1, 4, 8, 8)))
    for key, value in (("Compiler", "other"), ("Primitive", 1), ("Inline", 1)):
        function = function.with_attr(key, tvm.tir.IntImm("int32", 1) if value == 1 else value)
    mod[outer] = function.with_attr("global_symbol", "other_main_0")
    data = x()
    mod["main"] = relay.Function([data], relay.exp(relay.Call(outer, [data])))
    return mod


@case("deep", operators=400)
def deep() -> Any:
    """A chain as long as a large network's: nothing that reads it may recurse."""
    value: Any = x(shape=(1, 4))
    for index in range(400):
        value = relay.nn.relu(value) if index % 20 else relay.round(value)
    return value


@case("if", "const", operators=2)
def constant_results() -> Any:
    made = relay.nn.relu(x(shape=(2, 3)))
    return relay.If(x("c", (), "bool"), made, relay.tanh(const((2, 3), 1)))
