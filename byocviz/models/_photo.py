"""A photo of whatever holds one, as a Pillow image."""

from __future__ import annotations

import os
from typing import Any

from byocviz.errors import ModelError, missing


def photo(image: str | os.PathLike[str] | Any) -> Any:
    """A Pillow image in RGB, of a path, a Pillow image or a uint8 array [height, width, 3].

    Raises `ModelError` for a file that is no image and for an array of another form.
    """
    import numpy as np

    try:
        from PIL import Image, ImageOps, UnidentifiedImageError
    except ImportError as error:
        raise missing("pillow", "relax", "to read and resize a photo") from error

    def colours(opened: Any) -> Any:
        # A telephone keeps its pictures as the sensor lies, and says how to turn them.
        turned = ImageOps.exif_transpose(opened)
        if turned.mode.startswith("I;16"):
            turned = Image.fromarray((np.asarray(turned) >> 8).astype(np.uint8))
        if not turned.width or not turned.height:
            raise ValueError("it has no pixels")
        return turned.convert("RGB")

    if isinstance(image, Image.Image):
        try:
            return colours(image)
        except (OSError, ValueError) as error:
            raise ModelError(
                f"The Pillow image cannot be used: {error}", "Give one that is open and not empty."
            ) from error
    if isinstance(image, (str, os.PathLike)):
        try:
            with Image.open(image) as opened:
                return colours(opened)
        except (
            OSError,
            ValueError,
            UnidentifiedImageError,
            Image.DecompressionBombError,
        ) as error:
            raise ModelError(
                f"{os.fspath(image)!r} cannot be read as an image: {error}",
                "Give the path of a JPEG or PNG file.",
            ) from error
    array = np.asarray(image)
    if array.dtype != np.uint8 or array.ndim != 3 or array.shape[2] != 3 or not array.size:
        raise ModelError(
            f"An image array is uint8 [height, width, 3]; this is {array.dtype} "
            f"{list(array.shape)}.",
            "Give RGB values from 0 to 255, the channel last.",
        )
    return Image.fromarray(array)
