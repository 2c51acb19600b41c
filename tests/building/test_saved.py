"""A build in a folder runs in a fresh process, and what was changed is not run."""

from __future__ import annotations

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

import tvm
from tvm import relax

import byocviz
from byocviz.building.errors import BuildError
from byocviz.errors import ArgumentError, StepMissing
from byocviz.flow.relax.verify import run_module, seeded_inputs
from tests.building.kept import manifest, rewrite, sign
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


def library_of(folder: Path) -> str:
    (name,) = (name for name in manifest(folder)["files"] if name.endswith(".so"))
    return str(name)


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
    library = library_of(folder)
    for name, inside in ((library, library), ("engines", "engines/0.onnx")):
        outside = tmp_path / f"outside {name}"
        shutil.move(folder / name, outside)
        (folder / name).symlink_to(outside)
        with pytest.raises(BuildError, match=f"{inside} is missing"):
            byocviz.load_build(folder, progress=False)
        (folder / name).unlink()
        shutil.move(outside, folder / name)
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
        ({"format": 0}, "no format 0"),
        ({"format": -1}, "no format -1"),
        ({"format": 1}, "older byocviz"),
        ({"runtime": "no such runtime"}, "another runtime"),
        ({"runtime": "tensorrt"}, "another runtime"),
        ({"entry": "nope"}, "another entry"),
        ({"backend": "nope"}, "another backend"),
        ({"made": "yesterday"}, "another date"),
        ({"options": {"thread": 1}}, "no option"),
        ({"options": {"threads": "many"}}, "'many'"),
        ({"target": "{"}, "no target"),
        ({"target": "[" * 100_000}, "no target"),
        ({"target": '{"kind": "llvm", "mtriple": "riscv64"}'}, "riscv64"),
        ({"step": "nowhere"}, "another step"),
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


def offset(by: float) -> tvm.IRModule:
    """``exp(x) + by``: the addition stays on TVM."""
    x = relax.Var("given", relax.TensorType((3,), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            raised = builder.emit(relax.op.exp(x))
            added = relax.op.add(raised, relax.const(np.full(3, by, "float32")))
            result = builder.emit_output(added)
        builder.emit_func_output(result)
    return builder.get()


def built(by: float) -> byocviz.Build:
    recording = byocviz.record(offset(by), "onnxruntime", rules=["exp"], progress=False)
    return byocviz.build(recording, cache=False, isolate=False, progress=False)


def test_a_folder_that_is_saved_over_gives_the_new_code(tmp_path: Path) -> None:
    x = np.zeros(3, "float32")
    first = byocviz.load_build(built(1).save(tmp_path / "b"), progress=False)
    second = byocviz.load_build(built(100).save(tmp_path / "b"), progress=False)
    for _ in range(2):
        np.testing.assert_allclose(first.run(x)[0], 2)
        np.testing.assert_allclose(second.run(x)[0], 101)
    # The file of the first is gone: it is said, and nothing is written.
    with pytest.raises(BuildError, match="is gone"):
        first.save(tmp_path / "c")
    assert os.listdir(tmp_path) == ["b"]


def test_a_build_keeps_its_own_results_when_another_of_the_recording_followed(
    tmp_path: Path,
) -> None:
    recording = byocviz.record(offset(1), "onnxruntime", rules=["exp"], progress=False)
    builds = [
        byocviz.build(recording, step=step, cache=False, isolate=False, progress=False)
        for step in ("merge", "partition")
    ]
    now = recording.results
    for number, build in enumerate(builds):
        loaded = byocviz.load_build(build.save(tmp_path / str(number)), progress=False)
        assert loaded.info.step == build.info.step
        np.testing.assert_allclose(loaded.run(np.zeros(3, "float32"))[0], 2)
    assert recording.results is now


def test_a_library_that_was_cut_off_is_not_loaded(folder: Path) -> None:
    byocviz.load_build(folder, progress=False)  # the loader knows the whole one now
    for length in (100, 0):
        with (folder / library_of(folder)).open("r+b") as file:
            file.truncate(length)
        sign(folder)
        with pytest.raises(BuildError, match="does not load the module"):
            byocviz.load_build(folder, progress=False)


def change_engine(folder: Path, **change: Any) -> None:
    engines = manifest(folder)["engines"]
    engines[0] |= change
    rewrite(folder, engines=engines)


def change_port(folder: Path, what: str, **change: Any) -> None:
    engines = manifest(folder)["engines"]
    engines[0][what][0] |= change
    rewrite(folder, engines=engines)


def twice(folder: Path) -> None:
    """One more engine of the same symbol."""
    count = len(manifest(folder)["engines"])
    shutil.copy(folder / "engines/0.onnx", folder / f"engines/{count}.onnx")
    found = manifest(folder)
    found["engines"].append(found["engines"][0])
    found["files"][f"engines/{count}.onnx"] = found["files"]["engines/0.onnx"]
    rewrite(folder, **found)


def other_symbol(folder: Path) -> None:
    """In the manifest and in the recording: only the library knows better."""
    change_engine(folder, symbol="another")
    recording = byocviz.load(folder / "recording.byocviz")
    info = recording.results.build
    assert info is not None
    info.engines[0].function = "another"
    recording.save(folder / "recording.byocviz")
    sign(folder)


def write(name: str, data: bytes) -> Any:
    def change(folder: Path) -> None:
        (folder / name).write_bytes(data)
        sign(folder)

    return change


def other_recording(folder: Path) -> None:
    recording = byocviz.record(offset(1), CASE.backend, progress=False)
    recording.save(folder / "recording.byocviz")
    sign(folder)


def other_signature(folder: Path) -> None:
    other = built(1).save(folder.parent / "other")
    shutil.copy(other / "signature.json", folder)
    sign(folder)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda f: change_engine(f, symbol="another"), "of another build"),
        (other_symbol, "do not fit each other"),
        (lambda f: change_engine(f, opset=99), "its opset"),
        (lambda f: change_engine(f, inputs=[]), "its inputs"),
        (lambda f: change_port(f, "inputs", dtype="zzz"), "its inputs"),
        (lambda f: change_port(f, "inputs", dtype="int8"), "its inputs"),
        (lambda f: change_port(f, "inputs", parameter=-1), "its inputs"),
        (lambda f: change_port(f, "outputs", shape=[1]), "its outputs"),
        (lambda f: change_port(f, "outputs", name="q"), "its outputs"),
        (twice, "two engines have one symbol"),
        (write("signature.json", b"\xff"), "signature of the saved build"),
        (write("signature.json", b"{}"), "signature of the saved build"),
        (write("recording.byocviz", b"abc"), "recording"),
        (write("engines/0.onnx", b""), "its opset"),
        (write("engines/0.onnx", b"abc"), "no ONNX model"),
        (other_recording, "of no build"),
        (other_signature, "other parameters"),
    ],
)
def test_a_build_that_was_changed_and_signed_again(folder: Path, change: Any, said: str) -> None:
    change(folder)
    with pytest.raises(byocviz.ByocvizError, match=said):
        byocviz.load_build(folder, progress=False)


