from __future__ import annotations

import os
import warnings

import numpy as np
import onnx
import onnxruntime
import pytest
import tvm
from onnx import TensorProto
from tvm import relax
from tvm.relax.frontend import onnx as frontend

from byocviz.errors import ModelError
from byocviz.models import _names, _simplify, from_onnx
from byocviz.models._graph import all_nodes

from . import onnx_models as models
from .running import run


def calls(mod: tvm.IRModule) -> list[tuple[str, str]]:
    """(operator, node name or '') of each call of main."""
    found = []

    def visit(expr):
        if isinstance(expr, relax.Call) and isinstance(expr.op, tvm.ir.Op):
            found.append((expr.op.name, expr.span.source_name.name if expr.span else ""))

    relax.analysis.post_order_visit(mod["main"], visit)
    return found


def plain(model: onnx.ModelProto) -> tvm.IRModule:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return frontend.from_onnx(model)


def reference(model: onnx.ModelProto, *inputs: np.ndarray) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(model.SerializeToString())
    names = [i.name for i in session.get_inputs()]
    return session.run(None, dict(zip(names, inputs, strict=True)))


@pytest.fixture(autouse=True)
def no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("default", module="onnxruntime")
        yield


@pytest.mark.parametrize("name", models.FIXED)
def test_fixed_shapes_import_and_agree_with_onnx_runtime(name):
    make, shapes = models.FIXED[name]
    model = make()
    mod = from_onnx(model, shapes=shapes)
    assert "relax.shape_of" not in {op for op, _ in calls(mod)}
    assert all(isinstance(d, tvm.tirx.IntImm) for d in mod["main"].params[0].ty.shape.values)
    x = np.random.default_rng(1).standard_normal(shapes["x"]).astype("float32")
    for ours, theirs in zip(run(mod, x), reference(model, x), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_what_the_simplifier_mends():
    model = models.pad()
    _simplify.fix_shapes(model, {"x": (1, 3, 10, 12)})
    with pytest.raises(ValueError, match="ShapeExpr"):
        plain(model)
    from_onnx(model)


def test_the_given_model_is_not_changed():
    model = models.pad()
    before = model.SerializeToString()
    from_onnx(model, shapes={"x": (1, 3, 10, 12)})
    assert model.SerializeToString() == before


def test_nothing_is_fused():
    mod = from_onnx(models.conv_bn(), shapes={"x": (1, 3, 8, 8)})
    assert {"conv", "bn", "relu"} == {name for _, name in calls(mod)}
    assert "relax.nn.batch_norm" in {op for op, _ in calls(mod)}


@pytest.mark.parametrize("make", [models.flatten, models.expand, models.conv_bn])
def test_a_symbolic_batch_stays_symbolic_and_runs(make):
    model = make()
    mod = from_onnx(model)
    assert isinstance(mod["main"].params[0].ty.shape.values[0], tvm.tirx.Var)
    shape = [2, *(d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim[1:])]
    x = np.random.default_rng(1).standard_normal(shape).astype("float32")
    np.testing.assert_allclose(run(mod, x)[0], reference(model, x)[0], rtol=1e-4, atol=1e-5)


def test_a_symbol_that_is_broadcast_is_not_taken_for_the_size_it_meets():
    model = models.broadcast_shape()
    simple, note = _simplify.simplify(model)
    assert note == ""
    x = models.weights(1, 3)
    np.testing.assert_allclose(reference(simple, x)[0], reference(model, x)[0], rtol=1e-5)
    assert reference(simple, x)[0][0, 0] != reference(simple, x)[0][0, 1]


def test_dimensions_without_a_name_are_apart():
    model = models.model(
        [models.node("Relu", ["x"], ["y"])], [("x", [None, 3, None])], [("y", [None, 3, None])]
    )
    first, _, last = from_onnx(model)["main"].params[0].ty.shape.values
    assert not first.same_as(last)


def test_a_symbol_is_fixed_in_every_input_that_has_it():
    model = models.model(
        [models.node("Add", ["a", "b"], ["y"])],
        [("a", ["N", "M"]), ("b", ["N", "M"])],
        [("y", ["N", "M"])],
    )
    mod = from_onnx(model, shapes={"a": (2, None)})
    for param in mod["main"].params:
        n, m = param.ty.shape.values
        assert int(n) == 2
        assert isinstance(m, tvm.tirx.Var)


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        ({"z": (1, 3, 8, 8)}, ("'z'", "x")),
        ({"x": (1, 3, 8)}, ("4 dimensions", "(N, 3, 8, 8)")),
        ({"x": (1, 4, 8, 8)}, ("Dimension 1", "3 in the model, not 4")),
        ({"x": (0, 3, 8, 8)}, ("holds 0",)),
        ({"x": (1.5, 3, 8, 8)}, ("holds 1.5",)),
        ({"x": (True, 3, 8, 8)}, ("holds True",)),
    ],
)
def test_shapes_that_do_not_fit(shapes, words):
    with pytest.raises(ModelError) as error:
        from_onnx(models.conv_bn(), shapes=shapes)
    for word in words:
        assert word in str(error.value)


