"""Builds and runs what is explored: on the explorer's thread, with its progress and its cancel."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from byocviz.errors import ArgumentError
from byocviz.explorer.session import Stopped
from byocviz.progress import Progress

if TYPE_CHECKING:
    from byocviz.explorer.explorer import Explorer


class _Shown(Progress):
    """A progress that the explorer shows."""

    def __init__(self, explorer: Explorer) -> None:
        super().__init__("Building")
        self._explorer = explorer

    def _changed(self) -> None:
        self._explorer.say_progress(self.line().removeprefix(f"{self.title}: "))


def build_and_run(
    explorer: Explorer, runtime: str, options: Mapping[str, Any], photo: Any, repeat: int
) -> None:
    """What `Explorer.build` says. Raises what `byocviz.build` and its questions raise."""
    from byocviz.building.build import build
    from byocviz.building.isolate import Cancel

    explorer.adopt()
    recording = explorer.session.run_all()
    explorer.views.publish()
    cancel = Cancel()
    explorer._worker.on_cancel(cancel.cancel)

    def part(name: str) -> None:
        if explorer._worker.cancelled:
            raise Stopped("Cancelled.", "What was measured before stays.")
        explorer.say_progress(name)

    with _Shown(explorer):
        part("Building")
        built = build(recording, runtime=runtime, options=options or None, cancel=cancel)
        explorer.built = built
        explorer.views.publish()
        part("Comparing with TVM alone")
        built.check()
        explorer.views.publish()
        part("Timing")
        built.latency(repeat=repeat)
        explorer.views.publish()
        if photo is not None:
            part("Looking at the picture")
            built.detect(photo)
    explorer.views.where["tab"] = "results"
    explorer.views.publish()


def picture_of(photo: Any) -> Any:
    """What `Build.detect` takes for a photo; bytes become an image.

    Raises `ArgumentError` for bytes that are no image.
    """
    if isinstance(photo, bytes):
        from PIL import Image

        try:
            return Image.open(io.BytesIO(photo)).convert("RGB")
        except Exception as error:
            raise ArgumentError(
                f"The picture cannot be read: {error}", "Give a JPEG or PNG file."
            ) from error
    if isinstance(photo, str):
        from byocviz.models import ssd

        bundled = ssd.photos()
        if photo in bundled:
            return {photo: bundled[photo]}
    return photo
