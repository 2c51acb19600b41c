"""Makes the README's pictures: screenshots of the real viewer in Chromium, and the demo's figure,
and the recording that they are of.

    python tests/pictures.py [RECORDING]

``RECORDING`` is one of the bundled SSD with results, as ``byocviz demo`` writes it; without one the
demo runs first (a minute or two, on a machine that does nothing else: the figures are shown).
The pictures go into assets/, as WebP of at most `LARGEST` bytes each, and the recording as
assets/ssd.byocviz.
"""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
ASSETS = ROOT / "assets"
LARGEST = 150_000
WIDTH, HEIGHT = 1440, 860
SCALE = 1.5
"""Pixels of the screenshot for one of the page: text stays sharp where a README is zoomed."""


class Picture(NamedTuple):
    """``link`` is the page's fragment; ``drawn``, a script, says when all is there."""

    name: str
    link: str
    drawn: str = "document.documentElement.dataset.drawn !== undefined"


def shot(browser: Any, page_file: Path, picture: Picture) -> bytes:
    """The picture as PNG, once it is drawn and nothing moves."""
    context = browser.new_context(
        viewport={"width": WIDTH, "height": HEIGHT},
        device_scale_factor=SCALE,
        reduced_motion="reduce",
        color_scheme="light",
    )
    page = context.new_page()
    page.goto(f"{page_file.as_uri()}#{picture.link}")
    page.wait_for_selector(".app")
    for _ in range(1200):
        if page.evaluate(picture.drawn):
            break
        page.wait_for_timeout(50)
    else:
        raise SystemExit(f"{picture.name}: the viewer did not draw within a minute")
    page.mouse.move(2, HEIGHT - 2)
    page.wait_for_timeout(1500)
    taken: bytes = page.screenshot()
    context.close()
    return taken


def write(name: str, png: bytes) -> Path:
    """The picture as WebP, of the best quality that is small enough."""
    from PIL import Image

    image = Image.open(io.BytesIO(png)).convert("RGB")
    for quality in range(90, 30, -5):
        made = io.BytesIO()
        image.save(made, "WEBP", quality=quality, method=6)
        if made.tell() <= LARGEST:
            break
    else:
        raise SystemExit(f"{name}: {made.tell():,} bytes; it may have {LARGEST:,}")
    path = ASSETS / f"{name}.webp"
    path.write_bytes(made.getvalue())
    print(f"{path.relative_to(ROOT)}: {image.width} x {image.height}, {made.tell():,} bytes")
    return path


SSD = [
    Picture("viewer-merge", "step=merge&view=single&node=s1"),
    Picture(
        "viewer-results",
        "step=prune&tab=results",
        "document.querySelectorAll('.result-card').length > 2",
    ),
]
WALKTHROUGH = [Picture("viewer-walkthrough", "step=merge&from=import")]
FIGURE = "demo"
RECORDING = "ssd.byocviz"
NAMES = [FIGURE, *(picture.name for picture in (*SSD, *WALKTHROUGH))]


def main(arguments: list[str]) -> int:
    sys.path.insert(0, str(ROOT))
    from playwright.sync_api import sync_playwright

    import byocviz
    from tests.browser import FLAGS, chromium
    from tests.corpus.walkthrough import walkthrough

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        if arguments:
            ssd = byocviz.load(arguments[0])
        else:
            from byocviz.demo import demo

            ssd = demo(folder / "ssd.byocviz").recording
        if not ssd.results.latency or not ssd.results.photos:
            raise SystemExit("The recording has no latency and no detections: use `byocviz demo`.")
        if not arguments or Path(arguments[0]).resolve() != ASSETS / RECORDING:
            ssd.save(ASSETS / RECORDING)
        figure = io.BytesIO()
        byocviz.plots.demo(ssd).savefig(figure, format="png")
        write(FIGURE, figure.getvalue())
        small = byocviz.record(walkthrough(), "tutorial", title="walkthrough", progress=False)
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=chromium(), args=FLAGS)
            for recording, pictures in ((ssd, SSD), (small, WALKTHROUGH)):
                page = recording.to_html(folder / "page.html")
                for picture in pictures:
                    write(picture.name, shot(browser, page, picture))
            browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
