"""Measures the viewer in Chromium, on the bundled SSD and on a module of 10,000 operators.

    python tests/benchmarks/viewer.py [--repeat 9] [--page FILE.html ...]

Each figure is a median, with the least beside it: the time from the start of navigation until the
first graph is on the screen, in both panes, and from an action until the frame after its drawing:
a step change, a search, what is folded opened or folded again. "cold" are step changes right after
opening, before anything was laid out ahead. The page is opened in a window that is ready. Wants a
quiet machine; the load is printed beside the figures.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

# Runs an action and tells when the frame that shows its drawing, in both panes, was on the screen.
# The page marks it; to look for it in a loop would take the time that is measured.
DRAW = """action => new Promise((go, fail) => {
  const start = performance.now();
  const late = setTimeout(() => fail(new Error('nothing came of: ' + action)), 5000);
  new PerformanceObserver((seen, observer) => {
    const mark = seen.getEntriesByName('byocviz:painted').find(one => one.startTime > start);
    if (!mark) return;
    observer.disconnect();
    clearTimeout(late);
    go(mark.startTime - start);
  }).observe({entryTypes: ['mark']});
  new Function(action)();
})"""
# Runs an action, waits until the count of matches has changed, then a frame.
FIND = """async ({action, ready}) => {
  const task = () => new Promise(go => {
    const channel = new MessageChannel();
    channel.port1.onmessage = go;
    channel.port2.postMessage(0);
  });
  const done = new Function('return ' + ready);
  const start = performance.now();
  new Function(action)();
  while (!done()) {
    if (performance.now() - start > 5000) throw new Error('nothing came of: ' + action);
    await task();
  }
  await new Promise(go => requestAnimationFrame(() => task().then(go)));
  return performance.now() - start;
}"""
KEY = "document.body.dispatchEvent(new KeyboardEvent('keydown', {{key: '{}', bubbles: true}}))"


def measure(browser: Any, page_file: Path, repeat: int) -> dict[str, list[float]]:
    """Milliseconds, by what was measured."""
    times: dict[str, list[float]] = {}

    def note(name: str, value: float) -> None:
        times.setdefault(name, []).append(value)

    for _ in range(repeat):
        # The page's policy forbids evaluating text, which the clock inside it needs.
        context = browser.new_context(
            viewport={"width": 1600, "height": 900}, bypass_csp=True, reduced_motion="no-preference"
        )
        page = context.new_page()
        # The browser's own start of a window takes half a second of both cores.
        page.wait_for_timeout(1500)
        page.goto(page_file.as_uri())
        first = wait(page, "performance.getEntriesByName('byocviz:painted')[0]?.startTime")
        note("open", first)
        page.evaluate("document.querySelector('.canvas').focus()")

        def drawn(action: str, page: Any = page) -> float:
            return float(page.evaluate(DRAW, action))

        def step(key: str) -> float:
            return drawn(KEY.format(key))

        note("step, cold", step("ArrowRight"))
        page.wait_for_timeout(2500)
        for key in ("ArrowLeft", "ArrowLeft", "ArrowRight", "ArrowRight"):
            note("step", step(key))
            page.wait_for_timeout(450)
        for query in ("op:conv2d", "reason:", "add", "on:tvm op:add"):
            search = (
                "const i = document.getElementById('search'); i.value = "
                f"'{query}'; i.dispatchEvent(new Event('input', {{bubbles: true}}))"
            )
            found = (
                f"window.__q !== '{query}' && document.querySelector('.search .count') && "
                f"(window.__q = '{query}')"
            )
            note("search", float(page.evaluate(FIND, {"action": search, "ready": found})))
            page.wait_for_timeout(60)
        page.keyboard.press("Escape")
        drawn("document.querySelectorAll('.rail .step')[1].click()")
        page.wait_for_timeout(450)
        for _ in range(2):
            for what in (".node .toggle", ".boxtop .head"):
                note(
                    "fold",
                    drawn(
                        f"document.querySelector('.pane-after {what}').dispatchEvent("
                        "new MouseEvent('click', {bubbles: true}))"
                    ),
                )
                page.wait_for_timeout(450)
        context.close()
    return times


def wait(page: Any, script: str) -> float:
    for _ in range(3000):
        value = page.evaluate(script)
        if value is not None:
            return float(value)
        page.wait_for_timeout(10)
    raise TimeoutError(script)


def main() -> None:
    from playwright.sync_api import sync_playwright

    import byocviz
    from byocviz.models import ssd
    from byocviz.render.html import to_html
    from tests.browser import FLAGS, chromium
    from tests.viewer.synthetic import large

    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--repeat", type=int, default=9)
    parser.add_argument("--page", type=Path, nargs="*", help="pages to measure instead")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        pages = [page.resolve() for page in args.page or []]
        if not pages:
            made = {
                "ssd": byocviz.record(ssd.load(), progress=False),
                "ten-thousand": large(10_000),
            }
            for name, recording in made.items():
                pages.append(Path(folder) / f"{name}.html")
                pages[-1].write_text(to_html(recording), encoding="utf-8")
        browser = driver.chromium.launch(executable_path=chromium(), args=FLAGS)
        measure(browser, pages[0], 1)
        for page in pages:
            figures = measure(browser, page, args.repeat)
            load = os.getloadavg()[0]
            print(f"{page.stem}: {page.stat().st_size / 1e6:.2f} MB, load {load:.1f}")
            for name, values in figures.items():
                print(f"  {name:<12}{statistics.median(values):8.0f} ms  ({min(values):.0f})")
        browser.close()


if __name__ == "__main__":
    main()