def test_one_symbol_two_sizes():
    model = models.model(
        [models.node("Add", ["a", "b"], ["y"])], [("a", ["N"]), ("b", ["N"])], [("y", ["N"])]
    )
    with pytest.raises(ModelError, match="'N' is given as 2 and as 3"):
        from_onnx(model, shapes={"a": (2,), "b": (3,)})


def test_unknown_rank_says_how_to_give_it():
    model = models.model([models.node("Relu", ["x"], ["y"])], [("x", None)], [("y", None)])
    with pytest.raises(ModelError, match=r"(?s)Input 'x' has no shape.*shapes="):
        from_onnx(model)
    mod = from_onnx(model, shapes={"x": ("N", 4)})
    assert int(mod["main"].params[0].ty.shape.values[1]) == 4


def test_a_scalar_input():
    model = models.model([models.node("Relu", ["x"], ["y"])], [("x", [])], [("y", [])])
    assert len(from_onnx(model)["main"].params[0].ty.shape.values) == 0


def test_dtypes_override_and_unknown_input():
    model = models.model([models.node("Relu", ["x"], ["y"])], [("x", [2])], [("y", [2])])
    assert str(from_onnx(model, dtypes={"x": "float16"})["main"].params[0].ty.dtype) == "float16"
    with pytest.raises(ModelError, match="no input 'z'"):
        from_onnx(model, dtypes={"z": "float16"})


def test_an_unused_input_stays():
    model = models.model(
        [models.node("Relu", ["x"], ["y"])], [("x", [2]), ("unused", [3])], [("y", [2])]
    )
    assert [p.name for p in from_onnx(model)["main"].params] == ["x", "unused"]


@pytest.mark.parametrize("name", [*models.FIXED, "true_if"])
def test_names_change_nothing_but_spans(name):
    model = models.true_if() if name == "true_if" else models.FIXED[name][0]()
    _simplify.fix_shapes(model, models.FIXED[name][1] if name in models.FIXED else None)
    ready, note = _simplify.simplify(model)
    assert note == ""
    mod, same = from_onnx(model), plain(ready)
    tvm.ir.assert_structural_equal(mod, same)
    assert mod.script(show_meta=False) == same.script(show_meta=False)
    relax.analysis.well_formed(mod)  # raises where it is not
    known = {_names.node_name(n) for n in all_nodes(ready.graph)}
    assert {found for _, found in calls(mod)} <= known


def test_each_call_has_the_name_of_its_node():
    found = calls(from_onnx(models.split()))
    assert "" not in {name for _, name in found}
    assert ("relax.split", "split") in found
    assert ("relax.sigmoid", "sb") in found  # without a name: that of its output
    assert ("relax.multiply", "mul") in found
    assert [op for op, name in found if name == "clip"]
    assert dict(found)["relax.isnan"] == "clip"


def test_names_in_branches():
    found = dict(calls(from_onnx(models.true_if())))
    assert found["relax.tanh"] == "in_Tanh"
    assert found["relax.sigmoid"] == "in_Sigmoid"
    assert found["relax.nn.relu"] == "before"
    assert found["relax.negative"] == "after"


def test_other_internals_of_tvm_cost_only_the_names(monkeypatch):
    model = models.conv_bn(1)
    named = from_onnx(model)
    monkeypatch.setattr(_names, "_Attach", None)
    bare = from_onnx(model)
    assert {name for _, name in calls(bare)} == {""}
    tvm.ir.assert_structural_equal(bare, named)
    monkeypatch.setattr("byocviz.models.onnx._importer", lambda dtypes: 1 / 0)
    tvm.ir.assert_structural_equal(from_onnx(model), named)
    with pytest.raises(ModelError, match="'x y z'"):
        from_onnx(unsupported())


def unsupported(domain: str = "") -> onnx.ModelProto:
    model = models.model(
        [
            models.node("Relu", ["x"], ["r"], name="first"),
            models.node("NoSuchOperator", ["r"], ["y"], name="x y z", domain=domain),
        ],
        [("x", ["N", 3])],
        [("y", ["N", 3])],
    )
    if domain:
        model.opset_import.append(onnx.helper.make_opsetid(domain, 1))
    return model


@pytest.mark.parametrize("domain", ["", "com.example"])
def test_an_operator_without_a_converter(domain):
    with pytest.raises(ModelError) as error:
        from_onnx(unsupported(domain))
    text = str(error.value)
    assert "node 1, 'x y z'" in text
    assert "NoSuchOperator" in text
    assert domain in text
    assert "'x' (N, 3)" in text
    assert "shapes=" in text


