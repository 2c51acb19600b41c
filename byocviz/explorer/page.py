"""The page in the frame of a notebook's view: the viewer, without a recording."""

from __future__ import annotations

import gzip
import hashlib
from functools import lru_cache
from pathlib import Path

from byocviz.errors import MissingPackage
from byocviz.render.html import VIEWER, bundle, policy

OUTER = VIEWER / "dist" / "notebook.js"
_FRAME = ("frame.js", "frame.css")


def outer() -> str:
    """The module that the front end loads. Raises `MissingPackage` where it was not built."""
    return _text(OUTER)


def page() -> tuple[str, bytes]:
    """The digest of the page, and the page gzip'ed. Raises as `outer` does."""
    bundle()  # says what is missing, and how to build it
    return _page(tuple((VIEWER / "dist" / name).stat().st_mtime for name in _FRAME))


@lru_cache(maxsize=1)
def _page(stamp: tuple[float, ...]) -> tuple[str, bytes]:
    found = bundle()
    script, style = (_text(VIEWER / "dist" / name) for name in _FRAME)
    text = _PAGE.format(
        csp=policy(script).replace("'", "&#39;"),
        style=style,
        worker=found.worker,
        graphviz=found.graphviz,
        script=script,
    )
    data = gzip.compress(text.encode(), 6, mtime=0)
    return hashlib.blake2b(data, digest_size=12).hexdigest(), data


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise MissingPackage(
            f"The viewer's bundle is missing: {path} cannot be read ({error.strerror}).",
            f"Build it with Node.js 18 or later: npm --prefix {VIEWER} ci && "
            f"npm --prefix {VIEWER} run build",
        ) from error


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{csp}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>byocviz</title>
<style>{style}</style>
</head>
<body>
<div id="byocviz-root"></div>
<script type="text/plain" id="byocviz-worker">{worker}</script>
<script type="application/octet-stream" id="byocviz-graphviz">{graphviz}</script>
<script>{script}</script>
</body>
</html>
"""
