from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.relax.frontend import detach_params

from byocviz.errors import ModuleError
from byocviz.flow.relax.prepare import apply

W = np.arange(12, dtype="float32").reshape(4, 3)


def imported(lab: Any, **options: Any) -> Any:
    constants = {"w": W.T.copy(), "c": np.float32([1, 2, 3, 4])}
    nodes = [("MatMul", ["x", "w"], {}), ("Add", ["t0", "c"], {})]
    return lab.onnx(nodes, {"x": [2, 3]}, constants, keep_params_in_input=True, **options)


def handmade(entry: str = "main", private: bool = False, rows: Any = 4) -> Any:
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((2, 3), "float32"))
    w = relax.Var("weight", relax.TensorType((rows, 3), "float32"))
    with bb.function(entry, [x, w], private=private):
        with bb.dataflow():
            out = bb.emit_output(relax.op.matmul(x, relax.op.permute_dims(w)))
        bb.emit_func_output(out)
    return bb.get()


X = np.arange(6, dtype="float32").reshape(2, 3)


def test_weights_that_the_importer_left_in_an_attribute(lab: Any) -> None:
    mod = lab.tagged(imported(lab))
    names = [str(p.name) for p in mod["main"].params]
    after, ctx = apply(mod, "bind-parameters")
    assert ctx.count == len(names) - 1
    assert [str(p.name) for p in after["main"].params] == ["x"]
    assert "params" not in after["main"].attrs
    assert after["main"].attrs["num_input"] == 1
    lab.kept(mod, after)
    assert lab.marks(after) == lab.marks(mod)
    np.testing.assert_allclose(lab.run(after, X)[0], X @ W.T + [1, 2, 3, 4])
    assert apply(after, "bind-parameters")[0] is after


def test_what_is_given_goes_before_what_is_attached(lab: Any) -> None:
    mod = imported(lab)
    name = next(str(p.name) for p in mod["main"].params if len(p.ty.shape) == 1)
    after, ctx = apply(mod, "bind-parameters", {name: np.zeros(4, "float32")})
    assert ctx.count == 2
    np.testing.assert_allclose(lab.run(after, X)[0], X @ W.T)


def test_detached_lists(lab: Any) -> None:
    mod, lists = detach_params(imported(lab))
    for params in (lists, lists["main"]):
        after, _ = apply(mod, "bind-parameters", params)
        np.testing.assert_allclose(lab.run(after, X)[0], X @ W.T + [1, 2, 3, 4])


@pytest.mark.parametrize("make", [np.asarray, tvm.runtime.tensor])
def test_names(lab: Any, make: Any) -> None:
    mod = lab.tagged(handmade())
    values = np.asfortranarray(W)
    after, ctx = apply(mod, "bind-parameters", {"weight": make(values)})
    assert ctx.count == 1
    assert len(after["main"].params) == 1
    lab.kept(mod, after)
    np.testing.assert_allclose(lab.run(after, X)[0], X @ W.T)


@pytest.mark.parametrize("private", [True, False])
def test_another_entry(lab: Any, private: bool) -> None:
    mod = handmade("start", private)
    after, _ = apply(mod, "bind-parameters", {"weight": W}, entry="start")
    assert len(after["start"].params) == 1
    assert len(mod["start"].params) == 2
    np.testing.assert_allclose(lab.run(after, X, entry="start")[0], X @ W.T)


def test_entry_whose_symbol_is_another_name(lab: Any) -> None:
    mod = handmade("start")
    mod["start"] = mod["start"].with_attr("global_symbol", "exported")
    after, _ = apply(mod, "bind-parameters", {"weight": W}, entry="start")
    assert len(after["start"].params) == 1


def test_symbolic_parameter(lab: Any) -> None:
    mod = handmade(rows=tvm.tirx.Var("n", "int64"))
    after, _ = apply(mod, "bind-parameters", {"weight": W})
    np.testing.assert_allclose(lab.run(after, X)[0], X @ W.T)


def test_nothing_to_bind(lab: Any) -> None:
    mod = handmade()
    for params in (None, {}, []):
        assert apply(mod, "bind-parameters", params)[0] is mod
    assert apply(mod, "bind-parameters", {"weight": W}, entry="absent")[0] is mod


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"wieght": W}, ["no parameters named 'wieght'", "x, weight"]),
        ({"weight": W.astype("float64")}, ["float64[4, 3]", "Convert it to float32"]),
        ({"weight": W.T}, ["float32[3, 4]", "'weight'"]),
        ({"weight": W[0]}, ["float32[3]"]),
        ([W, W, W], ["3 parameters were given as a list", "x, weight"]),
    ],
)
def test_parameters_that_do_not_fit(params: Any, words: list[str]) -> None:
    with pytest.raises(ModuleError) as error:
        apply(handmade(), "bind-parameters", params)
    assert all(word in str(error.value) for word in words)


class Closed:
    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("closed")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "None was given"),
        ("abc", "'abc' (str) was given"),
        (1j, "1j (complex) was given"),
        (np.full((4, 3), None), "numpy.ndarray of dtype object was given"),
        (np.full((4, 3), "a"), "numpy.ndarray of dtype <U1 was given"),
        (np.zeros((4, 3), "datetime64[s]"), "dtype datetime64[s] was given"),
        (np.zeros((4, 3), "complex64"), "dtype complex64 was given"),
        ([[1.0], [2.0, 3.0]], "list was given"),
        (Closed(), "Closed was given"),
        ({"weight": W}, "dict was given"),
    ],
)
@pytest.mark.parametrize("as_list", [False, True])
def test_what_is_no_tensor_is_named(value: Any, said: str, as_list: bool) -> None:
    with pytest.raises(ModuleError) as error:
        apply(handmade(), "bind-parameters", [value] if as_list else {"weight": value})
    text = str(error.value)
    assert "parameter 'weight' has type" in text
    assert said in text
    assert "Give a NumPy array" in text


@pytest.mark.parametrize("params", ["abc", b"abc", 3, True, object(), W, iter([W])])
def test_what_holds_no_parameters(params: Any) -> None:
    with pytest.raises(ModuleError) as error:
        apply(handmade(), "bind-parameters", params)
    assert type(params).__name__ in str(error.value)
    assert "a mapping from parameter name to array" in str(error.value)


def test_a_list_of_numbers_under_a_name_is_a_tensor(lab: Any) -> None:
    mod = handmade()
    with pytest.raises(ModuleError, match="Convert it to float32"):
        apply(mod, "bind-parameters", {"weight": W.tolist()})
    with pytest.raises(ModuleError, match="no parameters named 'other'"):
        apply(mod, "bind-parameters", {"other": [W]})
    after, _ = apply(mod, "bind-parameters", {"weight": list(W)})
    np.testing.assert_allclose(lab.run(after, X)[0], X @ W.T)


def test_the_other_byte_order(lab: Any) -> None:
    swapped = W.astype(W.dtype.newbyteorder())
    after, _ = apply(handmade(), "bind-parameters", {"weight": swapped})
    np.testing.assert_allclose(lab.run(after, X)[0], X @ W.T)
