"""What an explorer keeps: stops of a talk, files, the pipeline as text."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from byocviz.errors import ArgumentError, ByocvizWarning
from byocviz.recording import Recording
from byocviz.recording.stops import Stop

if TYPE_CHECKING:
    from byocviz.explorer.panel import Panel
    from byocviz.explorer.session import Session
    from byocviz.explorer.views import Views
    from byocviz.explorer.worker import Worker


class Keeping:
    """The part of an `Explorer` that changes nothing that runs."""

    session: Session
    views: Views
    panel: Panel
    step: Any
    _worker: Worker

    @property
    def recording(self) -> Recording:
        raise NotImplementedError

    def _post(self, call: Callable[[], Any]) -> None:
        raise NotImplementedError

    @property
    def stops(self) -> list[Stop]:
        """What was marked."""
        return self.session.stops

    def mark(self, note: str = "", **where: Any) -> Stop:
        """Add a stop for the replay: what is looked at now, with a note in Markdown. Fields of
        `Stop` may be given instead of what is looked at."""
        stop = self.views.stop(note)
        if where:
            unknown = ", ".join(sorted(where.keys() - set(Stop.__struct_fields__)))
            if unknown:
                raise ArgumentError(
                    f"A stop has no field {unknown}.",
                    f"Its fields: {', '.join(Stop.__struct_fields__)}.",
                )
            stop = msgspec.structs.replace(stop, **where)
        self.session.mark(stop)
        self._changed_extra()
        return stop

    def unmark(self, index: int) -> None:
        """Take a stop off, by its number from 0."""
        self.session.unmark(index)
        self._changed_extra()

    def _changed_extra(self) -> None:
        if self._worker.busy:  # a step that is being written down must not be sent
            self._worker.submit("publish", self.views.publish)
        else:
            self.views.publish()
        self._post(self.panel.show)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the recording; see `Recording.save`. Warns of stops that were marked under other
        settings than those of the recording."""
        if old := self.session.outdated:
            numbers = ", ".join(str(index + 1) for index in old[:20])
            warnings.warn(
                f"Marked under other settings than now: stop {numbers}. What such a stop says may "
                f"not be so any more; look at it, and unmark(number from 0) what is not.",
                ByocvizWarning,
                stacklevel=2,
            )
        return self.recording.save(path)

    def to_html(self, path: str | os.PathLike[str]) -> Path:
        """Write the page that opens anywhere."""
        recording = self.recording
        there = self.step in {step.name for step in recording.steps}
        return recording.to_html(path, step=self.step if there else None)

    def to_svg(self, path: str | os.PathLike[str]) -> Path:
        """Have a view write its drawing, whole, as SVG: the file is there once it answered."""
        return self.views.draw_to(Path(path))

    def script(self) -> str:
        """The pipeline as text that runs when pasted where ``mod`` is the module."""
        return self.session.script()
