"""Modules that come with composite or external functions of their own, and other odd ones."""

from __future__ import annotations

from typing import Any

import pytest
import tvm
from tvm import relax

import byocviz
from byocviz.errors import ArgumentError, ModuleError
from tests.corpus.case import const, module

from . import properties


def record(mod: Any, **how: Any) -> byocviz.Recording:
    recording = byocviz.record(mod, "tensorrt", progress=False, **how)
    properties.check_all(recording)
    assert byocviz.recording.from_bytes(byocviz.recording.to_bytes(recording)) == recording
    return recording


def verified(mod: Any, **how: Any) -> byocviz.Recording:
    recording = record(mod, verify=True, **how)
    assert recording.failed is None
    assert not [s.verify_error for s in recording.steps if s.verify_error]
    assert all(s.max_difference == 0 for s in recording.steps)
    return recording


EXTERNAL = """
    @R.function
    def ext(x: X) -> X:
        R.func_attr({"Codegen": "CODEGEN"})
        with R.dataflow():
            a = R.nn.relu(x)
            R.output(a)
        return a
"""


@pytest.mark.parametrize("prepare", [False, True])
def test_a_given_subgraph_outside_of_a_dataflow_block_is_put_back(prepare: bool) -> None:
    mod = module(
        EXTERNAL.replace("CODEGEN", "tensorrt")
        + """
    @R.function
    def main(x: X) -> X:
        a = Module.ext(x)
        b = R.tanh(a)
        return b
    """
    )
    recording = verified(mod, prepare=prepare)
    assert recording.last.profile.total == 2
    assert not recording.last.subgraphs
    assert [f.name for f in recording.last.functions] == ["main"]


def test_another_backends_subgraph_is_not_pruned() -> None:
    mod = module(
        EXTERNAL.replace("CODEGEN", "other")
        + """
    @R.function
    def main(x: X) -> X:
        with R.dataflow():
            a = Module.ext(x)
            b = R.nn.conv2d(a, W, padding=(1, 1))
            R.output(b)
        return b
    """,
        W=const((4, 4, 3, 3)),
    )
    assert {s.backend for s in record(mod).last.subgraphs} == {"other", "tensorrt"}


def test_a_given_subgraph_with_a_branch_stays() -> None:
    mod = module(
        """
    @R.function
    def ext(x: X, c: R.Tensor((), "bool")) -> X:
        R.func_attr({"Codegen": "tensorrt"})
        if c:
            a = R.nn.relu(x)
            b = R.tanh(a)
        else:
            b = R.exp(x)
        return b
    @R.function
    def main(x: X, c: R.Tensor((), "bool")) -> X:
        with R.dataflow():
            a = Module.ext(x, c)
            b = Module.ext(a, c)
            d = R.nn.conv2d(b, W, padding=(1, 1))
            R.output(d)
        return d
    """,
        W=const((4, 4, 3, 3)),
    )
    assert len(verified(mod).last.subgraphs) == 3


@pytest.mark.parametrize("prune", [False, True])
@pytest.mark.parametrize("prepare", [False, True])
def test_given_subgraphs_that_call_each_other(prepare: bool, prune: bool) -> None:
    parts = [EXTERNAL.replace("CODEGEN", "tensorrt").replace("ext", "e0")]
    parts += [
        EXTERNAL.replace("CODEGEN", "tensorrt")
        .replace("ext", f"e{i}")
        .replace("R.nn.relu(x)", f"Module.e{i - 1}(x)")
        .replace("R.output(a)", f"b = Module.e{i - 1}(a)\n            R.output(b)")
        .replace("return a", "return b")
        for i in (1, 2)
    ]
    main = """
    @R.function
    def main(x: X) -> X:
        with R.dataflow():
            a = Module.e2(x)
            R.output(a)
        return a
    """
    recording = record(module("".join(parts) + main), prepare=prepare, prune=prune)
    assert recording.failed is None
    assert recording.step("import").profile.ops == {"relax.nn.relu": 4}
    assert recording.step("import").profile.subgraphs == 1


