"""A build in a folder: what runs, and a manifest that says what must be there.

    manifest.json         versions, signature, engines, and each file's size and SHA-256
    module-0123....so     what TVM compiled (TVM's export_library)
    signature.json        the entry's parameters, as TVM writes a module
    engines/0.onnx ...    each subgraph; engines/0.plan where the runtime has a serialised engine
    recording.byocviz     the recording with its results

The library is named by the start of its SHA-256: the system's loader knows libraries by their path,
and would give a process the one that it loaded before under the same name.

The checksums find damage. They do not make a stranger's build safe: the library is native code.
"""

from __future__ import annotations

import contextlib
import copy
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from byocviz.building.errors import BuildError
from byocviz.building.manifest import (
    FORMAT,
    MANIFEST,
    RECORDING,
    SIGNATURE,
    Manifest,
    SavedEngine,
    SavedFile,
    SavedPort,
    described,
    not_ours,
)
from byocviz.errors import ArgumentError, ByocvizError, last_line
from byocviz.version import __version__

if TYPE_CHECKING:
    from byocviz.building.built import Build
    from byocviz.recording import Recording


def save(build: Build, folder: str | os.PathLike[str]) -> Path:
    """See `Build.save`."""
    target = replaceable(folder)
    choice = build.plan.choice
    if choice is None:
        raise BuildError(
            "A build by a native codegen is not saved by byocviz.",
            "Use TVM's own: build.runnable.executable.export_library(path).",
        )
    # Not after the target: a name may be as long as the file system takes.
    temporary = target.with_name(f".byocviz-{secrets.token_hex(8)}")
    try:
        with _writing(folder):
            (temporary / "engines").mkdir(parents=True)
            files = _write(build, temporary)
            manifest = _manifest(build, files)
            (temporary / MANIFEST).write_bytes(
                msgspec.json.format(msgspec.json.encode(manifest), indent=1)
            )
            _put(temporary, target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return Path(folder)


def path_of(folder: str | os.PathLike[str]) -> Path:
    """The path. Raises `ArgumentError` for what is none."""
    given = os.fspath(folder) if isinstance(folder, os.PathLike) else folder
    if not isinstance(given, str):
        raise ArgumentError(
            f"A build is in a folder, and {type(folder).__name__} is no path.",
            "Name one: build.save('ssd-build')",
        )
    return Path(given)


def replaceable(folder: str | os.PathLike[str]) -> Path:
    """Where a build in ``folder`` is written; a link keeps pointing there.

    Raises `BuildError` where something else is there than an empty folder or an earlier build, or
    the name cannot be used.
    """
    named = path_of(folder)
    if named.name in ("", ".", ".."):
        raise BuildError(f"{str(folder)!r} names no folder.", "Name one: build.save('ssd-build')")
    with _writing(folder):
        target = Path(os.path.realpath(named))
        if not target.exists():
            return target
        if not target.is_dir():
            raise BuildError(f"{named} is there and is no folder.", "Name another one.")
        odd = not_ours(target)
        if odd:
            raise BuildError(
                f"{named} is there and holds something else than a build ({odd!r}); it is left as "
                "it is.",
                "Name another folder.",
            )
        return target


@contextlib.contextmanager
def _writing(folder: str | os.PathLike[str]) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        if isinstance(error, ByocvizError):
            raise
        raise BuildError(
            f"{str(folder)!r} cannot be written: {getattr(error, 'strerror', None) or error}.",
            "Name a folder on a disk with room, in a folder that can be written to.",
        ) from error


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
    from byocviz.building.dialect import dialect

    runnable: Any = build.runnable
    library = folder / "module.so"
    _export(runnable, library)
    name = described(library).library
    if runnable.library is not None and runnable.library.name != name:
        raise _gone(runnable.library, "is another than it was")
    os.replace(library, folder / name)
    signature = dialect(build.recording.ir, "to save a build").to_json(runnable.function)
    (folder / SIGNATURE).write_text(signature, encoding="utf-8")
    for number, (symbol, lowered) in enumerate(runnable.lowered.items()):
        (folder / "engines" / f"{number}.onnx").write_bytes(lowered.serialized())
        plan = runnable.built[symbol].engine.serialized()
        if plan is not None:
            (folder / "engines" / f"{number}.plan").write_bytes(plan)
    _recording(build).save(folder / RECORDING)
    return {
        path.relative_to(folder).as_posix(): described(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _recording(build: Build) -> Recording:
    """With this build's results, where another build of the recording has put its own there since;
    those stay where they are."""
    apart = copy.copy(build)
    apart.recording = copy.copy(build.recording)
    apart.recording.texts = dict(build.recording.texts)
    apart.results()
    return apart.recording


def _export(runnable: Any, path: Path) -> None:
    """TVM's code as a library; a build that was loaded has one already."""
    if runnable.library is not None:
        try:
            shutil.copyfile(runnable.library, path)
        except FileNotFoundError as error:
            raise _gone(runnable.library, "is gone") from error
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


def _gone(library: Path, what: str) -> BuildError:
    return BuildError(
        f"The library that this build was loaded from {what}: {library}.",
        "Load the build again from where it is kept, or build it anew.",
    )


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
