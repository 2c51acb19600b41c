"""A build in a folder: what runs, and a manifest that says what must be there.

    manifest.json       versions, signature, engines, and each file's size and SHA-256
    module.so           what TVM compiled (TVM's export_library)
    signature.json      the entry's parameters, as TVM writes a module
    engines/0.onnx ...  each subgraph; engines/0.plan where the runtime has a serialised engine
    recording.byocviz   the recording with its results

The checksums find damage. They do not make a stranger's build safe: ``module.so`` is native code.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from byocviz.building.errors import BuildError, last_line
from byocviz.version import __version__

if TYPE_CHECKING:
    from byocviz.building.built import Build

FORMAT = 1
MANIFEST = "manifest.json"
LIBRARY = "module.so"
SIGNATURE = "signature.json"
RECORDING = "recording.byocviz"
MOST_ENGINES = 10_000


class SavedPort(msgspec.Struct, forbid_unknown_fields=True):
    """See `byocviz.building.lower.Port`."""

    name: str
    dtype: str
    shape: list[int]
    parameter: int
    path: list[int]


class SavedEngine(msgspec.Struct, forbid_unknown_fields=True):
    symbol: str
    opset: int
    inputs: list[SavedPort]
    outputs: list[SavedPort]
    tuple_output: bool
    plan: bool
    """Whether the serialised engine lies beside the ONNX model."""


class SavedFile(msgspec.Struct, forbid_unknown_fields=True):
    bytes: int
    sha256: str


class Manifest(msgspec.Struct, forbid_unknown_fields=True):
    format: int
    made: str
    byocviz: str
    tvm: str
    machine: dict[str, str]
    backend: str
    runtime: str
    stands_in_for: str
    why: str
    options: dict[str, Any]
    target: str
    entry: str
    step: str
    engines: list[SavedEngine]
    files: dict[str, SavedFile]


def save(build: Build, folder: str | os.PathLike[str]) -> Path:
    """See `Build.save`."""
    target = Path(folder)
    _replaceable(target)
    choice = build.plan.choice
    if choice is None:
        raise BuildError(
            "A build by a native codegen is not saved by byocviz.",
            "Use TVM's own: build.runnable.executable.export_library(path).",
        )
    temporary = target.with_name(f".{target.name[:100]}-{secrets.token_hex(6)}")
    try:
        try:
            (temporary / "engines").mkdir(parents=True)
            files = _write(build, temporary)
            manifest = _manifest(build, files)
            (temporary / MANIFEST).write_bytes(
                msgspec.json.format(msgspec.json.encode(manifest), indent=1)
            )
            _put(temporary, target)
        except OSError as error:
            raise BuildError(
                f"{target} cannot be written: {error.strerror or error}.",
                "Name a folder on a disk with room, in a folder that can be written to.",
            ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return target


def _replaceable(target: Path) -> None:
    """Refuse to write over anything but an empty folder or an earlier build."""
    if target.name in ("", ".", ".."):
        raise BuildError(f"{str(target)!r} names no folder.", "Name one: build.save('ssd-build')")
    if not target.exists():
        return
    if not target.is_dir():
        raise BuildError(f"{target} is there and is no folder.", "Name another one.")
    if any(target.iterdir()) and not (target / MANIFEST).is_file():
        raise BuildError(
            f"{target} is there and holds something else than a build; it is left as it is.",
            "Name another folder.",
        )


def _put(temporary: Path, target: Path) -> None:
    """The new folder in the old one's place; the old one is back where that fails."""
    old = target.with_name(f"{temporary.name}-old")
    if target.exists():
        os.replace(target, old)
    try:
        os.replace(temporary, target)
    except OSError:
        if old.exists():
            os.replace(old, target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _write(build: Build, folder: Path) -> dict[str, SavedFile]:
    from byocviz.building.signature import to_json

    runnable = build.runnable
    _export(runnable, folder / LIBRARY)
    (folder / SIGNATURE).write_text(to_json(runnable.function), encoding="utf-8")
    for number, (symbol, lowered) in enumerate(runnable.lowered.items()):
        (folder / "engines" / f"{number}.onnx").write_bytes(lowered.serialized())
        plan = runnable.built[symbol].engine.serialized()
        if plan is not None:
            (folder / "engines" / f"{number}.plan").write_bytes(plan)
    build.recording.save(folder / RECORDING)
    return {
        path.relative_to(folder).as_posix(): _described(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _export(runnable: Any, path: Path) -> None:
    """TVM's code as a library; a build that was loaded has one already."""
    if runnable.library is not None:
        shutil.copyfile(runnable.library, path)
        return
    try:
        runnable.executable.export_library(str(path))
    except OSError:
        raise
    except Exception as error:
        # TVM looks for these, and fails with a TypeError where it finds none.
        found = any(map(shutil.which, ("g++", "gcc", "clang++", "clang", "c++", "cc")))
        mend = "Compile the module alone and export it (export_library) to see what TVM needs."
        if not found:
            mend = "It links with a C++ compiler, and there is none: install g++ or clang++."
        raise BuildError(f"TVM does not export the module: {last_line(error)}", mend) from error


def _manifest(build: Build, files: dict[str, SavedFile]) -> Manifest:
    import tvm

    info, runnable, choice = build.info, build.runnable, build.plan.choice
    assert choice is not None
    engines = []
    for number, (symbol, lowered) in enumerate(runnable.lowered.items()):
        engines.append(
            SavedEngine(
                symbol,
                lowered.opset,
                [_port(port) for port in lowered.inputs],
                [_port(port) for port in lowered.outputs],
                lowered.tuple_output,
                f"engines/{number}.plan" in files,
            )
        )
    return Manifest(
        format=FORMAT,
        made=info.made,
        byocviz=__version__,
        tvm=str(tvm.__version__),
        machine=info.machine,
        backend=build.plan.backend,
        runtime=choice.runtime.name,
        stands_in_for=choice.stands_in_for,
        why=choice.why,
        options=dict(build.plan.options),
        target=str(runnable.target),
        entry=runnable.entry,
        step=build.step.name,
        engines=engines,
        files=files,
    )


def _port(port: Any) -> SavedPort:
    return SavedPort(port.name, port.dtype, list(port.shape), port.parameter, list(port.path))


def _described(path: Path) -> SavedFile:
    digest = hashlib.sha256()
    size = 0
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
            size += len(chunk)
    return SavedFile(size, digest.hexdigest())


def read(folder: Path) -> Manifest:
    """The manifest, every file of it checked. Raises `BuildError` for what does not fit it."""
    path = folder / MANIFEST
    if not folder.is_dir() or not path.is_file():
        raise BuildError(
            f"{folder} holds no build: {MANIFEST} is not there.",
            "Name a folder that build.save wrote.",
        )
    try:
        data = path.read_bytes()
        # The version first: a newer one may have other fields.
        version = msgspec.json.decode(data, type=_Version).format
        if version > FORMAT:
            raise BuildError(
                f"{folder} was written by a newer byocviz (format {version}, this reads {FORMAT}).",
                "pip install --upgrade byocviz",
            )
        manifest = msgspec.json.decode(data, type=Manifest)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise _damaged(folder, f"{MANIFEST} cannot be read ({last_line(error)})") from error
    wanted = {LIBRARY, SIGNATURE, RECORDING}
    if len(manifest.engines) > MOST_ENGINES:
        raise _damaged(folder, f"it names {len(manifest.engines):,} engines")
    for number, engine in enumerate(manifest.engines):
        wanted |= {f"engines/{number}.onnx"} | (
            {f"engines/{number}.plan"} if engine.plan else set()
        )
    if set(manifest.files) != wanted:
        odd = sorted(set(manifest.files) ^ wanted)
        raise _damaged(folder, f"the manifest and its engines do not agree about {odd[0]!r}")
    for name, said in manifest.files.items():
        file = folder / name
        if file.is_symlink() or not file.is_file():
            raise _damaged(folder, f"{name} is missing")
        found = None
        with contextlib.suppress(OSError):
            found = _described(file) if file.stat().st_size == said.bytes else None
        if found != said:
            raise _damaged(folder, f"{name} is not the file that the manifest describes")
    return manifest


class _Version(msgspec.Struct):
    format: int


def _damaged(folder: Path, what: str) -> BuildError:
    return BuildError(
        f"The build in {folder} is damaged or was changed: {what}.", "Build and save it again."
    )
