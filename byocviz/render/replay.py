"""The page of a talk: the same page as any other, opening in presenter mode; and the recording of
a page that was written before.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
import zlib
from collections.abc import Sequence
from typing import Any

import msgspec

from byocviz.errors import RecordingError
from byocviz.recording.check import check
from byocviz.recording.file import MAX_BYTES
from byocviz.recording.payload import Payload, assemble
from byocviz.recording.recording import Recording
from byocviz.recording.schema import SCHEMA
from byocviz.recording.stops import read_pause

# As for a file: what decoding takes follows from what is in the JSON, not from its bytes.
_MAX_CONTAINERS = 2_000_000
_MAX_ITEMS = 8_000_000
_PROBLEMS = 100


def replay_options(
    step: str | None = None,
    autoplay: float | bool = False,
    problems: Sequence[str] = (),
) -> dict[str, Any]:
    """What the page is told, for the argument ``replay`` of `byocviz.render.html.to_html`.

    ``step`` is where it begins; ``autoplay`` goes on by itself, with a number each so many
    seconds where a stop says nothing else; ``problems`` are shown above the drawing.

    Raises ValueError for a pause that is not from 0.1 to 3600 seconds.
    """
    made: dict[str, Any] = {}
    if step is not None:
        made["step"] = step
    if autoplay:
        made["auto"] = True
        if autoplay is not True:
            made["seconds"] = read_pause(autoplay)
            if made["seconds"] is None:
                raise ValueError(f"autoplay is {autoplay!r}; a pause is from 0.1 to 3600 seconds")
    if problems:
        made["problems"] = [text[:400] for text in problems[:_PROBLEMS]]
    return made


def from_html(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> Recording:
    """The recording in a page that `to_html` wrote. Nothing in the page is run.

    Raises `RecordingError` where the file cannot be read, holds no recording, is damaged, of a
    newer schema, or unpacks to more than ``max_bytes``.
    """
    name = os.fspath(path)
    try:
        with open(path, "rb") as file:
            page = file.read(max_bytes + 1)
    except (OSError, ValueError) as error:
        cause = getattr(error, "strerror", None) or error
        raise RecordingError(
            f"{name} cannot be read: {cause}.", "Name a .byocviz file, or a page made of one."
        ) from error
    if len(page) > max_bytes:
        raise RecordingError(f"{name} is larger than {max_bytes:,} bytes.", "Name another file.")
    data = _unpacked(page, "byocviz-recording", name, max_bytes)
    if data is None:
        raise RecordingError(
            f"{name} is a page that holds no recording of byocviz.",
            "Name a .byocviz file, or a page that `byocviz show FILE -o page.html` wrote.",
        )
    _not_crowded(data, name)
    texts = _unpacked(page, "byocviz-texts", name, max_bytes)
    try:
        schema = msgspec.json.decode(data, type=_Head).schema
        if schema > SCHEMA:
            raise RecordingError(
                f"{name} holds a recording of schema {schema}; this byocviz reads up to schema "
                f"{SCHEMA}.",
                "Upgrade: pip install --upgrade byocviz. Or open the page itself in a browser and "
                "press Shift P: it brings the viewer that it was made with.",
            )
        recording = assemble(msgspec.json.decode(data, type=Payload))
        if texts is not None:
            recording.texts = msgspec.json.decode(texts, type=dict[str, str])
    except RecordingError:
        raise
    except (msgspec.MsgspecError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise _damaged(name, f"its data does not follow the schema ({error})") from error
    check(recording, name)
    return recording


class _Head(msgspec.Struct):
    schema: int = SCHEMA


def _unpacked(page: bytes, element: str, name: str, limit: int) -> bytes | None:
    """What a script element of the page holds; None where there is no such element."""
    found = re.search(rb'<script [^>]{0,200}id="%b">([^<]*)</script>' % element.encode(), page)
    if found is None:
        return None
    try:
        packed = base64.b64decode(found[1], validate=True)
        unpacker = zlib.decompressobj(wbits=31)
        data = unpacker.decompress(packed, limit + 1)
    except (binascii.Error, zlib.error) as error:
        raise _damaged(name, f"its data does not unpack ({error})") from error
    if len(data) > limit:
        raise RecordingError(
            f"{name} unpacks to more than {limit:,} bytes.",
            "byocviz.replay opens smaller recordings; name another file.",
        )
    if not unpacker.eof:
        raise _damaged(name, "its data is cut short")
    return data


def _not_crowded(data: bytes, name: str) -> None:
    if data.count(b"[") + data.count(b"{") > _MAX_CONTAINERS or data.count(b",") > _MAX_ITEMS:
        raise RecordingError(
            f"{name} holds more lists, dicts or numbers than a recording could.",
            "Save the recording as a .byocviz file and name that.",
        )


def _damaged(name: str, what: str) -> RecordingError:
    return RecordingError(f"{name} is damaged: {what}.", "Fetch the file again, or export again.")


def is_page(path: str | os.PathLike[str]) -> bool:
    """Whether a file's name or its beginning is that of an HTML page."""
    if os.fspath(path).lower().endswith((".html", ".htm")):
        return True
    try:
        with open(path, "rb") as file:
            return file.read(64).lstrip().lower().startswith((b"<!doctype html", b"<html"))
    except (OSError, ValueError):
        return False
