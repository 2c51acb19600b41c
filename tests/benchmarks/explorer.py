"""Measures the notebook explorer in a real JupyterLab: from a rule's checkbox to the drawn graph.

    python tests/benchmarks/explorer.py [--repeat 3] [--step merge]

On the bundled SSD a rule is switched off and on again. Printed are medians: the time from the click
until the browser says that the graph is drawn; that of the bare passes that had to run again for
it, measured by themselves right after in the same kernel; their ratio; what is over 1.5 times the
bare passes; and the bytes that were sent to the browser. Wants a quiet machine; the load is shown.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

EXPLORER = """\
import byocviz
from byocviz.models import ssd
ex = byocviz.explore(ssd.load(), title="SSD")
ex
"""
# The modules are those of the session, the rules those that it has now.
BARE = """\
import json, time
from tvm import relax
from byocviz.flow.relax.passes import prune
from byocviz.flow.relax.passes.merge import merge
from byocviz.flow.relax.steps.prune import to_prune

ex.wait()
sent, prepared = ex.views.viewer.bytes_sent, ex.recording.module("prepare")
rules = [rule.fusion for rule in ex.session.rules if rule.enabled]
best = 1e9
for _ in range(3):
    start = time.perf_counter()
    composite = relax.transform.FuseOpsByPattern(rules, bind_constants=True)(prepared)
    relax.transform.FuseOpsByPattern(rules, bind_constants=True, annotate_codegen=True)(prepared)
    merged, _ = merge(composite)
    if {step!r} == "prune":
        subgraphs = ex.recording.step("partition").subgraphs
        backend = ex.recording.backend.name
        prune(merged, to_prune(merged, subgraphs, ex.session.policy, backend))
    best = min(best, time.perf_counter() - start)
steps = ex.recording.steps[2:]
print("MEASURED " + json.dumps(dict(
    bare=best * 1000, sent=sent, subgraphs=len(ex.recording.last.subgraphs),
    tvm=sum(s.tvm_seconds for s in steps) * 1000,
    capture=sum(s.capture_seconds for s in steps) * 1000)))
"""
# A view tells the notebook's page when it has drawn a state.
TOGGLE = """rule => new Promise((go, fail) => {
  const label = [...document.querySelectorAll('.widget-checkbox label')]
    .find(one => one.textContent.includes(rule));
  const start = performance.now();
  const on = event => {
    const said = event.data?.byocviz;
    if (said?.type !== 'drawn') return;
    window.removeEventListener('message', on);
    go([performance.now() - start, said.milliseconds]);
  };
  window.addEventListener('message', on);
  setTimeout(() => fail(new Error('nothing was drawn')), 60000);
  label.querySelector('input').click();
})"""


def measure(desk: Any, rule: str, repeat: int) -> list[dict[str, float]]:
    """One row a toggle."""

    def bare() -> dict[str, float]:
        cell = desk.page.locator(".jp-Cell").nth(1)
        before = cell.locator(".jp-InputPrompt").first.inner_text()
        cell.locator(".cm-content").first.click()
        desk.page.keyboard.press("Control+Enter")
        desk.until(
            "before => { const t = document.querySelectorAll('.jp-Cell')[1].querySelector("
            "'.jp-InputPrompt').innerText; return t !== before && !t.includes('*') }",
            before,
            120,
            frame=False,
        )
        text = cell.locator(".jp-OutputArea-output", has_text="MEASURED").last.inner_text()
        return dict(json.loads(text.split("MEASURED ")[1].splitlines()[0]))

    rows = []
    last = bare()
    for _ in range(2 * repeat):
        desk.page.wait_for_timeout(1500)
        total, browser = desk.page.evaluate(TOGGLE, rule)
        desk.page.wait_for_timeout(2500)
        now = bare()
        rows.append(
            {**now, "total": total, "browser": browser, "bytes": now["sent"] - last["sent"]}
        )
        last = now
    return rows


def main() -> None:
    from playwright.sync_api import sync_playwright

    from tests.browser import FLAGS, chromium
    from tests.explorer.lab import Desk, serving, write_notebook

    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--rule", default="tensorrt.clip")
    parser.add_argument("--step", default="merge", choices=["merge", "prune"])
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, sync_playwright() as driver:
        folder = Path(name)
        write_notebook(folder / "ssd.ipynb", EXPLORER, BARE.replace("{step!r}", repr(args.step)))
        browser = driver.chromium.launch(executable_path=chromium(), args=FLAGS)
        with serving(folder) as address:
            page = browser.new_page(viewport={"width": 1500, "height": 1400})
            desk = Desk(page, address).open("ssd.ipynb")
            desk.run([0])
            desk.at("import")
            desk.button("Run all").click()
            desk.page.wait_for_timeout(6000)
            desk.frame.locator(".step", has_text=args.step).first.click()
            desk.at(args.step)
            measure(desk, args.rule, 1)
            rows = measure(desk, args.rule, args.repeat)
        browser.close()
    print(f"SSD, {args.rule} off and on, drawn at {args.step}; load {os.getloadavg()[0]:.1f}")
    for kind, some in (("off", rows[::2]), ("on", rows[1::2])):
        middle = {key: statistics.median(row[key] for row in some) for key in some[0]}
        total, bare = middle["total"], middle["bare"]
        print(
            f"  {kind:<4}{middle['subgraphs']:4.0f} subgraphs: {total:6.0f} ms to the drawn graph, "
            f"of it {middle['browser']:.0f} in the browser; bare passes {bare:.0f} ms; "
            f"{total / bare:.2f} x; {total - 1.5 * bare:+.0f} ms over 1.5 x; "
            f"{middle['bytes'] / 1000:.0f} kB sent"
        )


if __name__ == "__main__":
    main()
