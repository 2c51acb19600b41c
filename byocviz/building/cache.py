"""Engines that were built before, in a folder of the user's.

A serialised engine is code: whoever can write into the folder can run things here. So the folder
must be the user's own and closed to others, and what a file holds is checked before it is used.
That guards against damage and mix-ups, not against the user.
"""

from __future__ import annotations

import contextlib
import getpass
import hashlib
import json
import os
import stat
import struct
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any, BinaryIO

from byocviz.building.errors import CacheWarning
from byocviz.errors import ByocvizError
from byocviz.recording import atomic

FORMAT = 1
"""Of the files, and of what goes into a key: with another number nothing old is found."""

LIMIT = 4 << 30
"""Bytes that the entries may take together."""

_MAGIC = b"byocviz engine\n\0"
_HEADER = struct.Struct(">16sI32s32sQ")
"""Magic, format, key, SHA-256 of the contents, length of the contents."""
_SUFFIX = ".engine"
_STALE = 24 * 3600.0
"""Seconds after which a temporary file is one that nobody will finish."""


def user_folder(name: str) -> Path:
    """``name`` in byocviz's folder in the user's cache; nothing is made.

    By the XDG Base Directory Specification: a relative ``XDG_CACHE_HOME`` counts as none. For a
    user without a home it is in the folder for temporary files.
    """
    base = os.environ.get("XDG_CACHE_HOME", "")
    home = os.path.expanduser("~")
    if os.path.isabs(base):
        return Path(base) / "byocviz" / name
    if os.path.isabs(home):
        return Path(home) / ".cache" / "byocviz" / name
    return Path(tempfile.gettempdir()) / f"byocviz-{getpass.getuser()}" / name


def private(folder: Path) -> str | None:
    """Make a folder that only the user can use, or take the one that is there; why it cannot be
    trusted, or None."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.name == "nt":
            return None  # no owner and mode there; the user's profile is closed to others
        found = folder.stat()
        if found.st_uid != os.getuid():
            return f"{folder} belongs to another user"
        if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return f"others can write into {folder} (chmod 700 closes it)"
    except (OSError, ValueError) as error:
        return f"{folder} cannot be used: {getattr(error, 'strerror', None) or error}"
    return None


class EngineCache:
    """``folder`` is by default ``byocviz/engines`` in the user's cache; ``limit`` is in bytes.

    What cannot be read is built anew and what cannot be written is not kept: `CacheWarning` says
    why, once for each cause.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None, limit: int = LIMIT) -> None:
        self.folder = Path(folder) if folder is not None else user_folder("engines")
        self.limit = limit
        self._warned: set[str] = set()

    def key(
        self,
        runtime: str,
        model: bytes,
        options: Mapping[str, Any],
        depends: Mapping[str, str],
    ) -> str:
        """The key of an engine: all that it depends on. ``model`` is the ONNX, weights included."""
        return self._key("engine", runtime, hashlib.sha256(model).hexdigest(), options, depends)

    def timing_key(self, runtime: str, depends: Mapping[str, str]) -> str:
        """The key of the kernels' times, which all engines of a runtime and GPU share."""
        return self._key("timing", runtime, "", {}, depends)

    def _key(self, *parts: Any) -> str:
        text = json.dumps([FORMAT, *parts], sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()

    def get(self, key: str) -> bytes | None:
        """What was put in under the key; None where there is nothing, or it is damaged."""
        path = self._path(key)
        if not os.path.isdir(self.folder) or self._closed() is not None:
            return None
        try:
            with _opened(path) as file:
                if file is None:
                    return None
                head = file.read(_HEADER.size)
                # The length is that of the file, never one that the file names.
                data = file.read() if len(head) == _HEADER.size else b""
        except (OSError, ValueError):
            return None
        if not _whole(head, key, data):
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # the entry that was used longest ago goes first
        return data

    def put(self, key: str, data: bytes) -> str | None:
        """Keep an engine; why it was not kept, or None. Older ones make room for it."""
        digest = hashlib.sha256(data).digest()
        head = _HEADER.pack(_MAGIC, FORMAT, bytes.fromhex(key), digest, len(data))
        size = len(head) + len(data)
        if size > self.limit:
            return self._warn(f"an engine of {size:,} bytes is beyond the limit of {self.limit:,}")
        reason = self._closed()
        if reason is not None:
            return self._warn(reason)
        self._make_room(size)
        try:
            atomic.write(self._path(key), head + data)
        except ByocvizError as error:
            return self._warn(error.message.replace(str(self._path(key)), str(self.folder)))
        except MemoryError:
            return self._warn("there is not enough memory")
        return None

    def size(self) -> int:
        """Bytes that the entries take."""
        return sum(size for _, size, _ in self._entries())

    def clear(self) -> None:
        """Remove all entries."""
        for _, _, path in self._entries():
            with contextlib.suppress(OSError):
                path.unlink()

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}{_SUFFIX}"

    def _closed(self) -> str | None:
        return private(self.folder)

    def _warn(self, reason: str) -> str:
        if reason not in self._warned:
            self._warned.add(reason)
            warnings.warn(f"The engine was not kept: {reason}", CacheWarning, stacklevel=3)
        return reason

    def _entries(self) -> list[tuple[float, int, Path]]:
        """When each was last used, its bytes, its path; the one used longest ago first."""
        found = []
        try:
            listed = list(os.scandir(self.folder))
        except (OSError, ValueError):
            return []
        for entry in listed:
            with contextlib.suppress(OSError):
                if entry.name.endswith(_SUFFIX) and entry.is_file(follow_symlinks=False):
                    status = entry.stat(follow_symlinks=False)
                    found.append((status.st_mtime, status.st_size, Path(entry.path)))
        return sorted(found)

    def _make_room(self, size: int) -> None:
        entries = self._entries()
        total = sum(s for _, s, _ in entries) + size
        for _, taken, path in entries:
            if total <= self.limit:
                break
            with contextlib.suppress(OSError):
                path.unlink()
                total -= taken
        with contextlib.suppress(OSError):
            for left in self.folder.glob(".byocviz-*.tmp"):
                with contextlib.suppress(OSError):
                    if time.time() - left.stat().st_mtime > _STALE:
                        left.unlink()


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[BinaryIO | None]:
    """The file to read from; None where it is no plain file of the user's.

    Not through a link: what counts is who owns the file. Without waiting: a pipe's other end may
    never come.
    """
    flags = (getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))
    descriptor = os.open(path, reduce(or_, flags, os.O_RDONLY))
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or _foreign(status):
            yield None
            return
        with open(descriptor, "rb", closefd=False) as file:
            yield file
    finally:
        os.close(descriptor)


def _foreign(status: os.stat_result) -> bool:
    return os.name != "nt" and status.st_uid != os.getuid()


def _whole(head: bytes, key: str, data: bytes) -> bool:
    if len(head) != _HEADER.size:
        return False
    magic, version, name, digest, length = _HEADER.unpack(head)
    said = magic, version, name, length, digest
    return bool(
        said[:4] == (_MAGIC, FORMAT, bytes.fromhex(key), len(data))
        and digest == hashlib.sha256(data).digest()
    )