@pytest.mark.parametrize(
    ("files", "kept"),
    [
        ({"manifest.json": "{}", "precious.txt": "x"}, "manifest.json"),
        ({"manifest.json": "[" * 100_000}, "manifest.json"),
        ({"manifest.json": '{"name": "a web page", "icons": []}'}, "manifest.json"),
        ({"precious.txt": "x"}, "precious.txt"),
        ({"engines/precious.txt": "x"}, "engines/precious.txt"),
    ],
)
def test_a_folder_of_somebody_else_is_left(
    build: byocviz.Build, tmp_path: Path, files: dict[str, str], kept: str
) -> None:
    place = tmp_path / "mine"
    (place / "engines").mkdir(parents=True)
    for name, text in files.items():
        (place / name).write_text(text)
    before = sorted(place.rglob("*"))
    with pytest.raises(BuildError, match="something else than a build") as caught:
        build.save(place)
    assert kept in caught.value.message
    assert sorted(place.rglob("*")) == before


def test_a_file_beside_an_earlier_build_is_left(build: byocviz.Build, folder: Path) -> None:
    (folder / "notes.txt").write_text("x")
    # Even where the manifest names it: no build has such a file.
    rewrite(folder, files={**manifest(folder)["files"], "notes.txt": {"bytes": 1, "sha256": ""}})
    with pytest.raises(BuildError, match=r"notes\.txt"):
        build.save(folder)
    (folder / "notes.txt").unlink()
    build.save(folder)


def test_a_link_to_a_folder_is_followed(build: byocviz.Build, tmp_path: Path) -> None:
    place = build.save(tmp_path / "real")
    link = tmp_path / "link"
    link.symlink_to(place)
    assert build.save(link) == link
    assert link.is_symlink()
    assert sorted(os.listdir(tmp_path)) == ["link", "real"]
    byocviz.load_build(link, progress=False)


@pytest.mark.parametrize(
    "name", ["n" * 300, "x\0y", "", ".", "..", "/", None, 5, b"x"], ids=lambda n: repr(n)[:9]
)
def test_names_that_cannot_be(build: byocviz.Build, tmp_path: Path, name: Any) -> None:
    place = tmp_path / name if isinstance(name, str) and len(name) > 2 else name
    with pytest.raises((BuildError, ArgumentError)) as caught:
        build.save(place)
    assert caught.value.mend
    with pytest.raises((BuildError, ArgumentError)) as caught:
        byocviz.load_build(place, progress=False)
    assert caught.value.mend
    assert os.listdir(tmp_path) == []


def test_a_long_name_may_be_as_long_as_the_file_system_takes(
    build: byocviz.Build, tmp_path: Path
) -> None:
    place = build.save(tmp_path / ("ü" * 120))
    byocviz.load_build(build.save(place), progress=False)
