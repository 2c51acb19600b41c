"""A real Chromium, and pages of real recordings."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from byocviz.recording import Recording
from byocviz.recording.schema import RecordingData
from tests.browser import FLAGS, VIEWER, chromium

__all__ = ["FLAGS", "VIEWER", "chromium"]


@pytest.fixture(scope="session")
def ssd(built: None) -> Recording:
    """The bundled SSD, prepared: one subgraph."""
    import byocviz
    from byocviz.models import ssd

    recording = byocviz.record(ssd.load(), progress=False, title="SSD")
    recording.blockers()
    return recording


@pytest.fixture(scope="session")
def unprepared(built: None) -> Recording:
    """The bundled SSD as imported: 71 subgraphs."""
    import byocviz
    from byocviz.models import ssd

    return byocviz.record(ssd.load(), prepare=False, progress=False, title="SSD as imported")


@pytest.fixture(scope="session")
def walkthrough(built: None) -> Recording:
    """A loop by recursion round an If, with three subgraphs."""
    import byocviz
    from tests.corpus.walkthrough import walkthrough as build

    return byocviz.record(build(), "tutorial", progress=False, title="walkthrough")


class Viewer:
    """A page of a recording, and what left it or went wrong in it."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.requests: list[str] = []
        self.errors: list[str] = []
        page.on("request", self._request)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", self._console)

    def _request(self, request: Any) -> None:
        if not request.url.startswith(("file:", "blob:", "data:")):
            self.requests.append(request.url)

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.errors.append(message.text)

    def open(self, path: Path, link: str = "", drawn: bool = True) -> Viewer:
        self.page.goto(path.as_uri() + (f"#{link}" if link else ""))
        self.page.wait_for_selector(".app, .fatal")
        if drawn:
            self.drawn()
        return self

    def until(self, script: str, arg: Any = None, timeout: float = 20) -> None:
        """Waits until a script is true. Playwright's own waiting evaluates text within the page,
        which the page's Content-Security-Policy forbids."""
        end = time.monotonic() + timeout
        while not self.page.evaluate(script, arg):
            assert time.monotonic() < end, f"still not: {script} ({arg})"
            self.page.wait_for_timeout(20)

    def drawn(self, step: int | None = None) -> None:
        """Waits until a step (any by default) is drawn."""
        self.until(
            "step => step === null ? document.documentElement.dataset.drawn !== undefined"
            " : document.documentElement.dataset.drawn === String(step)",
            step,
        )
        self.page.wait_for_timeout(30)

    @property
    def step(self) -> str:
        return str(self.page.inner_text(".step[aria-current=step] .step-name"))

    def nodes(self, side: str = "after") -> int:
        return int(self.page.locator(f".pane-{side} .node").count())

    def titles(self, side: str = "after") -> list[str]:
        return list(self.page.locator(f".pane-{side} .node .title").all_text_contents())

    def key(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)
            self.page.wait_for_timeout(40)

    def hash(self) -> str:
        self.page.wait_for_timeout(200)
        return str(self.page.evaluate("location.hash"))


Open = Callable[..., Viewer]


@pytest.fixture
def view(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """Opens a recording. At the end nothing may have left the page or gone wrong in it."""
    from byocviz.render.html import to_html

    opened: list[Viewer] = []

    def open_it(
        recording: RecordingData | str, link: str = "", drawn: bool = True, **options: Any
    ) -> Viewer:
        page_options = {k: options.pop(k) for k in ("step", "title", "theme") if k in options}
        text = recording if isinstance(recording, str) else to_html(recording, **page_options)
        file = tmp_path / f"page{len(opened)}.html"
        file.write_text(text, encoding="utf-8")
        options.setdefault("viewport", {"width": 1600, "height": 900})
        context = browser.new_context(accept_downloads=True, **options)
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        viewer = Viewer(context.new_page())
        opened.append(viewer)
        return viewer.open(file, link, drawn)

    yield open_it
    for viewer in opened:
        viewer.page.context.close()
    assert [url for viewer in opened for url in viewer.requests] == []
    assert [text for viewer in opened for text in viewer.errors] == []
