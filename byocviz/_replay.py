"""`replay`: present a recording on a stage.

Not in a module of its name: importing one would put it in the place of ``byocviz.replay``.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from byocviz._show import _has_display, _open, _place
from byocviz.progress import _in_notebook
from byocviz.recording import Recording, load
from byocviz.recording.printable import printable


class Replay(NamedTuple):
    """What a replay needs, read and checked."""

    recording: Recording
    """With the stops that will be played, where there are any."""
    problems: list[str]
    """What in the stops could not be used, one sentence each."""


def replay(
    path: Recording | str | os.PathLike[str],
    stops: str | os.PathLike[str] | None = None,
    *,
    file: str | os.PathLike[str] | None = None,
    step: str | None = None,
    autoplay: float | bool = False,
    open_browser: bool | None = None,
) -> Path:
    """Present a recording: the viewer in large type, from stop to stop with one key.

    ``path`` is a ``.byocviz`` file, a page that byocviz wrote, or a `Recording`. Nothing is run
    again: TVM, a GPU and a network are not needed. ``stops`` is a YAML file of stops (see
    `byocviz.recording.talk`); without one, those of the recording are played, else each step that
    changed something and the results. What in the file the recording does not hold is said here
    and in the page, and the rest is played.

    The page is written to ``file`` (by default to a temporary place, where it stays), its path
    printed and returned. A browser opens it where there is a display, always with
    ``open_browser=True`` and never with False. It begins at ``step``, a name; with ``autoplay`` it
    goes on by itself, with a number each so many seconds where a stop says nothing else.

    Raises `RecordingError` for a file that is no recording, is damaged, or is of a newer schema,
    and for stops that cannot be read; `MissingPackage` for a YAML file without PyYAML, and where
    the viewer's bundle was not built; `StepMissing` for an unknown step; ValueError for a pause
    that is not from 0.1 to 3600 seconds.
    """
    from byocviz.recording.atomic import named, write
    from byocviz.render.html import bundle, to_html
    from byocviz.render.replay import replay_options

    talk = talk_of(path, stops)
    if step is not None:
        talk.recording.step(step)
    options = replay_options(step, autoplay, talk.problems)
    for problem in talk.problems:
        print(printable(problem, limit=400))
    bundle()  # before a folder is made for what cannot be written
    page = to_html(talk.recording, replay=options).encode("utf-8", "backslashreplace")
    written = write(named(_place(talk.recording) if file is None else file, ".html"), page)
    opened = False
    if open_browser or (open_browser is None and not _in_notebook() and _has_display()):
        opened = _open(written)
    said = "and opened in the browser" if opened else "(open it in a browser)"
    print(f"Replay written to {printable(str(written))} {said}")
    return written


def talk_of(
    x: Recording | str | os.PathLike[str], stops: str | os.PathLike[str] | None = None
) -> Replay:
    """The recording with the stops that are played. Raises as `replay` does."""
    from byocviz.recording.stops import misfits, stops_of, with_stops
    from byocviz.render.replay import from_html, is_page

    recording = x if isinstance(x, Recording) else from_html(x) if is_page(x) else load(x)
    if stops is not None:
        from byocviz.recording.talk import load_talk

        talk = load_talk(stops, recording)
        if not talk.stops:
            return Replay(recording, [*talk.problems, "It holds no stops: others are played."])
        return Replay(with_stops(recording, talk.stops), talk.problems)
    problems = [
        f"Stop {number}: {misfit.text}."
        for number, stop in enumerate(stops_of(recording), 1)
        for misfit in misfits(recording, stop)
    ]
    return Replay(recording, problems[:100])
