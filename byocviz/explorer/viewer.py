"""The viewer as a widget: sends a recording in parts, and hears what is looked at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import anywidget
import traitlets

from byocviz.explorer.page import outer, page
from byocviz.explorer.pieces import Pieces, pack_texts
from byocviz.recording import Recording

_CSS = """
.byocviz-view { width: 100%; min-height: 120px; resize: vertical; overflow: hidden;
  border: 1px solid var(--jp-border-color2, #c3ccd8); border-radius: 8px; box-sizing: border-box; }
.byocviz-view > iframe { width: 100%; height: 100%; border: 0; display: block; }
.byocviz-still { padding: 10px 14px; }
.byocviz-bad { color: #b84600; }
.byocviz-tabs.byocviz-tabs > .lm-TabBar > .lm-TabBar-content { flex-wrap: wrap; }
.jupyter-widgets.byocviz-tabs.byocviz-tabs > .lm-TabBar .lm-TabBar-tab { flex: 0 0 auto;
  width: auto; min-width: max-content; max-width: none; padding: 0 14px; }
.byocviz-gone { padding: 10px 14px; margin-bottom: 6px; border: 1px solid #b84600;
  border-radius: 8px; background: #fdf0e6; color: #7a2e00; font-weight: 600; }
[data-jp-theme-light=false] .byocviz-bad, .vscode-dark .byocviz-bad { color: #ff9d5c; }
[data-jp-theme-light=false] .byocviz-gone, .vscode-dark .byocviz-gone { background: #3a2412;
  color: #ffc79e; border-color: #ff9d5c; }
.byocviz-code textarea { font-family: var(--jp-code-font-family, monospace); }
"""

Heard = Callable[[Mapping[str, Any]], None]


class Viewer(anywidget.AnyWidget):  # type: ignore[misc]
    """One recording, in as many views as a front end makes of it.

    ``heard`` is called with every message of a view: a mapping with a ``type`` (see
    ``viewer/src/notebook/protocol.ts``). ``shown`` gives what is looked at (``Show`` there).
    """

    _esm = traitlets.Unicode("").tag(sync=True)
    _css = traitlets.Unicode(_CSS).tag(sync=True)
    height = traitlets.Int(680).tag(sync=True)
    """Of the view, in pixels."""
    _page = traitlets.Unicode("").tag(sync=True)
    _name = traitlets.Unicode("").tag(sync=True)
    _static = traitlets.Unicode("").tag(sync=True)

    def __init__(
        self, name: str, heard: Heard, shown: Callable[[], Mapping[str, Any]], **traits: Any
    ) -> None:
        digest, self._packed_page = page()
        super().__init__(_esm=outer(), _page=digest, _name=name, **traits)
        self._heard = heard
        self._shown = shown
        self._pieces = Pieces()
        self._state: dict[str, Any] | None = None
        self._listening = False
        self._sent: set[str] = set()
        self._sent_texts: set[str] = set()
        self._texts: dict[str, str] = {}
        self.rev = 0
        self.bytes_sent = 0
        """Of recordings, as packed; the page itself is not counted."""
        self.on_msg(self._message)

    def publish(self, recording: Recording, pending: list[str], holds: list[int]) -> int:
        """Have every view show this; returns its number, which the views answer by ``drawn``."""
        parts = self._pieces.pack(recording)
        self.rev += 1
        self._texts = recording.texts
        self._state = {
            "type": "state",
            "rev": self.rev,
            "parts": {
                "head": parts.head,
                "ops": parts.ops,
                "results": parts.results,
                "extra": parts.extra,
                "steps": parts.steps,
            },
            "pending": pending,
            "holds": holds,
        }
        wanted = parts.digests()
        if self._listening:
            self._send_state([d for d in dict.fromkeys(wanted) if d not in self._sent])
        return self.rev

    def tell(self, content: Mapping[str, Any]) -> None:
        """A message to every view."""
        self.send(dict(content))

    def _send_state(self, digests: list[str], to: str = "", all_texts: bool = False) -> None:
        if self._state is None:
            return
        known = [d for d in digests if d in self._pieces.packed]
        buffers = [self._pieces.packed[d] for d in known]
        texts = {
            key: text
            for key, text in self._texts.items()
            if all_texts or key not in self._sent_texts
        }
        self._sent_texts.update(texts)
        if texts:
            buffers.append(pack_texts(texts))
        self._sent.update(known)
        self.bytes_sent += sum(map(len, buffers))
        self.send(
            {
                **self._state,
                "show": dict(self._shown()),
                "to": to,
                "pieces": [{"digest": d} for d in known],
                "texts": [] if texts else None,
            },
            buffers,
        )

    def _message(self, _: Any, content: Any, buffers: Any) -> None:
        if not isinstance(content, Mapping):
            return
        view = content.get("view")
        view = view[:80] if isinstance(view, str) else ""
        kind = content.get("type")
        if kind == "page?":
            self.send({"type": "page", "digest": self._page, "to": view}, [self._packed_page])
        elif kind == "ready":
            self._listening = True
            if self._state is not None:
                self._send_state(list(dict.fromkeys(self._digests())), view, all_texts=True)
        elif kind == "missing":
            asked = content.get("digests")
            if isinstance(asked, list):
                self._send_state([d for d in asked if isinstance(d, str)], view)
        else:
            self.send({"type": "heard", "to": view})
        self._heard({**content, "view": view})

    def _digests(self) -> list[str]:
        parts = self._state["parts"] if self._state else {}
        return [parts["head"], parts["ops"], parts["results"], parts["extra"], *parts["steps"]]
