"""The ``.byocviz`` file.

Layout, integers little-endian::

    12 bytes  magic
     1 byte   layout of the file (LAYOUT)
     4 bytes  length of the head
     n bytes  head: JSON, readable whatever the schema (who wrote it, which schema, the sizes)
     rest     the recording as MessagePack (see `payload`), one xz stream

xz, because the steps of one recording repeat each other's IR text at distances of megabytes:
zlib looks back 32 KiB and makes the file five times larger. With a fast match finder and a 16 MiB
dictionary it is as small as zstd at level 9 and takes about 10 ms for each MB of text, comes with
Python, and its CRC-64 finds damage.

A file is foreign input: every size is checked before it is believed, and nothing in it is run.
"""

from __future__ import annotations

import gc
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from byocviz.errors import RecordingError
from byocviz.recording import schema
from byocviz.recording.atomic import named, write
from byocviz.recording.check import check, misfit
from byocviz.recording.payload import Payload, assemble, crowded, encode
from byocviz.recording.printable import printable
from byocviz.recording.recording import Recording

SUFFIX = ".byocviz"
# As PNG's: a high byte, a name, and line ends that a text-mode transfer would change.
MAGIC = b"\x93BYOCVZ\r\n\x1a\n\x00"
LAYOUT = 1
MAX_HEAD = 64 * 1024
MAX_BYTES = 256 * 1024 * 1024
"""Largest unpacked recording that `load` takes unless told otherwise."""

# What decoding takes in memory follows from what is in the payload, not from its bytes (see
# `crowded`): up to 800 bytes a container, 40 another item. These go with MAX_BYTES, and grow with
# the caller's. An SSD of 700 operators has 150,000 items, 30,000 of them containers, and takes
# 1.3 MB (96 kB stored).
_MAX_ITEMS = 8_000_000
_MAX_CONTAINERS = 2_000_000
# A small file is to stay small: what a recording has at most, for each byte stored, is 70 bytes,
# 7 items and 2 containers; xz alone would allow 7,000 bytes.
_BYTES_PER_STORED = 1000
_CONTAINERS_PER_STORED = 16
_FEW_BYTES = 16 * 1024 * 1024  # that any file may hold, and so below
_FEW_CONTAINERS = 65_536
_ITEMS_PER_CONTAINER = 16  # recordings have 5

_DICTIONARY = 16 * 1024 * 1024
_MAX_DECODER_MEMORY = 80 * 1024 * 1024  # a dictionary of 64 MiB, should a later version want it

UPGRADES: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}
"""By schema number: turns a `Payload` of that schema, as plain dicts and lists, into the next."""


class Head(msgspec.Struct):
    """What can be read of a file of any schema."""

    schema: int
    payload: int
    """Bytes of the recording, unpacked."""
    stored: int
    """Bytes of the xz stream."""
    byocviz: str = ""
    """Version that wrote the file."""


_FOREIGN = (
    (b"PK\x03\x04", "a zip archive"),
    (b"\x89PNG", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"\x1f\x8b", "a gzip file"),
    (b"\xfd7zXZ", "an xz file"),
    (b"\x28\xb5\x2f\xfd", "a zstd file"),
    (b"%PDF", "a PDF"),
    (b"\x7fELF", "a shared library"),
    (b"\x80\x04\x95", "a Python pickle"),
    (b"{", "JSON"),
    (b"<", "HTML or XML"),
)


def to_bytes(recording: schema.RecordingData, *, max_bytes: int = MAX_BYTES) -> bytes:
    """The file's contents. Raises `RecordingError` where `from_bytes` would not take them back:
    the recording is inconsistent, has a field of another type than the schema's, holds what a
    file cannot (``extra`` takes plain numbers, strings, lists and dicts) or is larger than
    ``max_bytes`` unpacked.

    Lone surrogates in the title (of a file name that is not UTF-8) are written out as escapes.
    """
    import lzma

    if isinstance(recording.title, str):
        title = recording.title.encode("utf-8", "backslashreplace").decode("utf-8")
        if title != recording.title:
            recording = msgspec.structs.replace(recording, title=title)
    payload = _encode(recording)
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 3, "dict_size": _DICTIONARY, "depth": 8}]
    packed = lzma.compress(payload, lzma.FORMAT_XZ, lzma.CHECK_CRC64, filters=filters)
    head = msgspec.json.encode(
        Head(schema.SCHEMA, len(payload), len(packed), recording.made_with.get("byocviz", "")[:64])
    )
    data = b"".join((MAGIC, bytes([LAYOUT]), len(head).to_bytes(4, "little"), head, packed))
    size = max(len(payload), len(data))
    repeated = _swollen(len(payload), len(packed), max_bytes)
    if size > max_bytes or repeated or _crowded(payload, len(packed), max_bytes):
        raise RecordingError(
            f"Recording {recording.title!r} would not load again: {size:,} bytes, of at most "
            f"{max_bytes:,}" + ("." if size > max_bytes else ", that only repeat each other."),
            "byocviz.recording.save(recording, path, max_bytes=...) takes more, and so does "
            "byocviz.load(path, max_bytes=...).",
        )
    return data


