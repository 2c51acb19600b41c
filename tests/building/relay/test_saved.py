"""A Relay build in a folder runs in a fresh process, and what was changed is not run."""

from __future__ import annotations

import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.relay import needs_relay

needs_relay()

import tvm  # noqa: E402
from tvm import relay  # noqa: E402

import byocviz  # noqa: E402
from byocviz.building.errors import BuildError  # noqa: E402
from byocviz.building.relay.compiled import GRAPH, MACHINE  # noqa: E402
from byocviz.errors import StepMissing  # noqa: E402
from tests.building.kept import manifest, rewrite, sign  # noqa: E402
from tests.corpus_relay import CASES  # noqa: E402
from tests.corpus_relay.case import conv, main, x  # noqa: E402


def built(module: tvm.IRModule, backend: str = "tensorrt", **how: Any) -> byocviz.Build:
    recording = byocviz.record(module, backend, prune=False, progress=False, **how)
    return byocviz.build(recording, cache=False, isolate=False, progress=False)


def of_case(name: str) -> byocviz.Build:
    case = next(case for case in CASES if case.name == name)
    return built(case.build(), case.backend, entry=case.entry)


def _whole() -> byocviz.Build:
    """All of it in one subgraph, of which TVM has nothing left to compile."""
    return built(main(relay.nn.relu(conv(x()))))


def _nothing() -> byocviz.Build:
    return built(main(relay.round(relay.round(x()))))


def _odd_names() -> byocviz.Build:
    """What TVM calls its own constants, and a parameter that nothing uses."""
    unused = relay.var("unused", shape=(2,))
    body = relay.add(relay.round(conv(x("p0"))), relay.const(1.0))
    return built(
        tvm.IRModule.from_expr(relay.Function([*relay.analysis.free_vars(body), unused], body))
    )


def _other_entry() -> byocviz.Build:
    module = main(relay.add(relay.nn.relu(conv(x())), relay.const(1.0)))
    other = tvm.IRModule({relay.GlobalVar("forward"): module["main"]})
    recording = byocviz.record(other, entry="forward", progress=False)  # TVM partitions main alone
    return byocviz.build(recording, step="import", cache=False, isolate=False, progress=False)


MADE: dict[str, tuple[Callable[[], byocviz.Build], str, int]] = {
    "whole": (_whole, GRAPH, 1),
    "nothing": (_nothing, GRAPH, 0),
    "odd names": (_odd_names, GRAPH, 1),
    "cut in two": (lambda: of_case("cut_in_two"), GRAPH, 2),
    "outputs": (lambda: of_case("outputs_to_tvm"), GRAPH, 2),
    "branches": (lambda: of_case("branches"), MACHINE, 2),
    "loop": (lambda: of_case("counting_loop"), MACHINE, 1),
    "tuple": (lambda: of_case("tuple_parameter"), MACHINE, 1),
    "other entry": (_other_entry, GRAPH, 0),
}


def seeded(build: byocviz.Build, seed: int = 0) -> dict[str, Any]:
    return build.runnable.seeded(seed)


def test_each_kind_runs_in_a_fresh_process(tmp_path: Path) -> None:
    """Byte for byte what the build gave that was saved."""
    script = (
        "import pickle, sys, byocviz\n"
        "for folder in sys.argv[1:]:\n"
        "    given = pickle.load(open(folder + '.in', 'rb'))\n"
        "    build = byocviz.load_build(folder, progress=False)\n"
        "    pickle.dump([build.run(one) for one in given], open(folder + '.out', 'wb'))\n"
    )
    wanted = {}
    for name, (make, kind, engines) in MADE.items():
        build = make()
        assert build.runnable.executable.kind == kind, name
        assert len(build.engines) == engines, name
        folder = build.save(tmp_path / name)
        given = [seeded(build, seed) for seed in range(2)]
        folder.with_suffix(".in").write_bytes(pickle.dumps(given))
        wanted[folder] = [build.run(one) for one in given]
    subprocess.run([sys.executable, "-c", script, *map(str, wanted)], check=True, cwd=tmp_path)
    for folder, runs in wanted.items():
        found = pickle.loads(folder.with_suffix(".out").read_bytes())
        for one, other in zip(found, runs, strict=True):
            for a, b in zip(one, other, strict=True):
                assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes()), folder


@pytest.fixture(scope="module")
def build() -> byocviz.Build:
    return of_case("cut_in_two")