def test_functions_that_unfold_without_end_are_refused() -> None:
    source = """
    @R.function(private=True)
    def c0(x: X) -> X:
        R.func_attr({"Composite": "tensorrt.a"})
        with R.dataflow():
            a = R.nn.relu(x)
            R.output(a)
        return a
    """ + "".join(
        f"""
    @R.function(private=True)
    def c{i}(x: X) -> X:
        R.func_attr({{"Composite": "tensorrt.a"}})
        with R.dataflow():
            a = Module.c{i - 1}(x)
            b = Module.c{i - 1}(a)
            R.output(b)
        return b
    """
        for i in range(1, 25)
    )
    main = """
    @R.function
    def main(x: X) -> X:
        a = Module.c24(x)
        return a
    """
    with pytest.raises(ModuleError, match="unfold"):
        byocviz.record(module(source + main), progress=False)


def test_a_tuple_that_crosses_the_boundary_counts_by_its_tensors() -> None:
    mod = module(
        """
    @R.function
    def main(x: X, y: X) -> X:
        with R.dataflow():
            b = R.nn.leakyrelu(x)
            t = (b, y, C)
            c = R.concat(t, axis=0)
            d = R.add(b, y)
            e = R.strided_slice(c, axes=[0], begin=[0], end=[1])
            f = R.add(e, d)
            R.output(f)
        return f
    """,
        C=const((1, 4, 8, 8)),
    )
    recording = record(mod, prune=False)
    size = 4 * 8 * 8 * 4
    (subgraph,) = recording.last.subgraphs
    assert subgraph.bytes_in == 2 * size
    assert len(subgraph.inputs) == 2
    assert subgraph.param_bytes == recording.last.profile.param_bytes == size


def test_a_dtype_as_an_argument_is_no_weight() -> None:
    mod = module("""
    @R.function
    def main(x: R.Tensor((8,), "float32")):
        a = R.call_pure_packed("f", x, R.dtype("float32"), ty_args=(R.Tensor((8,), "float32"),))
        return a
    """)
    assert record(mod).weights.tensors == 0


def test_nested_calls() -> None:
    kind = relax.TensorType((4, 4), "float32")
    x = relax.Var("x", kind)
    nested = relax.op.nn.relu(relax.op.add(relax.op.exp(x), relax.op.matmul(x, x)))
    function = relax.Function([x], nested, ret_ty=kind).with_attr("global_symbol", "main")
    for prepare in (False, True):
        recording = record(tvm.IRModule({"main": function}), prepare=prepare)
        assert recording.failed is None
        assert recording.step("import").profile.total == 4


@pytest.mark.parametrize("name", ["back\\slash", "\\1", "g\\g<0>", "a.b", 'quo"te', "a b"])
def test_odd_names(name: str) -> None:
    kind = relax.TensorType((4,), "float32")

    def function(symbol: str) -> relax.Function:
        x = relax.Var("x", kind)
        body = relax.op.nn.relu(x)
        return relax.Function([x], body, ret_ty=kind).with_attr("global_symbol", symbol)

    mod = tvm.IRModule({"main": function("main"), name: function(name)})
    recording = record(mod, prune=False)
    assert recording.failed is None
    views = {f.name: f for f in recording.step("import").functions}
    assert set(views) == {"main", name}


@pytest.mark.parametrize(
    "how",
    [
        {"rules": 3},
        {"rules": {"nn.relu": "no"}},
        {"rules": [3]},
        {"prune": 3},
        {"prune": {"min_ops": 3}},
        {"prune": byocviz.PrunePolicy(min_ops=2.5)},  # type: ignore[arg-type]
        {"prune": byocviz.PrunePolicy(min_ops=-1)},
        {"prune": byocviz.PrunePolicy(min_macs=10**30)},
        {"prepare": ["clip"]},
        {"prepare": {"clip": None}},
        {"title": 3},
    ],
    ids=repr,
)
def test_arguments_that_would_mean_something_else(how: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError):
        byocviz.record(module(EXTERNAL.replace("CODEGEN", "x")), entry="ext", **how)