def test_an_operator_without_a_converter_in_a_branch():
    model = models.true_if()
    model.graph.node[1].attribute[0].g.node[0].op_type = "Hardmax2"
    with pytest.raises(ModelError) as error:
        from_onnx(model)
    assert "'in_Sigmoid'" in str(error.value)
    assert "Hardmax2" in str(error.value)


def test_a_node_that_fails_to_convert_is_named():
    with pytest.raises(ModelError) as error:
        from_onnx(models.resize(), shapes={"x": (None, 3, 4, 4)})
    text = str(error.value)
    for word in ("node 5, 'up'", "Resize", "(N, 3, 4, 4)"):
        assert word in text


def test_a_failing_simplifier_is_noted_and_passed_over(monkeypatch):
    import onnxslim

    def fail(*args, **kwargs):
        raise RuntimeError("no luck")

    monkeypatch.setattr(onnxslim, "slim", fail)
    with pytest.warns(UserWarning, match="without simplifying.*no luck"):
        mod = from_onnx(models.conv_bn(1))
    tvm.ir.assert_structural_equal(mod, plain(models.conv_bn(1)))


def test_a_simplifier_that_changes_the_model_is_not_believed(monkeypatch):
    import onnxslim

    def swap(model, **kwargs):
        model.graph.node[0].op_type = "Sigmoid"
        return model

    monkeypatch.setattr(onnxslim, "slim", swap)
    model = models.model([models.node("Relu", ["x"], ["y"])], [("x", [2])], [("y", [2])])
    with pytest.warns(UserWarning, match="operator Sigmoid"):
        mod = from_onnx(model)
    assert [op for op, _ in calls(mod)] == ["relax.nn.relu"]


def test_files(tmp_path):
    whole = models.conv_bn(1).SerializeToString()
    good = tmp_path / "good.onnx"
    good.write_bytes(whole)
    tvm.ir.assert_structural_equal(from_onnx(good), from_onnx(str(good)))
    for cut in (1, 10, len(whole) // 2, len(whole) - 1):
        (tmp_path / "cut.onnx").write_bytes(whole[:cut])
        with pytest.raises(ModelError, match="not an ONNX model"):
            from_onnx(tmp_path / "cut.onnx")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty"),
        (b"<html><body>404</body></html>", "not an ONNX model"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS pointer"),
        (bytes(range(256)), "not an ONNX model"),
        (b"\x08\x08", "not an ONNX model"),
    ],
)
def test_files_that_are_no_model(tmp_path, data, words):
    path = tmp_path / "m.onnx"
    path.write_bytes(data)
    with pytest.raises(ModelError, match=words):
        from_onnx(path)


def test_paths_that_are_no_file(tmp_path):
    for path, words in (("", "empty"), (tmp_path, "folder"), (tmp_path / "no.onnx", "no file")):
        with pytest.raises(ModelError, match=words):
            from_onnx(path)
    with pytest.raises(ModelError, match="cannot be read"):
        from_onnx("a\0b")


def test_a_file_beyond_protobufs_limit(tmp_path):
    path = tmp_path / "huge.onnx"
    with path.open("wb") as file:
        file.truncate((1 << 31) + 8)  # sparse: takes no room
        file.write(b"\x08\x08")
    with pytest.raises(ModelError, match=r"2\.1 GB"):
        from_onnx(path)


def test_external_data(tmp_path):
    path = tmp_path / "m.onnx"
    onnx.save_model(
        models.conv_bn(1),
        path,
        save_as_external_data=True,
        location="w.bin",
        size_threshold=0,
    )
    tvm.ir.assert_structural_equal(from_onnx(path), from_onnx(models.conv_bn(1)))
    without = onnx.load(path, load_external_data=False)
    with pytest.raises(ModelError, match="in another file and were not read"):
        from_onnx(without)
    os.remove(tmp_path / "w.bin")
    with pytest.raises(ModelError, match=r"w\.bin"):
        from_onnx(path)


def test_a_tensor_of_another_type_does_not_print(capsys):
    with pytest.raises(ModelError):
        from_onnx(models.resize(), shapes={"x": (None, 3, 4, 4)})
    assert capsys.readouterr().out == ""


def test_opset_is_the_models_own():
    # ReduceSum took its axes as an attribute up to opset 12, as an input from 13 on.
    model = models.model(
        [models.node("ReduceSum", ["x"], ["y"], axes=[1], keepdims=0)],
        [("x", [2, 3])],
        [("y", [2])],
    )
    model.opset_import[0].version = 11
    x = models.weights(2, 3)
    np.testing.assert_allclose(run(from_onnx(model), x)[0], x.sum(1), rtol=1e-5)


def test_initializers_that_are_listed_as_inputs_stay_weights():
    model = models.conv_bn(1)
    model.graph.input.append(
        onnx.helper.make_tensor_value_info("w", TensorProto.FLOAT, [8, 3, 3, 3])
    )
    assert [p.name for p in from_onnx(model)["main"].params] == ["x"]
