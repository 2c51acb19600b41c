"""Pictures out of data URLs, which may come from anyone. Needs Pillow."""

from __future__ import annotations

import base64
import binascii
import io
import re
from typing import Any

from byocviz.errors import missing

SIDE = 4096
"""Pixels of a side of a picture, at most."""
_BYTES = 64 * 2**20
_URL = re.compile(r"data:image/(jpeg|png);base64,")


class Unreadable(Exception):
    """Says in a few words why there is no picture."""


def decode(url: str) -> Any:
    """The picture as a NumPy array, uint8 [height, width, 3].

    Nothing is decoded before its size is known. Raises `Unreadable`, and `MissingPackage` where
    Pillow is not installed.
    """
    try:
        from PIL import Image
    except ImportError as error:  # matplotlib brings it, so this is a broken installation
        raise missing("pillow", "plots", "to read a photo") from error
    import numpy as np

    if not url:
        raise Unreadable("the picture was not kept")
    kind = _URL.match(url)
    if kind is None:
        raise Unreadable("not a JPEG or PNG as a data URL")
    if len(url) > _BYTES:
        raise Unreadable("the picture is too large")
    try:
        data = base64.b64decode(url[kind.end() :], validate=True)
        with Image.open(io.BytesIO(data), formats=[kind[1].upper()]) as opened:
            if max(opened.size) > SIDE:
                width, height = opened.size
                raise Unreadable(f"too large: {width:,} x {height:,} pixels")
            return np.asarray(opened.convert("RGB"))
    except Image.DecompressionBombError as error:
        raise Unreadable("the picture is too large") from error
    except (
        binascii.Error,
        OSError,
        ValueError,
        SyntaxError,  # Pillow's for a broken PNG
        EOFError,
        MemoryError,
        RuntimeWarning,
    ) as error:
        raise Unreadable("the picture cannot be read") from error