def _encode(recording: schema.RecordingData) -> bytes:
    """The payload, of which it is sure that it decodes again."""
    try:
        payload = encode(recording)
        msgspec.msgpack.decode(payload, type=Payload)
        check(recording)
    except RecordingError:
        raise
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
        cause: Exception = error
    except (RecursionError, MemoryError) as error:
        cause = error
    else:
        return payload
    raise RecordingError(
        f"Recording {recording.title!r} cannot be written: {misfit(recording) or cause}.",
        "Each field takes what byocviz.recording.schema says; only plain numbers (of 64 bits), "
        "Unicode strings, lists and dicts can be saved.",
    ) from cause


def from_bytes(data: bytes, *, name: str = "the data", max_bytes: int = MAX_BYTES) -> Recording:
    """The recording in a file's contents; ``name`` is what errors call it.

    Raises `RecordingError` for anything but a whole, consistent recording of at most
    ``max_bytes`` unpacked.
    """
    head, start = _head(data, name)
    if head.schema > schema.SCHEMA:
        writer = f"byocviz {printable(head.byocviz, limit=64)}".rstrip()
        raise RecordingError(
            f"{name} was written by {writer} with schema {head.schema}; "
            f"this byocviz reads up to schema {schema.SCHEMA}.",
            "Upgrade: pip install --upgrade byocviz",
        )
    payload = _unpack(data, start, head, name, max_bytes)
    if _crowded(payload, head.stored, max_bytes):
        raise _not_so_small(name, "lists, dicts or numbers")
    recording = _decode(payload, head, name)
    check(recording, name)
    return recording


def target(path: str | os.PathLike[str]) -> Path:
    """The file that `save` writes for ``path``: `SUFFIX` is added to a name without one.

    Raises `RecordingError` where ``path`` names no file.
    """
    return named(path, SUFFIX)


def save(
    recording: schema.RecordingData,
    path: str | os.PathLike[str],
    *,
    max_bytes: int = MAX_BYTES,
) -> Path:
    """Writes a recording; see `Recording.save`. One of more than ``max_bytes`` unpacked is
    refused, as `load` would."""
    file = target(path)
    return write(file, to_bytes(recording, max_bytes=max_bytes))


