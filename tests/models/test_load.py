from __future__ import annotations

import subprocess
import sys

import pytest
import tvm

import byocviz.models
from byocviz.errors import ModelError
from byocviz.models import load

from . import onnx_models as models


def test_onnx_by_suffix_by_content_and_as_a_model(tmp_path):
    model = models.flatten()
    shapes = {"x": (2, 3, 8, 8)}
    first = load(model, shapes=shapes)
    for name in ("m.onnx", "m.ONNX", "m.bin", "m"):
        path = tmp_path / name
        path.write_bytes(model.SerializeToString())
        tvm.ir.assert_structural_equal(load(path, shapes=shapes), first)
        tvm.ir.assert_structural_equal(load(str(path), shapes=shapes), first)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("m.pt", "pickle"),
        ("m.pth", "weights only"),
        ("m.py", "not run"),
        ("m.so", "compiled"),
        ("m.h5", "tf2onnx"),
        ("m.xyz", "no kind that byocviz reads"),
    ],
)
def test_other_files_say_what_to_do(tmp_path, name, words):
    path = tmp_path / name
    path.write_bytes(b"anything at all")
    with pytest.raises(ModelError, match=words) as error:
        load(path)
    assert ".onnx" in str(error.value)


@pytest.mark.parametrize("thing", [None, 3, b"bytes", [], object()])
def test_what_is_no_model(thing):
    with pytest.raises(ModelError, match="A model cannot be made from"):
        load(thing)


def test_missing_files(tmp_path):
    for path in ("", tmp_path / "no.onnx", tmp_path):
        with pytest.raises(ModelError):
            load(path)


def test_the_package_is_light():
    code = (
        "import sys, byocviz.models as m\n"
        "m.ssd.path(); m.ssd.labels(); m.ssd.photos()\n"
        "print([n for n in ('tvm', 'onnx', 'torch', 'numpy', 'PIL') if n in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_public_names():
    for name in byocviz.models.__all__:
        assert getattr(byocviz.models, name) is not None
        assert name in dir(byocviz.models)
    with pytest.raises(AttributeError, match="nothing_here"):
        _ = byocviz.models.nothing_here
