from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest

from byocviz.errors import ModelError
from byocviz.models import from_torch, load

from .running import run

torch = pytest.importorskip("torch")


def export(module, *inputs, **options):
    with torch.no_grad():
        return torch.export.export(module.eval(), inputs, **options)


@pytest.fixture(scope="module")
def program():
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.ReLU(), torch.nn.Flatten()
    )
    return export(net, torch.randn(1, 3, 8, 8))


def test_an_exported_program_agrees_with_pytorch(program):
    mod = from_torch(program)
    assert len(mod["main"].params) == 1  # the weights are bound
    x = np.random.default_rng(1).standard_normal((1, 3, 8, 8)).astype("float32")
    expected = program.module()(torch.from_numpy(x)).detach().numpy()
    np.testing.assert_allclose(run(mod, x)[0], expected, rtol=1e-4, atol=1e-5)


def test_a_file_gives_the_same(program, tmp_path):
    import tvm

    path = tmp_path / "m.pt2"
    torch.export.save(program, path)
    tvm.ir.assert_structural_equal(from_torch(path), from_torch(program))
    tvm.ir.assert_structural_equal(load(path), load(program))


def test_a_symbolic_batch(program):
    import tvm

    batch = torch.export.Dim("batch", min=1, max=64)
    mod = from_torch(export(torch.nn.ReLU(), torch.randn(2, 3), dynamic_shapes=({0: batch},)))
    assert isinstance(mod["main"].params[0].ty.shape.values[0], tvm.tirx.Var)


@pytest.mark.parametrize("data", [b"", b"not a zip", b"PK\x03\x04" + b"\0" * 60])
def test_files_that_are_no_program(tmp_path, data):
    path = tmp_path / "m.pt2"
    path.write_bytes(data)
    with pytest.raises(ModelError):
        from_torch(path)


def test_a_cut_off_file(program, tmp_path):
    path = tmp_path / "m.pt2"
    torch.export.save(program, path)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(ModelError, match=r"cut off|cannot be read"):
        from_torch(path)


def test_another_archive(tmp_path):
    path = tmp_path / "m.pt2"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(ModelError, match="cannot be read as a PyTorch"):
        from_torch(path)


class Bomb:
    """A pickle that would write a file when it is read."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return open, (self.path, "w")


@pytest.mark.parametrize("name", ["sample_inputs/model.pt", "opaque_obj_0"])
def test_a_pickle_in_a_file_is_not_run(program, tmp_path, name):
    good, bad, touched = tmp_path / "good.pt2", tmp_path / "bad.pt2", tmp_path / "touched"
    torch.export.save(program, good)
    bomb = io.BytesIO()
    torch.save(Bomb(touched), bomb)
    with zipfile.ZipFile(good) as old, zipfile.ZipFile(bad, "w") as new:
        for item in old.namelist():
            data = bomb.getvalue() if item.endswith(name) else old.read(item)
            new.writestr(item, data)
        if name.startswith("opaque"):
            new.writestr(f"m/data/constants/{name}", bomb.getvalue())
    with pytest.raises(ModelError):
        from_torch(bad)
    assert not touched.exists()
    from_torch(good)


def test_what_is_no_program():
    with pytest.raises(ModelError, match="not int"):
        from_torch(3)
    with pytest.raises(ModelError, match="Export it first"):
        load(torch.nn.ReLU())


def test_an_operator_without_a_converter():
    class Net(torch.nn.Module):
        def forward(self, x):
            return torch.linalg.det(x)

    with pytest.raises(ModelError, match=r"(?s)could not import.*det"):
        from_torch(export(Net(), torch.randn(3, 3)))


def test_shapes_do_not_apply(program):
    with pytest.raises(ModelError, match="ONNX and TFLite"):
        load(program, shapes={"x": (1, 3, 8, 8)})
