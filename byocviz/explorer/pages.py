"""The explorer's pages for what comes after the flow: build and run, a talk, saving."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import ipywidgets as w

from byocviz.errors import ByocvizError
from byocviz.explorer import words
from byocviz.recording.printable import printable

if TYPE_CHECKING:
    from byocviz.explorer.explorer import Explorer

WIDE = {"description_width": "initial"}
_PHOTOS = ("coffee", "chelsea", "astronaut")


class Pages:
    """What every page is made with, and the pages that change no setting."""

    def __init__(self, explorer: Explorer) -> None:
        self.explorer = explorer
        self.narrow = w.Layout(width="auto", margin="0")
        self.message = w.HTML()

    def button(self, text: str, call: Callable[[], Any], tip: str = "", **look: Any) -> w.Button:
        """A button that calls; what a person did wrong is said, not raised."""
        look.setdefault("layout", self.narrow)
        button = w.Button(description=text, tooltip=tip, **look)
        button.on_click(lambda _: self.act(call))
        return button

    def act(self, call: Callable[[], Any]) -> None:
        """Call; what a person did wrong is said, not raised."""
        try:
            call()
        except (ByocvizError, ValueError, OSError) as error:
            self.message.value = words.failure(error)

    def say(self, html: str) -> None:
        """A message under the transport controls."""
        self.message.value = html

    def _build(self) -> w.Box:
        from byocviz.building import runtimes

        self.runtime = w.Dropdown(
            options=["auto", *runtimes.names()], description="runtime", style=WIDE
        )
        self.precision = w.Dropdown(
            options=["float32", "float16"], description="precision", style=WIDE
        )
        self.photo = w.Dropdown(
            options=["none", *_PHOTOS], value="none", description="picture", style=WIDE
        )
        self.upload = w.FileUpload(accept="image/*", multiple=False, description="own picture")
        self.repeat = w.BoundedIntText(
            value=10, min=1, max=1000, description="timed runs", style=WIDE
        )
        self.built = w.HTML()
        return w.VBox(
            [
                w.HBox(
                    [self.runtime, self.precision, self.photo, self.upload, self.repeat],
                    layout=w.Layout(flex_flow="row wrap"),
                ),
                w.HBox(
                    [
                        self.button("Build and run", self._start_build, button_style="primary"),
                        self.button("Cancel", self.explorer.cancel),
                    ]
                ),
                self.message,  # here too: its other place may be out of sight
                self.built,
            ]
        )

    def _start_build(self) -> None:
        photo: Any = None if self.photo.value == "none" else self.photo.value
        if self.upload.value:
            photo = bytes(self.upload.value[0]["content"])
        self.explorer.build(
            self.runtime.value,
            fp16=self.precision.value == "float16",
            photo=photo,
            repeat=self.repeat.value,
        )

    def _talk(self) -> w.Box:
        self.note = w.Text(
            placeholder="what is said here", layout=w.Layout(width="520px"), description="note"
        )
        self.stops = w.HTML()
        return w.VBox(
            [
                w.HBox(
                    [
                        self.note,
                        self.button("Mark a stop", self._mark, button_style="primary"),
                        self.button("Take the last off", self._unmark),
                    ]
                ),
                self.stops,
            ]
        )

    def _mark(self) -> None:
        self.explorer.mark(self.note.value)
        self.note.value = ""

    def _unmark(self) -> None:
        if self.explorer.stops:
            self.explorer.unmark(len(self.explorer.stops) - 1)

    def _save(self) -> w.Box:
        name = printable(self.explorer.session.title).replace("/", "_")[:60]
        self.path = w.Text(value=f"{name}.byocviz", description="file", style=WIDE)
        self.code = w.Textarea(rows=12, layout=w.Layout(width="98%", display="none"))
        self.code.add_class("byocviz-code")
        return w.VBox(
            [
                w.HBox(
                    [
                        self.path,
                        self.button("Save the recording", lambda: self._write("save")),
                        self.button("HTML page", lambda: self._write("html")),
                        self.button("SVG of the drawing", lambda: self._write("svg")),
                        self.button("Copy as TVM code", self._code),
                    ],
                    layout=w.Layout(flex_flow="row wrap"),
                ),
                self.message,
                self.code,
            ]
        )

    def _write(self, kind: str) -> None:
        stem = self.path.value.removesuffix(".byocviz") or "recording"
        if kind == "save":
            path = self.explorer.save(f"{stem}.byocviz")
        elif kind == "html":
            path = self.explorer.to_html(f"{stem}.html")
        else:
            path = self.explorer.to_svg(f"{stem}.svg")
        self.say(words.good(f"Written: {words.text(path)}"))

    def _code(self) -> None:
        self.code.value = self.explorer.script()
        self.code.layout.display = ""
        self.explorer.views.tell(
            {"type": "copy", "text": self.code.value, "what": "Copied the pipeline"}
        )

    def show_stops(self) -> None:
        """The list of what was marked."""
        old = set(self.explorer.session.outdated)
        rows = "".join(
            f"<li><b>{words.text(s.step)}</b> {words.text(s.note)}"
            f"{' <i>(marked under other settings)</i>' if i in old else ''}</li>"
            for i, s in enumerate(self.explorer.stops[:200])
        )
        self.stops.value = f"<ol>{rows}</ol>" if rows else "<i>No stop yet.</i>"
