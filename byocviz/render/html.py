"""A recording as one HTML file that opens anywhere, offline, without a server.

The page holds the viewer's bundle and the recording as gzip'ed JSON; every string of the
recording stays data inside it. Its Content-Security-Policy names the viewer's script by its hash,
so no other script runs (but for the layout worker that it starts), and forbids every connection.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from byocviz.errors import MissingPackage
from byocviz.recording.payload import encode
from byocviz.recording.printable import printable
from byocviz.recording.schema import SCHEMA, RecordingData

VIEWER = Path(__file__).resolve().parent.parent / "viewer"
THEMES = ("light", "dark")
_FILES = ("viewer.js", "viewer.css", "worker.js", "graphviz.wasm.gz")


class Bundle(NamedTuple):
    """What ``npm run build`` makes of the viewer."""

    script: str
    style: str
    worker: str
    """The script of the layout worker."""
    graphviz: str
    """Graphviz as WebAssembly for it: gzip, then base64."""


def to_html(
    recording: RecordingData,
    *,
    step: str | None = None,
    title: str | None = None,
    theme: str | None = None,
    replay: dict[str, Any] | None = None,
) -> str:
    """The page. It opens at ``step`` (by its name; by default at the merge step, else at the
    last), is called ``title`` (by default as the recording) and is ``"light"`` or ``"dark"``
    (by default as the reader's system). With ``replay``, which
    `byocviz.render.replay.replay_options` makes, it opens in presenter mode.

    Raises `MissingPackage` where the viewer's bundle was not built, `StepMissing` for a step
    that a `Recording` does not have, ValueError for another theme.
    """
    if theme is not None and theme not in THEMES:
        raise ValueError(f"theme is {theme!r}; it can be {' or '.join(map(repr, THEMES))}")
    if step is not None and hasattr(recording, "step"):
        recording.step(step)
    script, style, worker, graphviz = bundle()
    name = title or recording.title or "byocviz"
    options = {"step": step, "title": title, "theme": theme, "replay": replay}
    texts, drawn = pages(recording)
    return _PAGE.format(
        csp=html.escape(policy(script), quote=True),
        title=html.escape(printable(name, limit=200)),
        style=style,
        worker=worker,
        graphviz=graphviz,
        options=_inert(msgspec.json.encode({k: v for k, v in options.items() if v is not None})),
        recording=_packed(drawn),
        texts=_packed(texts),
        script=script,
    )


def pages(recording: RecordingData) -> tuple[bytes, bytes]:
    """The recording as two pieces of JSON: its IR texts, which most readers never open, and the
    rest in the compact form of `byocviz.recording.payload`."""
    replace = msgspec.structs.replace
    compact: dict[str, Any] = msgspec.msgpack.decode(
        encode(replace(recording, texts={})), strict=False
    )
    compact["schema"] = SCHEMA
    return msgspec.json.encode(recording.texts), msgspec.json.encode(compact)


@lru_cache(maxsize=1)
def _read(stamp: tuple[float, ...]) -> Bundle:
    files = [(VIEWER / "dist" / name).read_bytes() for name in _FILES]
    script, style, worker = (data.decode() for data in files[:3])
    found = Bundle(script, style, worker, base64.b64encode(files[3]).decode())
    for text, ends in (
        (found.script, ("</script", "<!--")),
        (found.worker, ("</script", "<!--")),
        (found.style, ("</style",)),
    ):
        for end in ends:
            if end in text.lower():
                raise AssertionError(
                    f"the viewer's bundle holds {end!r} and cannot stand in a page"
                )
    return found


def bundle() -> Bundle:
    """The viewer's bundle. Raises `MissingPackage` where it was not built."""
    try:
        stamp = tuple((VIEWER / "dist" / name).stat().st_mtime for name in _FILES)
    except OSError as error:
        raise MissingPackage(
            f"The viewer's bundle is missing: {error.filename} does not exist.",
            f"Build it with Node.js 18 or later: npm --prefix {VIEWER} ci && "
            f"npm --prefix {VIEWER} run build",
        ) from error
    return _read(stamp)


def policy(script: str) -> str:
    """The page's Content-Security-Policy: only this script, its workers, and nothing fetched."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src 'sha256-{digest}' 'wasm-unsafe-eval'",
            "worker-src blob:",
            "style-src 'unsafe-inline'",
            "img-src data: blob:",
            "connect-src 'none'",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def _packed(data: bytes) -> str:
    # mtime=0: the same recording gives the same page.
    return base64.b64encode(gzip.compress(data, 9, mtime=0)).decode()


def _inert(data: bytes) -> str:
    """JSON that cannot end the script element it stands in."""
    return data.decode().replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


# What takes longest to get ready comes first: the worker, then the script that starts it. It reads
# the data behind it when all of it is there.
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{csp}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="byocviz">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<div id="byocviz-root"><noscript>This page draws with JavaScript, which is switched off here.\
</noscript></div>
<script type="text/plain" id="byocviz-worker">{worker}</script>
<script>{script}</script>
<script type="application/octet-stream" id="byocviz-graphviz">{graphviz}</script>
<script type="application/json" id="byocviz-options">{options}</script>
<script type="application/octet-stream" id="byocviz-recording">{recording}</script>
<script type="application/octet-stream" id="byocviz-texts">{texts}</script>
</body>
</html>
"""
