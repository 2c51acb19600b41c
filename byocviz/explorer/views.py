"""What is looked at, between the views in a browser and the explorer."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from byocviz.explorer.static import still
from byocviz.explorer.viewer import Viewer
from byocviz.recording.printable import printable
from byocviz.recording.schema import STEPS
from byocviz.recording.stops import LAYOUTS, TABS, Stop, read_stop

if TYPE_CHECKING:
    from byocviz.explorer.explorer import Explorer

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
_LARGEST_PICTURE = 600_000
_LARGEST_DRAWING = 50_000_000
_numbers = itertools.count(1)


class Views:
    """All views of one explorer: they show the same, and each may be the one that moves on."""

    def __init__(self, explorer: Explorer, height: int) -> None:
        self._explorer = explorer
        self._name = f"byocviz{next(_numbers)}-{os.getpid()}"
        self.where: dict[str, str] = {"layout": "", "tab": "graph", "from": "", "function": ""}
        """Pane layout, tab, step on the left and drawn function, as in a `Stop`."""
        self.drawn: Mapping[str, Any] = {}
        """What a view last said it drew: ``rev``, ``step`` and ``milliseconds`` in the browser."""
        self._zoom: Any = None
        self._picture = ""
        self._drawing: Path | None = None
        self._handle: Any = None
        self.viewer = Viewer(self._name, self._heard, self.shown, height=height)

    # -- to the views

    def publish(self) -> int:
        """Send what the session has; returns the state's number, which ``drawn`` answers."""
        session = self._explorer.session
        done = session.done
        pending = [] if session.recording.failed else [n for n in STEPS if n not in done]
        held = sorted(self._explorer.wanted.held)
        return self.viewer.publish(session.recording, pending, held)

    def tell(self, content: Mapping[str, Any]) -> None:
        """A message to every view."""
        self.viewer.tell(content)

    def shown(self) -> dict[str, Any]:
        """What is looked at now."""
        where = {key: value for key, value in self.where.items() if value or key != "layout"}
        return {**where, "step": self._explorer.step, "select": self._explorer.selection}

    def stop(self, note: str) -> Stop:
        """What is looked at now, as a stop of a talk."""
        return read_stop({**self.shown(), "note": note, "zoom": self._zoom})

    def draw_to(self, path: Path) -> Path:
        """Have a view draw all of its graph into a file."""
        self._drawing = path
        self.tell({"type": "picture?"})
        return path

    # -- from the views

    def _heard(self, content: Mapping[str, Any]) -> None:
        """A view says something. It may be anyone's page: nothing is taken as it comes."""
        kind = content.get("type")
        if kind == "view":
            self._looked(content)
        elif kind == "hold":
            ops = content.get("ops")
            ids = [i for i in ops if type(i) is int] if isinstance(ops, list) else []
            self._explorer.held_by_view(ids, on=bool(content.get("on")))
        elif kind == "drawn":
            self.drawn = dict(content)
        elif kind == "picture":
            self._pictured(content)

    def _looked(self, content: Mapping[str, Any]) -> None:
        given = content.get("show")
        show = read_stop(given if isinstance(given, dict) else {})
        self._zoom = content.get("zoom")
        self.where = {
            "layout": show.layout if show.layout in LAYOUTS else "",
            "tab": show.tab if show.tab in TABS else "graph",
            "from": show.left,
            "function": show.function,
        }
        explorer = self._explorer
        step = show.step if show.step in STEPS else explorer.step
        moved = step != explorer.step
        with explorer.quietly():
            explorer.set_trait("selection", chosen(show))
            explorer.step = step
        self.tell({"type": "show", "except": content.get("view"), "show": self.shown()})
        if moved:
            explorer.moved()

    def _pictured(self, content: Mapping[str, Any]) -> None:
        svg, png = content.get("svg"), content.get("png")
        if isinstance(svg, str) and len(svg) < _LARGEST_DRAWING and self._drawing is not None:
            path, self._drawing = self._drawing, None
            path.write_text(svg, encoding="utf-8")
        elif isinstance(png, str) and len(png) < _LARGEST_PICTURE:
            self._picture = png
            self.refresh_still()

    # -- without widgets

    def still(self) -> str:
        """The last state as HTML without scripts."""
        return still(self._explorer.recording, self._explorer.step, self._picture, self._name)

    def refresh_still(self) -> None:
        """Bring what is kept in the notebook to what is shown."""
        self.viewer._static = still(self._explorer.recording, self._explorer.step)
        if self._handle is not None:
            with contextlib.suppress(Exception):  # a display that is gone is no matter
                self._handle.update({"text/html": self.still(), "text/plain": ""}, raw=True)

    def display(self, bundle: Mapping[str, Any]) -> None:
        """Two outputs: the widget, and beside it what stays readable without one. The second is
        hidden while a widget lives, and rewritten as things change."""
        from IPython.display import display

        title = printable(self._explorer.session.title, limit=80)
        said = f"byocviz explorer of {title!r}; without a kernel, how it last looked:"
        display({WIDGET_VIEW: bundle[WIDGET_VIEW], "text/plain": said}, raw=True)
        self._handle = display(
            {"text/html": self.still(), "text/plain": ""}, raw=True, display_id=True
        )


def chosen(stop: Stop) -> dict[str, int] | None:
    """What a stop has chosen, as the explorer's trait ``selection``."""
    if stop.op is not None:
        return {"op": stop.op}
    return None if stop.subgraph is None else {"subgraph": stop.subgraph}


def close_all(widgets: Iterable[Any]) -> None:
    """Close widgets and all that they hold: ipywidgets keeps each that is not."""
    for one in widgets:
        close_all(getattr(one, "children", ()))
        one.close()
