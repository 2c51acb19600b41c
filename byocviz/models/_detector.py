"""What goes before and after a detector: a photo to its input, its output to named boxes.

Needs NumPy and Pillow, but neither TVM nor the framework that the model came from.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from byocviz.errors import ModelError, missing
from byocviz.models._common import check_file, first_lines
from byocviz.models._photo import photo
from byocviz.models.ssd import Detection

if TYPE_CHECKING:
    import numpy as np

METADATA = "byocviz.detector"
"""Where an ONNX file keeps what `detector` reads: a key of its ``metadata_props``."""

_MOST_CLASSES = 100_000
_LONGEST = 1_000_000  # characters of the metadata, which come with a file from anywhere


class Detector(msgspec.Struct, frozen=True, kw_only=True):
    """How a detector of GluonCV is fed and read.

    Its outputs are class ids [1, n, 1], scores [1, n, 1] and boxes [1, n, 4] (left, top, right,
    bottom, in pixels of its input); rows with nothing found hold -1.
    """

    network: str
    input: str
    height: int
    """Pixels of the input."""
    width: int
    classes: tuple[str, ...]
    mean: tuple[float, float, float]
    """Subtracted from RGB values of 0 to 1."""
    std: tuple[float, float, float]
    """What these are divided by."""

    def preprocess(self, image: str | os.PathLike[str] | Any) -> np.ndarray:
        """What the model takes: float32 [1, 3, height, width], RGB, normalised.

        ``image`` is a path, a Pillow image, or a uint8 array [height, width, 3] in RGB. It is
        resized to the input's size whatever its proportions, as GluonCV does where it validates
        (``SSDDefaultValTransform``): by area where it shrinks, bicubically where it grows,
        bilinearly where one side does the one and one the other.

        Raises `ModelError` for a file that is no image and for an array of another form.
        """
        import numpy as np

        opened = photo(image)
        width, height = opened.size
        resized = opened.resize(
            (self.width, self.height), _filter((width, height), (self.width, self.height))
        )
        mean, std = (np.asarray(value, dtype=np.float32) for value in (self.mean, self.std))
        values = (np.asarray(resized, dtype=np.float32) / np.float32(255) - mean) / std
        return np.ascontiguousarray(values.transpose(2, 0, 1)[None])

    def postprocess(
        self, outputs: Sequence[Any], size: tuple[int, int], threshold: float = 0.3
    ) -> list[Detection]:
        """What was found, best first; boxes in pixels of the photo, cut at its edges.

        ``outputs`` are the model's three; ``size`` is the photo's width and height in pixels;
        what scores below ``threshold`` (0 to 1) is left out.

        Raises `ModelError` where the outputs have another form.
        """
        import numpy as np

        arrays = [np.asarray(o.numpy() if hasattr(o, "numpy") else o) for o in outputs]
        shapes = [a.shape for a in arrays]
        rows = shapes[0][1] if shapes and len(shapes[0]) == 3 else -1
        if shapes != [(1, rows, 1), (1, rows, 1), (1, rows, 4)]:
            raise ModelError(
                f"The outputs of {self.network} are ids [1, n, 1], scores [1, n, 1] and boxes "
                f"[1, n, 4]; these are {', '.join(str(list(s)) for s in shapes) or 'none'}.",
                "Give all outputs of one run, in the model's order.",
            )
        ids, scores, boxes = (a.reshape(rows, -1) for a in arrays)
        across, down = size[0] / self.width, size[1] / self.height
        found = []
        for index, score, (left, top, right, bottom) in zip(
            ids[:, 0].tolist(), scores[:, 0].tolist(), boxes.tolist(), strict=True
        ):
            if not (0 <= index < len(self.classes) and score >= threshold):
                continue
            found.append(
                Detection(
                    label=self.classes[int(index)],
                    score=score,
                    box=(
                        _within(left * across, size[0]),
                        _within(top * down, size[1]),
                        _within(right * across, size[0]),
                        _within(bottom * down, size[1]),
                    ),
                    index=int(index),
                )
            )
        return sorted(found, key=lambda d: (-d.score, d.index, d.box))

    def metadata(self) -> str:
        """As text, for an ONNX file."""
        return msgspec.json.encode(self).decode()


def detector(model: str | os.PathLike[str] | Any) -> Detector:
    """The `Detector` that ``byocviz import-gluoncv`` left in an ONNX file, or in a ModelProto.

    Raises `ModelError` for a file that is no ONNX model or holds none.
    """
    try:
        import onnx
    except ImportError as error:
        raise missing("onnx", "relax", "to read an ONNX model") from error
    name = "the ONNX model"
    if isinstance(model, (str, os.PathLike)):
        name = str(check_file(model, "an ONNX model"))
        try:
            model = onnx.load_model(model, format="protobuf", load_external_data=False)
        except Exception as error:  # protobuf raises its own DecodeError, or what it stumbles on
            raise ModelError(
                f"{name} is not an ONNX model ({first_lines(error, 120)}).",
                "Export it again: byocviz import-gluoncv.",
            ) from error
    text = next((p.value for p in model.metadata_props if p.key == METADATA), "")
    if not text:
        raise ModelError(
            f"{name} does not say how photos go in and boxes come out.",
            "Only models that byocviz import-gluoncv wrote do; give preprocess and postprocess "
            "of your own.",
        )
    return _checked(text, name)


def _checked(text: str, name: str) -> Detector:
    try:
        if len(text) > _LONGEST:
            raise ValueError(f"{len(text)} characters")
        read = msgspec.json.decode(text, type=Detector)
        if not (0 < read.height < 1 << 16 and 0 < read.width < 1 << 16):
            raise ValueError(f"an input of {read.height} x {read.width} pixels")
        if not 0 < len(read.classes) <= _MOST_CLASSES:
            raise ValueError(f"{len(read.classes)} classes")
        if not all(read.std):
            raise ValueError("a standard deviation of 0")
    except (ValueError, msgspec.MsgspecError) as error:
        raise ModelError(
            f"What {name} says of its photos and boxes cannot be right: {str(error)[:200]}",
            "Export it again: byocviz import-gluoncv.",
        ) from error
    return read


def _filter(before: tuple[int, int], after: tuple[int, int]) -> Any:
    from PIL import Image

    if all(b > a for b, a in zip(before, after, strict=True)):
        return Image.Resampling.BOX
    if all(b < a for b, a in zip(before, after, strict=True)):
        return Image.Resampling.BICUBIC
    return Image.Resampling.BILINEAR


def _within(value: float, limit: int) -> float:
    return min(max(value, 0.0), float(limit))