def load(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> Recording:
    """Reads a ``.byocviz`` file; needs no TVM.

    Raises `RecordingError` where the file cannot be read, is not a recording, is damaged, was
    written by a newer schema, unpacks to more than ``max_bytes``, or would take many times that
    in memory.
    """
    name = os.fspath(path)
    try:
        mode = os.stat(path).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # a folder's error is the system's
            raise ValueError("it is a device or pipe, not a file")
        with open(path, "rb") as file:
            # One more than allowed shows that there is more.
            data = file.read(max_bytes + 1)
    except (OSError, ValueError) as error:
        cause = getattr(error, "strerror", None) or error
        raise RecordingError(
            f"{name} cannot be read: {cause}.", "Name a .byocviz file that `save()` wrote."
        ) from error
    if len(data) > max_bytes:
        raise _too_large(name, len(data), max_bytes)
    return from_bytes(data, name=name, max_bytes=max_bytes)


def _swollen(payload: int, stored: int, max_bytes: int) -> bool:
    """Whether so many bytes cannot be a recording's, packed as small as that."""
    grown = max(max_bytes / MAX_BYTES, 1)
    return payload > grown * (_FEW_BYTES + stored * _BYTES_PER_STORED)


def _crowded(payload: bytes, stored: int, max_bytes: int) -> bool:
    """Whether so many items cannot be a recording's."""
    grown = max(max_bytes / MAX_BYTES, 1)
    most = min(_MAX_CONTAINERS, _FEW_CONTAINERS + stored * _CONTAINERS_PER_STORED)
    items = min(_MAX_ITEMS, most * _ITEMS_PER_CONTAINER)
    return crowded(payload, int(items * grown), int(most * grown))


def _not_so_small(name: str, what: str) -> RecordingError:
    return RecordingError(
        f"{name} holds more {what} than a recording of its size could.",
        "If you trust it: byocviz.load(path, max_bytes=...) with a larger figure.",
    )


def _too_large(name: str, size: int, limit: int) -> RecordingError:
    return RecordingError(
        f"{name} unpacks to at least {size:,} bytes; at most {limit:,} are taken.",
        "If you trust it: byocviz.load(path, max_bytes=...) with a larger figure.",
    )


def _damaged(name: str, what: str) -> RecordingError:
    return RecordingError(f"{name} is damaged: {what}.", "Fetch the file again, or record again.")


def _head(data: bytes, name: str) -> tuple[Head, int]:
    """The head, and where the xz stream starts."""
    fixed = len(MAGIC) + 5
    if not data:
        raise RecordingError(f"{name} is empty.", "Fetch the file again, or record again.")
    if data[: len(MAGIC)] != MAGIC:
        if len(data) < len(MAGIC) and MAGIC.startswith(data):
            raise _damaged(name, f"it ends after {len(data)} bytes")
        kind = next((what for start, what in _FOREIGN if data.startswith(start)), "")
        raise RecordingError(
            f"{name} is not a recording of byocviz" + (f" but looks like {kind}." if kind else "."),
            "Name a .byocviz file that `save()` wrote; a model is read by `byocviz.models`.",
        )
    if len(data) < fixed:
        raise _damaged(name, f"it ends after {len(data)} bytes")
    if data[len(MAGIC)] != LAYOUT:
        raise RecordingError(
            f"{name} has file layout {data[len(MAGIC)]}; this byocviz reads layout {LAYOUT}.",
            "Upgrade: pip install --upgrade byocviz",
        )
    length = int.from_bytes(data[fixed - 4 : fixed], "little")
    if length > MAX_HEAD:
        raise _damaged(name, f"its head claims {length:,} bytes")
    raw = data[fixed : fixed + length]
    if len(raw) < length:
        raise _damaged(name, f"it ends after {len(data)} bytes, within its head")
    try:
        head = msgspec.json.decode(raw, type=Head)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise _damaged(name, f"its head cannot be read ({error})") from error
    if head.schema < 1 or head.payload < 0 or head.stored < 0:
        raise _damaged(name, "its head holds figures that cannot be")
    return head, fixed + length


def _unpack(data: bytes, start: int, head: Head, name: str, limit: int) -> bytes:
    import lzma

    stored = len(data) - start
    if stored < head.stored:
        raise _damaged(name, f"it is cut short, {stored:,} of {head.stored:,} bytes are there")
    if stored > head.stored:
        raise _damaged(name, f"{stored - head.stored:,} bytes follow its end")
    if head.payload > limit:
        raise _too_large(name, head.payload, limit)
    if _swollen(head.payload, stored, limit):
        raise _not_so_small(name, "bytes")
    try:
        unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MAX_DECODER_MEMORY)
        # The head's figure is only a claim: one byte over it is the most that is ever unpacked.
        payload = unpacker.decompress(memoryview(data)[start:], max_length=head.payload + 1)
    except (lzma.LZMAError, EOFError, MemoryError) as error:
        raise _damaged(name, f"it does not unpack ({error})") from error
    if len(payload) != head.payload or not unpacker.eof or unpacker.unused_data:
        raise _damaged(name, f"it does not unpack to the {head.payload:,} bytes that it claims")
    return payload


def _decode(payload: bytes, head: Head, name: str) -> Recording:
    # Nothing made here can be a cycle, and the collector would walk all of it several times.
    collecting = gc.isenabled()
    gc.disable()
    try:
        if head.schema == schema.SCHEMA:
            return assemble(msgspec.msgpack.decode(payload, type=Payload))
        plain = msgspec.msgpack.decode(payload, type=dict[str, Any])
        for version in range(head.schema, schema.SCHEMA):
            if version not in UPGRADES:
                raise RecordingError(
                    f"{name} has schema {head.schema}, which this byocviz no longer reads.",
                    f"Open it with byocviz {printable(head.byocviz, limit=64)}, or record again.",
                )
            plain = UPGRADES[version](plain)
        return assemble(msgspec.convert(plain, type=Payload))
    except RecordingError:
        raise
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, MemoryError) as error:
        raise _damaged(name, f"its contents do not follow the schema ({error})") from error
    except (TypeError, ValueError, LookupError) as error:
        # An unhashable or repeated key of foreign MessagePack, or an upgrade that met one.
        raise _damaged(name, f"its contents cannot be decoded ({error})") from error
    finally:
        if collecting:
            gc.enable()
