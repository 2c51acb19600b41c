"""What each variant of a build finds in photos."""

from __future__ import annotations

import base64
import io
import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from byocviz.building.variants import calling, engine_inputs
from byocviz.errors import ArgumentError, ByocvizError, ModuleError
from byocviz.progress import progress as show_progress
from byocviz.recording.printable import printable
from byocviz.recording.results import Detected, Found, Photo

if TYPE_CHECKING:
    from byocviz.building.built import Build

SIDE = 400
"""The longer side of the photo that a recording keeps, in pixels."""
MOST = 10_000
"""Detections of one photo that a recording keeps."""

Outputs = Callable[[Mapping[str, Any]], Sequence[Any]]


def detect(build: Build, photos: Any, preprocess: Any, postprocess: Any) -> list[Photo]:
    """See `Build.detect`."""
    from byocviz.models import ssd

    before = preprocess or ssd.preprocess
    after = postprocess or ssd.postprocess
    images = {name: _opened(image) for name, image in _by_name(photos, ssd.photos).items()}
    found: list[Photo] = []
    title = f"Detections of {build.recording.title}"
    with show_progress(title, enabled=build.progress) as shown:
        variants = _variants(build)
        total = len(images) * len(variants)
        for name, image in images.items():
            inputs = _inputs(build, before(image), own=preprocess is None)
            photo = Photo(printable(name, limit=200), image.width, image.height, _kept(image))
            for title, kind, outputs in variants:
                done = len(found) * len(variants) + len(photo.detected)
                shown.update(f"{name}: {title}", done, total)
                boxes = after(list(outputs(inputs)), (image.width, image.height))
                photo.detected.append(_against(photo, Detected(title, kind, _found(boxes))))
            found.append(photo)
    return found


def _inputs(build: Build, given: Any, own: bool) -> dict[str, Any]:
    """What was made of a photo, checked. ``own``: by the bundled SSD's preprocessing."""
    try:
        return build.named(given)
    except ModuleError as error:
        if not own:
            raise
        raise ArgumentError(
            f"This is not the bundled SSD, whose preprocessing made the input: {error.message}",
            "Give the model's own: build.detect(photos, preprocess=..., postprocess=...).",
        ) from error


def _variants(build: Build) -> list[tuple[str, str, Outputs]]:
    plan = build.plan
    variants: list[tuple[str, str, Outputs]] = []
    try:
        alone = build.alone()
        names = alone.names
        variants.append(("TVM alone", "tvm", lambda i: alone.outputs({n: i[n] for n in names})))
    except ByocvizError:
        pass  # the latency comparison says why
    variants.append((f"TVM + {plan.title}", "byoc", build.run))
    whole = build.whole() if plan.choice is not None else None
    if whole is not None and whole.engine is not None:
        engine, taken = whole.engine, whole.names

        def run(inputs: Mapping[str, Any]) -> Sequence[Any]:
            values = [inputs[name] for name in taken]
            call = calling(engine, build.runnable.device, engine_inputs(engine, values))
            return [np.asarray(t.numpy()) for t in whole.first.watched(call)()]

        variants.append((f"{plan.title} alone", "runtime", run))
    return variants


def _by_name(photos: Any, default: Callable[[], dict[str, Path]]) -> dict[str, Any]:
    if photos is None:
        return dict(default())
    if isinstance(photos, Mapping):
        return {str(name): image for name, image in photos.items()}
    if isinstance(photos, (str, os.PathLike)):
        return {Path(photos).stem or "photo": photos}
    if isinstance(photos, (list, tuple)):
        named: dict[str, Any] = {}
        for number, image in enumerate(photos):
            path = isinstance(image, (str, os.PathLike))
            name = Path(image).stem if path else f"photo {number + 1}"
            named[name if name not in named else f"{name} ({number + 1})"] = image
        return named
    return {"photo": photos}


def _opened(image: Any) -> Any:
    """A Pillow image in RGB."""
    from byocviz.models._photo import photo

    if not hasattr(image, "convert") and not isinstance(image, (str, os.PathLike)):
        raise ArgumentError(
            f"A photo is a {type(image).__name__}.", "Give a path, or a Pillow image."
        )
    return photo(image)


def _kept(image: Any) -> str:
    """The photo as a small JPEG in a data URL."""
    small = image.copy()
    small.thumbnail((SIDE, SIDE))
    data = io.BytesIO()
    small.save(data, "JPEG", quality=65, optimize=True)
    return f"data:image/jpeg;base64,{base64.b64encode(data.getvalue()).decode()}"


def _found(boxes: Any) -> list[Found]:
    """Checked detections: they come from whoever wrote the postprocessing."""
    try:
        found = []
        for b in boxes:
            left, top, right, bottom = (float(side) for side in b.box)
            box = (left, top, right, bottom)
            index = int(getattr(b, "index", -1))
            if not all(map(math.isfinite, (*box, float(b.score)))) or abs(index) > 2**31:
                raise ValueError(f"{b!r:.200}")
            found.append(Found(printable(str(b.label), limit=200), float(b.score), box, index))
    except (AttributeError, TypeError, ValueError, OverflowError) as error:
        raise ArgumentError(
            f"postprocess gave something that is no detection: {error}",
            "Return a list of byocviz.models.ssd.Detection: label, score, box (four numbers).",
        ) from error
    if len(found) > MOST:
        raise ArgumentError(
            f"postprocess gave {len(found):,} detections of one photo.",
            f"Raise its threshold: at most {MOST:,} are kept.",
        )
    return found


def _against(photo: Photo, given: Detected) -> Detected:
    """With the largest differences to what the first variant found in the photo."""
    if not photo.detected:
        return given
    first = photo.detected[0]
    mine = sorted(given.found, key=lambda f: (f.label, f.box))
    theirs = sorted(first.found, key=lambda f: (f.label, f.box))
    if [f.label for f in mine] != [f.label for f in theirs]:
        given.note = f"other things than {first.variant} finds"
        return given
    pairs = list(zip(mine, theirs, strict=True))
    given.max_score = max((abs(a.score - b.score) for a, b in pairs), default=0.0)
    given.max_box = max(
        (abs(x - y) for a, b in pairs for x, y in zip(a.box, b.box, strict=True)), default=0.0
    )
    return given
