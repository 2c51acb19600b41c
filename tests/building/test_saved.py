"""A build in a folder runs in a fresh process, and what was changed is not run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tvm")
pytest.importorskip("onnxruntime")

import byocviz
from byocviz.building.errors import BuildError
from byocviz.errors import StepMissing
from byocviz.flow.relax.verify import run_module, seeded_inputs
from tests.corpus import by_name

CASE = by_name("chain_cut_once")


@pytest.fixture(scope="module")
def build() -> byocviz.Build:
    recording = byocviz.record(CASE.build(), CASE.backend, prune=False, progress=False)
    return byocviz.build(recording, cache=False, isolate=False, progress=False)


@pytest.fixture(scope="module")
def original(build: byocviz.Build, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build.save(tmp_path_factory.mktemp("saved") / "build")


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "copy"))


def test_it_runs_in_a_fresh_process(folder: Path, tmp_path: Path) -> None:
    inputs = seeded_inputs(CASE.build(), "main", seed=5)
    np.savez(tmp_path / "inputs.npz", **inputs)
    script = (
        "import sys, numpy, byocviz\n"
        "build = byocviz.load_build(sys.argv[1], progress=False)\n"
        "given = dict(numpy.load(sys.argv[2]))\n"
        "numpy.savez(sys.argv[3], *build.run(given))\n"
    )
    arguments = [str(folder), str(tmp_path / "inputs.npz"), str(tmp_path / "out.npz")]
    subprocess.run([sys.executable, "-c", script, *arguments], check=True, cwd=tmp_path)
    wanted = run_module(CASE.build(), "main", inputs)
    with np.load(tmp_path / "out.npz") as found:
        for one, other in zip(found.values(), wanted, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-4)


def test_what_needs_the_module_itself_says_that_it_is_not_there(folder: Path) -> None:
    loaded = byocviz.load_build(folder, progress=False)
    with pytest.raises(StepMissing, match="a file holds no modules"):
        loaded.check()
    variants = {v.kind: v for v in loaded.latency(repeat=1, warmup=0).variants}
    assert variants["tvm"].cannot
    assert variants["runtime"].cannot
    assert variants["byoc"].median
    assert variants["part"].median


def manifest(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "manifest.json").read_bytes())
    return found


def rewrite(folder: Path, **change: Any) -> None:
    (folder / "manifest.json").write_text(json.dumps({**manifest(folder), **change}))


def test_every_file_is_guarded(folder: Path) -> None:
    for name in manifest(folder)["files"]:
        path = folder / name
        whole = path.read_bytes()
        for damaged in (whole[:-1], whole + b"x", whole[:-1] + bytes([whole[-1] ^ 1])):
            path.write_bytes(damaged)
            with pytest.raises(BuildError, match=r"is not the file that the manifest describes"):
                byocviz.load_build(folder, progress=False)
        path.unlink()
        with pytest.raises(BuildError, match="is missing"):
            byocviz.load_build(folder, progress=False)
        path.write_bytes(whole)
    byocviz.load_build(folder, progress=False)


def test_links_are_not_followed(folder: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.so"
    shutil.move(folder / "module.so", outside)
    (folder / "module.so").symlink_to(outside)
    with pytest.raises(BuildError, match=r"module\.so is missing"):
        byocviz.load_build(folder, progress=False)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": 99}, "newer byocviz"),
        ({"format": "x"}, "cannot be read"),
        ({"engines": []}, "do not agree"),
        ({"files": {}}, "do not agree"),
        ({"files": {"../../etc/passwd": {"bytes": 1, "sha256": ""}}}, "do not agree"),
        ({"surprise": 1}, "cannot be read"),
        ({"target": "no such target"}, "no target"),
        ({"runtime": "no such runtime"}, "no runtime"),
        ({"target": "{"}, "no target"),
        ({"step": "nowhere"}, "No step"),
    ],
)
def test_a_manifest_that_was_changed(folder: Path, change: dict[str, Any], said: str) -> None:
    rewrite(folder, **change)
    with pytest.raises(byocviz.ByocvizError, match=said):
        byocviz.load_build(folder, progress=False)


def test_a_folder_that_is_no_build(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(BuildError, match="holds no build"):
            byocviz.load_build(path, progress=False)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(BuildError, match="cannot be read"):
        byocviz.load_build(tmp_path, progress=False)


def test_only_a_build_is_written_over(build: byocviz.Build, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years")
    with pytest.raises(BuildError, match="something else than a build"):
        build.save(tmp_path / "mine")
    (tmp_path / "file").write_text("x")
    with pytest.raises(BuildError, match="no folder"):
        build.save(tmp_path / "file")
    (tmp_path / "empty").mkdir()
    for name in ("empty", "empty", "new/deep"):
        byocviz.load_build(build.save(tmp_path / name), progress=False)
    assert sorted(os.listdir(tmp_path)) == ["empty", "file", "mine", "new"]
    assert os.listdir(tmp_path / "mine") == ["thesis.txt"]


def test_nothing_half_written_is_left(
    build: byocviz.Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that is full half-way: the earlier build stays whole."""
    place = build.save(tmp_path / "build")

    def full(path: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(BuildError, match="No space left"):
        build.save(place)
    monkeypatch.undo()
    assert os.listdir(tmp_path) == ["build"]
    byocviz.load_build(place, progress=False)


def test_a_loaded_build_can_be_saved_again(folder: Path, tmp_path: Path) -> None:
    first = byocviz.load_build(folder, progress=False)
    again = byocviz.load_build(first.save(tmp_path / "again"), progress=False)
    inputs = seeded_inputs(CASE.build(), "main")
    for one, other in zip(first.run(inputs), again.run(inputs), strict=True):
        np.testing.assert_array_equal(one, other)


def test_without_a_compiler_the_mend_is_said(
    build: byocviz.Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(BuildError, match="install g\\+\\+"):
        build.save(tmp_path / "build")
    assert os.listdir(tmp_path) == []
