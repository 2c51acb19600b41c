"""`show`: look at a module, a model or a recording.

Not in a module of its name: importing one would put it in the place of ``byocviz.show``.
"""

from __future__ import annotations

import html
import os
import re
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from byocviz.progress import _in_notebook
from byocviz.recording import Recording, load
from byocviz.recording.printable import printable

HEIGHT = 760
"""Pixels of the view within a notebook."""
_TEXT_BROWSERS = {"www-browser", "links", "elinks", "lynx", "w3m", "links2"}


def show(
    x: Any,
    *,
    file: str | os.PathLike[str] | None = None,
    step: str | None = None,
    open_browser: bool | None = None,
) -> Path | None:
    """Show what the flow did, step by step: inline in a notebook, else as a page.

    ``x`` is a `Recording`, the path of one, or what `byocviz.record` takes (an IRModule, the path
    of a model ...), which is recorded for TensorRT first; record it yourself for another backend.

    In a script the text summary is printed, the page is written to ``file`` (by default to a
    temporary place, where it stays) and its path printed and returned. A browser opens it where
    there is a display, always with ``open_browser=True`` and never with False; nothing waits for
    it. In a notebook the view is displayed instead, and None is returned unless ``file`` is given,
    which is then written too. The view opens at ``step``, a name.

    Raises what `byocviz.load` and `byocviz.record` raise; `StepMissing` for an unknown step;
    `MissingPackage` where the viewer's bundle was not built, after the summary;
    `RecordingError` where ``file`` cannot be written.
    """
    from byocviz.render.html import bundle

    recording = recording_of(x)
    if step is not None:
        recording.step(step)
    inline = _in_notebook()
    if inline:
        _display(recording, step)
        if file is None:
            return None
    else:
        from byocviz.render.text import print_to

        print_to(recording)
        bundle()  # before a folder is made for what cannot be written
    path = recording.to_html(_place(recording) if file is None else file, step=step)
    opened = False
    if open_browser or (open_browser is None and not inline and _has_display()):
        opened = _open(path)
    said = "and opened in the browser" if opened else "(open it in a browser)"
    print(f"\nView written to {printable(str(path))} {said}")
    return path


def recording_of(x: Any) -> Recording:
    """The recording itself, the one in a file, or a new one of a module or model."""
    if isinstance(x, Recording):
        return x
    if isinstance(x, (str, os.PathLike)) and _is_recording(Path(x)):
        return load(x)
    from byocviz.flow.record import record

    return record(x)


def _is_recording(path: Path) -> bool:
    from byocviz.recording.file import MAGIC, SUFFIX

    if path.suffix == SUFFIX:
        return True  # what it is not, `load` says
    try:
        with open(path, "rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except (OSError, ValueError):
        return False


def _display(recording: Recording, step: str | None) -> None:
    """The view as the cell's output, in a frame of its own that can neither reach the notebook
    nor the network."""
    from IPython.display import display  # type: ignore[import-not-found,unused-ignore]

    from byocviz.errors import MissingPackage
    from byocviz.render.html import to_html

    try:
        page = to_html(recording, step=step)
    except MissingPackage:
        print(recording.summary())
        raise
    frame = (
        f'<iframe srcdoc="{html.escape(page, quote=True)}" sandbox="allow-scripts allow-downloads"'
        f' title="{html.escape(printable(recording.title or "byocviz", limit=200), quote=True)}"'
        f' allow="fullscreen" style="width:100%;height:{HEIGHT}px;border:0"></iframe>'
    )
    display({"text/html": frame, "text/plain": repr(recording)}, raw=True)


def _place(recording: Recording) -> Path:
    """A file of a new folder that only this user can read."""
    name = re.sub(r"[^\w.-]+", "-", recording.title, flags=re.ASCII).strip("-.")[:60]
    return Path(tempfile.mkdtemp(prefix="byocviz-")) / f"{name or 'recording'}.html"


def _has_display() -> bool:
    if sys.platform in ("darwin", "win32"):
        return "SSH_CONNECTION" not in os.environ
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _open(path: Path) -> bool:
    """Whether a browser was asked to open the page. Browsers of the terminal are left alone, and
    one that is waited for is waited for on a thread of its own."""
    import webbrowser

    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return False
    if os.path.basename(getattr(browser, "name", "") or "") in _TEXT_BROWSERS:
        return False
    asked: list[bool] = []
    uri = path.resolve().as_uri()
    thread = threading.Thread(target=lambda: asked.append(browser.open(uri)), daemon=True)
    thread.start()
    thread.join(3)
    return asked != [False]
