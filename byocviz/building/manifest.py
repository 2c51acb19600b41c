"""The manifest of a build in a folder: what must be there, and whether it is. Imports no TVM."""

from __future__ import annotations

import contextlib
import hashlib
import re
from pathlib import Path
from typing import Any

import msgspec

from byocviz.building.errors import BuildError
from byocviz.errors import last_line

FORMAT = 2
MANIFEST = "manifest.json"
SIGNATURE = "signature.json"
RECORDING = "recording.byocviz"
MOST_ENGINES = 10_000
MOST_BYTES = 256 << 20
"""Of a manifest."""

_OURS = re.compile(
    r"module\.so|module-[0-9a-f]{16}\.so|signature\.json|recording\.byocviz|"
    r"engines/[0-9]{1,5}\.(onnx|plan)"
)
"""Every file that any format has had beside the manifest: nothing else is ever removed."""


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

    @property
    def library(self) -> str:
        """What a library of these contents is called."""
        return f"module-{self.sha256[:16]}.so"


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


def described(path: Path) -> SavedFile:
    digest = hashlib.sha256()
    size = 0
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
            size += len(chunk)
    return SavedFile(size, digest.hexdigest())


def read(folder: Path) -> tuple[Manifest, Path]:
    """The manifest, every file of it checked, and the library of these contents.

    Raises `BuildError` for what does not fit it.
    """
    path = folder / MANIFEST
    try:
        there = path.is_file()
    except (OSError, ValueError):  # a name that cannot be one
        there = False
    if not there:
        raise BuildError(
            f"{str(folder)!r} holds no build: {MANIFEST} is not there.",
            "Name a folder that build.save wrote.",
        )
    try:
        data = _bytes(path)
        # The version first: another one may have other fields.
        version = msgspec.json.decode(data, type=_Version).format
        if version != FORMAT:
            raise _other(folder, version)
        manifest = msgspec.json.decode(data, type=Manifest)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise damaged(folder, f"{MANIFEST} cannot be read ({last_line(error)})") from error
    libraries = [name for name in manifest.files if name.startswith("module-")]
    wanted = {SIGNATURE, RECORDING, *libraries[:1]}
    if len(manifest.engines) > MOST_ENGINES:
        raise damaged(folder, f"it names {len(manifest.engines):,} engines")
    for number, engine in enumerate(manifest.engines):
        wanted |= {f"engines/{number}.onnx"} | (
            {f"engines/{number}.plan"} if engine.plan else set()
        )
    if set(manifest.files) != wanted or not libraries:
        odd = sorted(set(manifest.files) ^ wanted) or ["module"]
        raise damaged(folder, f"the manifest and its engines do not agree about {odd[0]!r}")
    library = libraries[0]
    if library != manifest.files[library].library:
        raise damaged(folder, f"{library} is not named by what the manifest says of it")
    if len({engine.symbol for engine in manifest.engines}) < len(manifest.engines):
        raise damaged(folder, "two engines have one symbol")
    for name, said in manifest.files.items():
        file = folder / name
        linked = file.is_symlink() or (file.parent != folder and file.parent.is_symlink())
        if linked or not file.is_file():
            raise damaged(folder, f"{name} is missing")
        found = None
        with contextlib.suppress(OSError):
            found = described(file) if file.stat().st_size == said.bytes else None
        if found != said:
            raise damaged(folder, f"{name} is not the file that the manifest describes")
    return manifest, (folder / library).resolve()


class _Version(msgspec.Struct):
    format: int


def _other(folder: Path, version: int) -> BuildError:
    if version > FORMAT:
        return BuildError(
            f"{folder} was written by a newer byocviz (format {version}, this reads {FORMAT}).",
            "pip install --upgrade byocviz",
        )
    if version < 1:
        return damaged(folder, f"there is no format {version}")
    return BuildError(
        f"{folder} was written by an older byocviz (format {version}, this reads {FORMAT}).",
        "Build and save it again.",
    )


def damaged(folder: Path, what: str) -> BuildError:
    """The error for a build that does not hold together."""
    return BuildError(
        f"The build in {folder} is damaged or was changed: {what}.", "Build and save it again."
    )


class _Earlier(msgspec.Struct):
    """What a manifest of any format has."""

    format: int
    byocviz: str
    entry: str
    files: dict[str, SavedFile]


def not_ours(folder: Path) -> str:
    """The first thing in a folder that no manifest of ours names; "" where there is none."""
    found = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*")}
    if not found:
        return ""
    named: set[str] = set()
    with contextlib.suppress(OSError, ValueError, RecursionError, msgspec.MsgspecError):
        files = msgspec.json.decode(_bytes(folder / MANIFEST), type=_Earlier).files
        named = {MANIFEST, *(name for name in files if _OURS.fullmatch(name))}
    for name, path in sorted(found.items()):
        if path.is_symlink() or (name != "engines" and name not in named):
            return name
        if path.is_dir() != (name == "engines"):
            return name
    return ""


def _bytes(path: Path) -> bytes:
    """A manifest. Raises `OSError` where it is no file of its own, or too large to be one."""
    if path.is_symlink() or not path.is_file():
        raise OSError("it is no file")
    if path.stat().st_size > MOST_BYTES:
        raise OSError("it is too large")
    return path.read_bytes()
