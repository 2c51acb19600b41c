"""The bundled SSD: SSDLite MobileNetV2 trained on COCO, its photos, and what goes before and after.

`preprocess` and `postprocess` need NumPy and Pillow but not TVM.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from byocviz._assets import asset
from byocviz.errors import ModelError
from byocviz.models._photo import photo

if TYPE_CHECKING:
    import numpy as np
    import tvm

MODEL = "ssd_mobilenet_v2_coco.onnx"
INPUT = "image"
SIZE = 300
"""Height and width that the model takes, in pixels."""

_PHOTOS = ("coffee", "chelsea", "astronaut")


class Detection(msgspec.Struct, frozen=True):
    """Something found in a photo. The box is in pixels of the photo: left, top, right, bottom."""

    label: str
    score: float
    """0 to 1."""
    box: tuple[float, float, float, float]
    index: int = -1
    """Its class: a slot of `labels`."""


def path() -> Path:
    """The ONNX file (18 MB). Raises `ByocvizError` where it is missing."""
    return asset(MODEL)


def load() -> tvm.IRModule:
    """The SSD as a Relax module: one input ``image`` float32 [1, 3, 300, 300], three outputs.

    Raises `MissingPackage` where TVM or ONNX is not installed.
    """
    from byocviz.models.onnx import from_onnx

    return from_onnx(path())


@lru_cache(maxsize=1)
def _labels() -> tuple[str | None, ...]:
    return tuple(json.loads(asset("coco_labels.json").read_text(encoding="utf-8")))


def labels() -> list[str | None]:
    """Names of the 90 classes by index; None where COCO has no class."""
    return list(_labels())


def photos() -> dict[str, Path]:
    """The bundled photos by name: coffee, chelsea (a cat), astronaut."""
    return {name: asset(f"{name}.jpg") for name in _PHOTOS}


def preprocess(image: str | os.PathLike[str] | Any) -> np.ndarray:
    """What the model takes: float32 [1, 3, 300, 300], RGB, from -1 to 1.

    ``image`` is a path, a Pillow image, or a uint8 array [height, width, 3] in RGB. It is resized
    bilinearly to 300 x 300 whatever its proportions; then value / 127.5 - 1.

    Raises `ModelError` for a file that is no image and for an array of another form.
    """
    import numpy as np

    opened = photo(image)  # says so where Pillow is missing
    from PIL import Image

    resized = opened.resize((SIZE, SIZE), Image.Resampling.BILINEAR)
    values = np.asarray(resized, dtype=np.float32) / np.float32(127.5) - np.float32(1)
    return np.ascontiguousarray(values.transpose(2, 0, 1)[None])


def postprocess(
    outputs: Sequence[Any], size: tuple[int, int], threshold: float = 0.3
) -> list[Detection]:
    """What was found, best first.

    ``outputs`` are the model's, as ONNX Runtime or TVM's virtual machine gives them: boxes
    [1, 1917, 4] as shares (ymin, xmin, ymax, xmax), scores [1, 90, 1917] and ``selected`` [n, 3],
    rows of batch, class, box. Rows that only pad ``selected`` do not count; a fourth output with
    the number of true rows is heeded. ``size`` is the photo's width and height in pixels. Boxes
    are cut at the photo's edges. ``threshold`` below the model's own 0.3 finds nothing more.

    Raises `ModelError` where the outputs have another form.
    """
    import numpy as np

    arrays = [np.asarray(o.numpy() if hasattr(o, "numpy") else o) for o in outputs]
    if len(arrays) not in (3, 4):
        raise ModelError(
            f"The SSD has three outputs, boxes, scores and selected; here are {len(arrays)}.",
            "Give all outputs of one run, in the model's order.",
        )
    boxes, scores, selected = arrays[:3]
    names = _labels()
    if (
        boxes.ndim != 3
        or boxes.shape[2] != 4
        or scores.shape != (boxes.shape[0], len(names), boxes.shape[1])
        or selected.ndim != 2
        or selected.shape[1] != 3
    ):
        raise ModelError(
            "The SSD's outputs are [1, n, 4], [1, 90, n] and [m, 3]; these are "
            + ", ".join(str(list(a.shape)) for a in arrays[:3])
            + ".",
            "Give all outputs of one run, in the model's order.",
        )
    rows = selected.astype(np.int64)
    if len(arrays) == 4 and arrays[3].size:
        rows = rows[: max(int(arrays[3].reshape(-1)[0]), 0)]
    limits = (1, len(names), boxes.shape[1])
    rows = rows[np.all((rows >= 0) & (rows < limits), axis=1)]
    width, height = size
    found = []
    # Zero rows as padding name a box that exists: each counts once, and by its score.
    for batch, label, box in dict.fromkeys(map(tuple, rows.tolist())):
        score = float(scores[batch, label, box])
        if score < threshold:
            continue
        top, left, bottom, right = (min(max(float(v), 0.0), 1.0) for v in boxes[batch, box])
        found.append(
            Detection(
                label=names[label] or f"class {label}",
                score=score,
                box=(left * width, top * height, right * width, bottom * height),
                index=label,
            )
        )
    return sorted(found, key=lambda d: (-d.score, d.index, d.box))
