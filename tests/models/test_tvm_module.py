from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tvm
from tvm import relax

from byocviz.errors import ModelError
from byocviz.models import from_tvm, load

from .running import run

DATA = Path(__file__).parent / "data"
VERSION = ".".join(tvm.__version__.split(".")[:2])
SAVED = DATA / f"conv_relu_tvm_{VERSION}.json"

pytestmark = pytest.mark.skipif(
    not SAVED.exists(), reason=f"no module saved by TVM {VERSION} in tests/models/data"
)


def test_a_saved_module_computes_what_it_did():
    mod = from_tvm(SAVED)
    x = np.random.default_rng(0).standard_normal((1, 3, 8, 8)).astype("float32")
    w = np.arange(4 * 3 * 3 * 3, dtype="float32").reshape(4, 3, 3, 3) / 64 - 0.5
    windows = np.lib.stride_tricks.sliding_window_view(
        np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), axis=(2, 3)
    )
    expected = np.maximum(np.einsum("nihwkl,oikl->nohw", windows, w), 0)
    np.testing.assert_allclose(run(mod, x)[0], expected, rtol=1e-4, atol=1e-4)


def test_load_takes_the_file_and_a_module_as_it_is():
    mod = load(SAVED)
    tvm.ir.assert_structural_equal(mod, from_tvm(str(SAVED)))
    assert load(mod) is mod


def test_what_this_tvm_saves_comes_back(tmp_path):
    path = tmp_path / "m.json"
    # In a process of its own: some pairs of apache-tvm and apache-tvm-ffi crash when they save.
    code = (
        "import sys, tvm\nfrom tvm import relax\nbb = relax.BlockBuilder()\n"
        "x = relax.Var('x', relax.TensorType((2, 3), 'float32'))\n"
        "with bb.function('main', [x]):\n"
        "    bb.emit_func_output(bb.emit(relax.op.add(x, relax.const(1.5, 'float32'))))\n"
        "open(sys.argv[1], 'w').write(tvm.ir.save_json(bb.get()))\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True)
    if done.returncode:
        pytest.skip("tvm.ir.save_json fails with the apache-tvm-ffi that is installed")
    x = np.ones((2, 3), "float32")
    np.testing.assert_array_equal(run(from_tvm(path), x)[0], x + 1.5)


@pytest.mark.parametrize("other", ["0.1.0", "99.0.0", "nonsense"])
def test_another_version_is_refused(tmp_path, other):
    # TVM 0.26 reads 0.27's text without a word and gives its tensors other shapes.
    graph = json.loads(SAVED.read_text())
    graph["metadata"]["tvm_version"] = other
    path = tmp_path / "m.json"
    path.write_text(json.dumps(graph))
    with pytest.raises(ModelError) as error:
        from_tvm(path)
    assert f"saved by TVM {other}" in str(error.value)
    assert tvm.__version__ in str(error.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("nothing", "not a module saved by TVM"),
        ("[" * 200_000, "not a module saved by TVM"),
        ("{}", "not of the form"),
        ("[1, 2]", "not of the form"),
        ('{"nodes": [], "root_index": 0}', "not of the form"),
        ('{"root": 1, "nodes": [], "attrs": {"tvm_version": "0.19.0"}}', "saved by TVM 0.19.0"),
        ('{"nodes": [1], "root_index": 0}', "does not say which TVM"),
        ('{"nodes": [1], "root_index": 0, "metadata": 3}', "does not say which TVM"),
    ],
)
def test_files_that_are_no_module(tmp_path, text, words):
    path = tmp_path / "m.json"
    path.write_text(text)
    with pytest.raises(ModelError, match=words):
        from_tvm(path)


def test_bytes_that_are_no_text(tmp_path):
    path = tmp_path / "m.json"
    path.write_bytes(b"\xff\xfe{}")
    with pytest.raises(ModelError, match="not a module saved by TVM"):
        from_tvm(path)


def test_a_cut_off_file(tmp_path):
    path = tmp_path / "m.json"
    path.write_text(SAVED.read_text()[:-40])
    with pytest.raises(ModelError, match="cut off"):
        from_tvm(path)


def change(path: Path, edit) -> Path:
    graph = json.loads(SAVED.read_text())
    edit(graph)
    path.write_text(json.dumps(graph))
    return path


def test_another_object_than_a_module(tmp_path):
    def root_at_a_variable(graph):
        types = [n["type"] for n in graph["nodes"]]
        graph["root_index"] = types.index("ffi.String")

    with pytest.raises(ModelError, match="not an IRModule"):
        from_tvm(change(tmp_path / "m.json", root_at_a_variable))


def test_unknown_nodes(tmp_path):
    def rename(graph):
        for item in graph["nodes"]:
            if item["type"].endswith("Call"):
                item["type"] = "relax.expr.NoSuchThing"

    with pytest.raises(ModelError, match="NoSuchThing"):
        from_tvm(change(tmp_path / "m.json", rename))


def test_a_file_that_makes_tvm_crash_is_an_error(tmp_path):
    def wrong_reference(graph):
        # A type where a number's type should be: TVM does not check and reads foreign memory.
        none = next(i for i, n in enumerate(graph["nodes"]) if n["type"] == "None")
        for item in graph["nodes"]:
            if item["type"] in ("relax.TensorType", "ir.IntImm"):
                item["data"] = {
                    key: none if isinstance(value, int) and key != "value" else value
                    for key, value in item["data"].items()
                }

    with pytest.raises(ModelError, match="cannot be read as a TVM module"):
        from_tvm(change(tmp_path / "m.json", wrong_reference))


def test_the_modules_are_plain_relax():
    relax.analysis.well_formed(from_tvm(SAVED))
