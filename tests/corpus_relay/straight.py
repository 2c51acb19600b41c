"""Modules without branches or functions of their own."""

from __future__ import annotations

from typing import Any

import tvm
from tvm import relay

from .case import array, case, const, conv, x


@case(subgraphs=1, operators=1)
def one_conv() -> Any:
    return conv(x())


@case(subgraphs=1, operators=3)
def conv_bias_relu() -> Any:
    return relay.nn.relu(relay.nn.bias_add(conv(x()), const((4,), 2)))


@case("none-offloaded", subgraphs=0, operators=2)
def none_offloaded() -> Any:
    return relay.round(relay.sign(x()))


@case("no-operators", subgraphs=0, operators=0)
def identity() -> Any:
    return x()


@case("no-operators", "tuple", subgraphs=0, operators=0)
def swapped() -> Any:
    return relay.Tuple([x("b"), x("a")])


@case("no-operators", subgraphs=0, operators=0)
def only_a_constant() -> Any:
    return const((2, 3), 1)


@case(subgraphs=2, operators=3)
def cut_in_two() -> Any:
    """What TensorRT does not have stands between two convolutions."""
    return conv(relay.round(conv(x())), 2)


@case("residual", subgraphs=1, operators=4)
def residual() -> Any:
    data = x()
    return relay.nn.relu(relay.add(conv(relay.nn.relu(data)), data))


@case("cycle", subgraphs=2, operators=4)
def cycle() -> Any:
    """The second region reads the first at once and through TVM: one of both would be a cycle."""
    first = conv(x())
    return relay.nn.relu(relay.add(first, relay.round(first)))


@case("diamond", subgraphs=1, operators=4)
def diamond() -> Any:
    top = conv(x())
    return relay.add(relay.nn.relu(top), relay.tanh(top))


@case("diamond", operators=5)
def diamond_half_on_tvm() -> Any:
    top = relay.round(x())
    return relay.add(conv(top), relay.multiply(relay.sign(top), relay.const(2.0)))


@case("two-outputs", subgraphs=1, operators=3)
def several_outputs() -> Any:
    """A region that gives two tensors becomes a function that returns a tuple."""
    made = conv(x())
    return relay.Tuple([relay.nn.relu(made), relay.tanh(made)])


@case("two-outputs", operators=6)
def outputs_to_tvm() -> Any:
    made = conv(x())
    one, other = relay.nn.relu(made), relay.tanh(made)
    return relay.subtract(relay.round(one), relay.sign(other))


@case("tuple", subgraphs=1, operators=3)
def concatenated() -> Any:
    data = x()
    return relay.concatenate([relay.nn.relu(data), relay.tanh(data)], axis=1)


@case("tuple", operators=4)
def split_and_joined() -> Any:
    parts = relay.split(x(), 2, axis=1)
    return relay.concatenate([relay.nn.relu(parts[1]), relay.tanh(parts[0])], axis=1)


@case("tuple", "whole-tuple", operators=2)
def tuple_passed_whole() -> Any:
    """The operator's tuple goes to the next as it is."""
    return relay.concatenate(relay.split(x(), 2, axis=1).astuple(), axis=2)


@case("tuple", operators=1)
def tuple_returned_whole() -> Any:
    return relay.split(x(), 4, axis=1).astuple()


@case("tuple", "nested", operators=3)
def nested_tuples() -> Any:
    data = x()
    inner = relay.Tuple([relay.nn.relu(data), relay.round(data)])
    return relay.Tuple([inner, relay.TupleGetItem(inner, 1), relay.tanh(data)])


@case("tuple", "tuple-parameter", operators=1)
def tuple_parameter() -> Any:
    kind = relay.TupleType([relay.TensorType((2, 3)), relay.TensorType((2, 3))])
    pair = relay.var("pair", type_annotation=kind)
    return relay.add(relay.TupleGetItem(pair, 0), relay.TupleGetItem(pair, 1))


@case("batch-norm", subgraphs=1, operators=2)
def batch_norm() -> Any:
    gamma, beta, mean = (const((4,), seed) for seed in (1, 2, 3))
    variance = relay.const(abs(array((4,), 4)) + 0.5)
    return relay.nn.batch_norm(conv(x()), gamma, beta, mean, variance)[0]


