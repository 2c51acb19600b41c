"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from byocviz.errors import RecordingError


def named(path: str | os.PathLike[str], suffix: str = "") -> Path:
    """``path`` as that of a file, with ``suffix`` where it has none; nothing is touched.

    Raises `RecordingError` where it names no file: empty, ``.``, ``..``, or ending in a slash.
    """
    raw = os.fspath(path)
    if not isinstance(raw, str) or os.path.basename(raw) in ("", ".", ".."):
        raise RecordingError(
            f"{raw!r} is not the name of a file.", f"Name a file, as model{suffix or '.html'}."
        )
    target = Path(raw)
    if target.suffix or not suffix:
        return target
    with _named_errors(target):
        if target.exists() and not (target.is_file() or target.is_dir()):
            raise _no_file(target)
    return target.with_name(target.name + suffix)


def usable(path: Path) -> Path:
    """The path, where `write` would most likely succeed.

    Makes an empty file beside it and takes that away again: permissions and mounts say less.
    Raises `RecordingError` as `write` does.
    """
    with _named_errors(path):
        temporary = _temporary(_real(path))
        try:
            temporary.touch(exist_ok=False)
        finally:
            with contextlib.suppress(OSError, ValueError):
                temporary.unlink()
    return path


def write(path: str | os.PathLike[str], data: bytes) -> Path:
    """Writes ``data`` to a file beside the target, then puts it in its place; returns the path.

    Raises `RecordingError` where that cannot be done; what was there before then stays.
    """
    target = named(path)
    with _named_errors(target):
        real = _real(target)
        temporary = _temporary(real)
        try:
            # Not tempfile: its files are private to the user, and these are to be shared.
            with open(temporary, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            with contextlib.suppress(FileNotFoundError):  # at any moment another may remove it
                os.chmod(temporary, stat.S_IMODE(real.stat().st_mode))
            os.replace(temporary, real)
        finally:
            with contextlib.suppress(OSError, ValueError):
                temporary.unlink()
    return target


def _real(target: Path) -> Path:
    """What is written: a link keeps pointing where it did; its target is what changes."""
    real = Path(os.path.realpath(target))
    try:
        mode = real.stat().st_mode
    except FileNotFoundError:
        return real
    if stat.S_ISDIR(mode):
        raise RecordingError(f"{target} cannot be written: it is a folder.", "Name a file in it.")
    if not stat.S_ISREG(mode):
        raise _no_file(target)
    return real


def _temporary(real: Path) -> Path:
    # Not after the target: a name may be as long as the file system takes.
    return real.with_name(f".byocviz-{secrets.token_hex(8)}.tmp")


def _no_file(target: Path) -> RecordingError:
    return RecordingError(
        f"{target} cannot be written: it is a device or pipe, not a file.",
        "Name a file in a folder that exists and can be written to.",
    )


@contextmanager
def _named_errors(target: Path) -> Iterator[None]:
    try:
        yield
    except RecordingError:
        raise
    except (OSError, ValueError) as error:
        cause = getattr(error, "strerror", None) or error
        raise RecordingError(
            f"{target} cannot be written: {cause}.",
            "Name a file in a folder that exists and can be written to.",
        ) from error