@pytest.fixture(scope="module")
def original(build: byocviz.Build, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build.save(tmp_path_factory.mktemp("saved") / "build")


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "copy"))


def test_a_loaded_build_is_timed_saved_again_and_says_what_it_cannot(
    folder: Path, tmp_path: Path
) -> None:
    first = byocviz.load_build(folder, progress=False)
    variants = {v.kind: v for v in first.latency(repeat=1, warmup=0).variants}
    assert variants["tvm"].cannot
    assert variants["byoc"].median
    with pytest.raises(StepMissing, match="a file holds no modules"):
        first.check()
    again = byocviz.load_build(first.save(tmp_path / "again"), progress=False)
    inputs = seeded(first)
    np.testing.assert_array_equal(first.run(inputs)[0], again.run(inputs)[0])
    assert again.info.tree == first.info.tree


def test_two_of_the_same_symbols_do_not_mix(tmp_path: Path) -> None:
    def scaled(by: float) -> byocviz.Build:
        return built(main(relay.nn.relu(conv(relay.multiply(x(), relay.const(by))))))

    one, two = (
        byocviz.load_build(scaled(by).save(tmp_path / "b"), progress=False) for by in (1.0, 2.0)
    )
    inputs = seeded(one)
    for _ in range(2):
        np.testing.assert_allclose(two.run(inputs)[0], one.run(inputs)[0] * 2, rtol=1e-4, atol=1e-5)


def test_every_file_is_guarded(folder: Path) -> None:
    for name in manifest(folder)["files"]:
        path = folder / name
        whole = path.read_bytes()
        path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        with pytest.raises(BuildError, match="is not the file that the manifest describes"):
            byocviz.load_build(folder, progress=False)
        path.unlink()
        with pytest.raises(BuildError, match="is missing"):
            byocviz.load_build(folder, progress=False)
        path.write_bytes(whole)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": 99}, "newer byocviz"),
        ({"format": 1}, "older byocviz"),
        ({"engines": []}, "do not agree"),
        ({"target": "no such target"}, "no target"),
        ({"target": '{"kind": "cuda"}'}, "for the CPU"),
        ({"entry": "nope"}, "another entry"),
        ({"runtime": "tensorrt"}, "another runtime"),
    ],
)
def test_a_manifest_that_was_changed(folder: Path, change: dict[str, Any], said: str) -> None:
    rewrite(folder, **change)
    with pytest.raises(byocviz.ByocvizError, match=said):
        byocviz.load_build(folder, progress=False)


def _write(name: str, data: bytes) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes(data)


def _other_symbol(folder: Path) -> None:
    """In the manifest and in the recording: only the library knows better."""
    engines = manifest(folder)["engines"]
    engines[0]["symbol"] = "another"
    rewrite(folder, engines=engines)
    recording = byocviz.load(folder / "recording.byocviz")
    assert recording.results.build is not None
    recording.results.build.engines[0].function = "another"
    recording.save(folder / "recording.byocviz")


def _other_signature(folder: Path) -> None:
    shutil.copy(_odd_names().save(folder.parent / "other") / "signature.json", folder)


def _other_library(folder: Path) -> None:
    other = of_case("branches").save(folder.parent / "other")
    (name,) = (n for n in manifest(folder)["files"] if n.endswith(".so"))
    shutil.copy(next(other.glob("module-*.so")), folder / name)


def _cut_off(folder: Path) -> None:
    with next(folder.glob("module-*.so")).open("r+b") as file:
        file.truncate(100)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_write("signature.json", b"\xff"), "signature of the saved build"),
        (_write("signature.json", b"{}"), "signature of the saved build"),
        (_write("recording.byocviz", b"abc"), "recording"),
        (_write("engines/0.onnx", b"abc"), "no ONNX model"),
        (_other_symbol, "do not fit each other"),
        (_other_library, "other parameters"),
        (_other_signature, "other parameters"),
        (_cut_off, "does not load the module"),
    ],
)
def test_a_build_that_was_changed_and_signed_again(
    folder: Path, change: Callable[[Path], Any], said: str
) -> None:
    change(folder)
    sign(folder)
    with pytest.raises(byocviz.ByocvizError, match=said):
        byocviz.load_build(folder, progress=False)


def test_without_a_compiler_the_mend_is_said(
    build: byocviz.Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(BuildError, match="install g\\+\\+"):
        build.save(tmp_path / "build")
    assert list(tmp_path.iterdir()) == []