@case("batch-norm", "other-form", operators=2)
def batch_norm_unbound() -> Any:
    """Its statistics are parameters, and the rule wants constants."""
    norms = [relay.var(name, shape=(4,)) for name in ("gamma", "beta", "mean", "variance")]
    return relay.nn.batch_norm(conv(x()), *norms)[0]


def _weights() -> dict[str, Any]:
    return {"w": array((4, 4, 3, 3), 1)}


@case("params", params=_weights, operators=2)
def bound_weights() -> Any:
    weight = relay.var("w", shape=(4, 4, 3, 3))
    made = relay.nn.conv2d(x(), weight, channels=4, kernel_size=(3, 3), padding=(1, 1))
    return relay.nn.relu(made)


@case("other-form", subgraphs=1, operators=2)
def weights_as_parameters() -> Any:
    weight = relay.var("w", shape=(4, 4, 3, 3))
    made = relay.nn.conv2d(x(), weight, channels=4, kernel_size=(3, 3), padding=(1, 1))
    return relay.nn.relu(made)


@case("layout", operators=2)
def nhwc() -> Any:
    data = x(shape=(1, 8, 8, 4))
    made = relay.nn.conv2d(
        data,
        const((3, 3, 4, 4), 1),
        channels=4,
        kernel_size=(3, 3),
        padding=(1, 1),
        data_layout="NHWC",
        kernel_layout="HWIO",
    )
    return relay.nn.relu(made)


@case("layout", operators=6)
def nhwc_network() -> Any:
    data = x(shape=(1, 8, 8, 4))
    layout: dict[str, Any] = {"data_layout": "NHWC", "kernel_layout": "HWIO", "padding": (1, 1)}
    size: dict[str, Any] = {"channels": 4, "kernel_size": (3, 3)}
    one = relay.nn.conv2d(data, const((3, 3, 4, 4), 1), **layout, **size)
    one = relay.nn.relu(relay.nn.bias_add(one, const((4,), 2), axis=3))
    two = relay.nn.conv2d(one, const((3, 3, 4, 4), 3), **layout, **size)
    return relay.nn.max_pool2d(relay.add(one, two), pool_size=(2, 2), strides=(2, 2), layout="NHWC")


@case("dropout", operators=3)
def dropout() -> Any:
    return relay.nn.relu(relay.nn.dropout(conv(x())))


@case("fold", operators=4)
def constants_to_fold() -> Any:
    scale = relay.add(relay.const(1.0), relay.multiply(relay.const(2.0), relay.const(3.0)))
    return relay.multiply(x(), scale) + relay.const(0.5)


@case("fold", operators=3)
def weights_to_fold() -> Any:
    """The kernel is computed from constants, so only folding shows the rule a constant."""
    weight = relay.multiply(const((4, 4, 3, 3), 1), relay.const(0.5))
    made = relay.nn.conv2d(x(), weight, channels=4, kernel_size=(3, 3), padding=(1, 1))
    return relay.nn.relu(made)


@case("shared", operators=4)
def shared_constant() -> Any:
    bias = const((1, 4, 1, 1), 1)
    return relay.add(relay.nn.relu(relay.add(x(), bias)), relay.round(bias))


@case("equal", subgraphs=2, operators=5)
def equal_subgraphs() -> Any:
    weight = const((4, 4, 3, 3), 1)

    def block(value: Any) -> Any:
        made = relay.nn.conv2d(value, weight, channels=4, kernel_size=(3, 3), padding=(1, 1))
        return relay.nn.relu(made)

    return block(relay.round(block(x())))


@case("equal", operators=4)
def equal_calls() -> Any:
    """Four calls alike: nothing but their place tells them apart."""
    data = x()
    return relay.Tuple([relay.round(data), relay.round(data), relay.tanh(data), relay.tanh(data)])


@case("twice", operators=2)
def argument_twice() -> Any:
    made = relay.nn.relu(x())
    return relay.multiply(made, made)


@case("dense", subgraphs=1, operators=3)
def dense() -> Any:
    made = relay.nn.dense(x(shape=(2, 8)), const((4, 8), 1))
    return relay.nn.softmax(relay.nn.bias_add(made, const((4,), 2)))


@case("dense", operators=1)
def batch_matmul() -> Any:
    return relay.nn.batch_matmul(x("a", (2, 3, 4)), x("b", (2, 5, 4)))


@case("conv", operators=1)
def conv1d() -> Any:
    return relay.nn.conv1d(
        x(shape=(1, 4, 9)), const((6, 4, 3), 1), channels=6, kernel_size=3, padding=(1, 1)
    )


@case("conv", operators=1)
def conv3d() -> Any:
    return relay.nn.conv3d(
        x(shape=(1, 2, 4, 4, 4)), const((3, 2, 3, 3, 3), 1), channels=3, kernel_size=(3, 3, 3)
    )


@case("conv", operators=2)
def conv_transpose() -> Any:
    made = relay.nn.conv2d_transpose(
        x(), const((4, 2, 2, 2), 1), channels=2, kernel_size=(2, 2), strides=(2, 2)
    )
    return relay.nn.relu(made)


@case("conv", operators=1)
def depthwise() -> Any:
    return relay.nn.conv2d(
        x(), const((4, 1, 3, 3), 1), channels=4, kernel_size=(3, 3), groups=4, padding=(1, 1)
    )


@case("pool", operators=3)
def pools() -> Any:
    made = relay.nn.max_pool2d(x(), pool_size=(2, 2), strides=(2, 2))
    made = relay.nn.avg_pool2d(made, pool_size=(2, 2), strides=(2, 2))
    return relay.nn.global_avg_pool2d(made)


@case("check", operators=3)
def refused_by_checks() -> Any:
    """The check minds a reshape that changes the batch, and a softmax over it."""
    made = relay.reshape(x(), (2, 128))
    return relay.nn.softmax(relay.transpose(made, (1, 0)), axis=0)


@case("check", operators=2)
def integers() -> Any:
    data = x(dtype="int32")
    return relay.maximum(relay.add(data, relay.const(1, "int32")), data)


@case("other-form", operators=1)
def squeezed() -> Any:
    """TVM's rule for squeeze names two arguments, and it has one: it never matches."""
    return relay.squeeze(x(shape=(1, 4, 1, 8)), axis=[2])


@case("dynamic", operators=3)
def dynamic_batch() -> Any:
    data = relay.var("x", shape=(relay.Any(), 4, 8, 8))
    return relay.nn.relu(relay.round(relay.nn.relu(data)))


@case("image", operators=2)
def normalized() -> Any:
    return relay.nn.lrn(conv(x()), size=3)


@case("detection", operators=2)
def sorted_top() -> Any:
    made = relay.nn.relu(x(shape=(1, 16)))
    return relay.topk(made, k=3, axis=1, ret_type="both").astuple()


@case(backend="dnnl", operators=3)
def dnnl_patterns() -> Any:
    return relay.nn.relu(relay.nn.bias_add(conv(x()), const((4,), 2)))


@case(backend="dnnl", operators=4)
def dnnl_operators() -> Any:
    """dnnl takes single operators by their attribute target.dnnl."""
    data = x()
    return relay.round(relay.add(relay.exp(data), relay.nn.relu(data)))


@case("branches", operators=11)
def inception() -> Any:
    data = x()
    one = relay.nn.relu(conv(data, 1, size=1))
    two = relay.nn.relu(conv(relay.nn.relu(conv(data, 2, size=1)), 3))
    three = conv(relay.nn.max_pool2d(data, (3, 3), strides=(1, 1), padding=(1, 1)), 4, size=1)
    made = relay.concatenate([one, two, three], axis=1)
    return relay.nn.global_avg_pool2d(relay.round(made))


@case("other-entry", entry="forward", operators=2, fails="composite")
def another_entry() -> Any:
    data = x()
    function = relay.Function([data], relay.nn.relu(conv(data)))
    return tvm.IRModule({relay.GlobalVar("forward"): function})
