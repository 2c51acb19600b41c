"""The explorer in a real JupyterLab, and a real Notebook 7, in a real Chromium: the project's own
notebooks, by clicks and keys."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import byocviz
from byocviz.recording.schema import STEPS
from tests.explorer.lab import Desk, cells_with, outputs, serving, take

SHOTS = os.environ.get("BYOCVIZ_SHOTS")
NEEDED = ("import byocviz", "@I.ir_module", "mod = ssd.load()", "byocviz.explore(")
"""What those cells hold that the explorer needs; the others are run by tests/notebooks."""
ADD = "tutorial.add"

pytestmark = pytest.mark.xdist_group("jupyter")


def shot(desk: Desk, name: str) -> None:
    if SHOTS:
        desk.shot(Path(SHOTS) / f"explorer-{name}.png")


@pytest.fixture(scope="module")
def place(built: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lab")
    take("01_walkthrough", folder)
    take("02_ssd_on_tensorrt", folder)
    return folder


@pytest.fixture(scope="module")
def lab(place: Path) -> Iterator[str]:
    with serving(place) as address:
        yield address


@pytest.fixture
def desk(lab: str, place: Path, browser: Any, request: pytest.FixtureRequest) -> Iterator[Desk]:
    """JupyterLab with the notebook that the test names, run as far as the explorer."""
    context = browser.new_context(viewport={"width": 1500, "height": 1250})
    desk = Desk(context.new_page(), lab).open(f"{request.param}.ipynb")
    desk.run(cells_with(place / f"{request.param}.ipynb", *NEEDED))
    desk.button("Run all").scroll_into_view_if_needed()
    yield desk
    context.close()
    assert desk.errors == []


def rail(desk: Desk, step: str = "merge") -> str:
    return str(desk.frame.locator(".step", has_text=step).first.inner_text())


def subgraphs(desk: Desk, step: str = "merge") -> int:
    """What the rail says of a step."""
    return int(rail(desk, step).split("→")[1].split()[0].replace(",", ""))


def toggle(desk: Desk, rule: str) -> None:
    """Switch a rule, and wait until the graph is drawn with what came of it."""
    before = subgraphs(desk)
    desk.tab("Rules")
    desk.page.get_by_placeholder("find a rule").fill(rule)
    desk.page.wait_for_timeout(300)
    desk.page.locator("label.widget-label-basic", has_text=rule).first.click()
    desk.until(
        "n => { const t = [...document.querySelectorAll('.step')].find(s =>"
        " s.textContent.includes('merge')).textContent; return t.includes('→') &&"
        " Number(t.split('→')[1].match(/[0-9,]+/)[0].replace(',', '')) !== n }",
        before,
        120,
    )
    desk.at("merge")


# -- notebook 01


def every_step_by_the_widget(desk: Desk) -> None:
    desk.at("import")
    assert "not run yet" in rail(desk, STEPS[1])
    for step in STEPS[1:]:
        desk.button("▶").first.click()
        desk.at(step, 120)
    shot(desk, "steps")
    # And by the viewer's own rail, which the slider follows.
    desk.frame.locator(".step", has_text="merge").first.click()
    desk.at("merge")
    desk.page.wait_for_function(
        "[...document.querySelectorAll('.widget-readout')].some(one => one.textContent === 'merge')"
    )


def a_rule_off_changes_the_subgraphs(desk: Desk) -> None:
    before = subgraphs(desk)
    toggle(desk, ADD)
    assert subgraphs(desk) < before
    shot(desk, "rules")
    desk.tab("Compare")
    desk.page.wait_for_timeout(300)
    shot(desk, "compared")
    said = desk.page.locator(".widget-tab-contents").inner_text()
    assert "coverage" in said
    assert ADD in said
    toggle(desk, ADD)
    assert subgraphs(desk) == before


def a_rule_box_marks_what_it_matches(desk: Desk) -> None:
    desk.tab("Own rule")
    box = desk.page.locator(".widget-textarea textarea").first
    box.fill("conv = (")
    desk.button("Try it").click()
    desk.page.wait_for_selector("text=Line 1", timeout=60_000)
    shot(desk, "rulebox-error")
    box.fill("while True: pass")
    desk.button("Try it").click()
    desk.page.wait_for_timeout(500)
    desk.button("Cancel").first.click()
    desk.page.wait_for_selector("text=The trial was cancelled", timeout=30_000)
    box.fill('is_op("relax.nn.conv2d")(wildcard(), wildcard())')
    desk.button("Try it").click()
    desk.page.wait_for_selector("text=They are marked in the drawing", timeout=60_000)
    desk.until("() => document.querySelectorAll('.pane-after .sel').length > 0")
    shot(desk, "rulebox")


def pruning_is_previewed(desk: Desk) -> None:
    desk.tab("Prune")
    box = desk.page.locator(".widget-text:has(label:text-is('fewer operators than')) input")
    box.fill("4")
    box.press("Tab")
    desk.page.wait_for_selector("text=at least 4 wanted", timeout=30_000)
    shot(desk, "prune")


def mark_a_stop(desk: Desk) -> None:
    desk.tab("Talk")
    desk.page.get_by_placeholder("what is said here").fill("all in one subgraph")
    desk.page.keyboard.press("Tab")
    desk.button("Mark a stop").click()
    desk.page.wait_for_selector(".widget-html li:has-text('all in one subgraph')")


def build_on_the_cpu(desk: Desk, picture: str) -> str:
    desk.tab("Build and run")
    desk.page.wait_for_timeout(300)
    runs = desk.page.locator(".widget-text:has(label:text-is('timed runs')) input")
    runs.fill("3")
    runs.press("Tab")
    desk.choose("runtime", "onnxruntime")
    desk.choose("picture", picture)
    desk.button("Build and run").last.click()
    desk.page.wait_for_timeout(700)
    shot(desk, f"building-{picture}")
    desk.until(
        "() => document.querySelector('[role=tab][aria-selected=true]')?.textContent === 'Results'",
        timeout=300,
    )
    desk.page.wait_for_timeout(1000)
    shot(desk, f"results-{picture}")
    return str(desk.frame.locator(".body").inner_text())


def save(desk: Desk) -> None:
    desk.tab("Save")
    desk.button("Save the recording").click()
    desk.page.wait_for_selector(".widget-html-content:has-text('Written:')", timeout=30_000)


def a_reload_finds_the_state(desk: Desk) -> None:
    desk.frame.locator("[role=tab]", has_text="Graph").click()
    desk.at("merge")
    desk.page.wait_for_timeout(2500)  # the picture is taken when nothing moves any more
    desk.save()
    before = subgraphs(desk)
    desk.page.reload()
    desk.page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=90_000)
    desk.at("merge", 90)
    assert subgraphs(desk) == before
    assert desk.frame.locator("[role=tab]", has_text="Results").count() == 1
    desk.tab("Talk")
    desk.page.wait_for_selector(".widget-html li:has-text('all in one subgraph')")
    # What stands in for the widget elsewhere is not seen beside it.
    assert not desk.page.locator("[data-byocviz-static]").first.is_visible()
    shot(desk, "reload")


def the_saved_notebook_reads_without_a_kernel(path: Path, browser: Any, tmp_path: Path) -> None:
    kept = [out["data"] for out in outputs(path) if "data" in out]
    assert any("text/html" in data for data in kept)
    assert path.stat().st_size < 1_000_000
    subprocess.run(
        [sys.executable, "-m", "nbconvert", "--to", "html", "--output-dir", str(tmp_path),
         str(path)],
        check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    context = browser.new_context(viewport={"width": 1200, "height": 1000}, offline=True)
    page = context.new_page()
    page.goto((tmp_path / f"{path.stem}.html").as_uri())
    still = page.locator("[data-byocviz-static]").first
    assert still.is_visible()
    assert "merge" in still.inner_text()
    assert page.evaluate("document.querySelector('[data-byocviz-static] img').naturalWidth") > 300
    if SHOTS:
        still.scroll_into_view_if_needed()
        page.screenshot(path=str(Path(SHOTS) / "explorer-static.png"))
    context.close()


def a_kernel_that_was_restarted_is_said(desk: Desk, path: Path) -> None:
    desk.restart_kernel()
    desk.page.wait_for_selector("[role=alert]:has-text('run this cell again')", timeout=60_000)
    # What was drawn can still be looked at, every step of it.
    desk.frame.locator(".step", has_text="composite").first.click()
    desk.at("composite")
    shot(desk, "restarted")
    for number in cells_with(path, *NEEDED):
        desk.again(number)
    desk.until(
        "() => !document.querySelector('[role=alert].byocviz-gone')", timeout=60, frame=False
    )
    desk.at("import", 90)


@pytest.mark.parametrize("desk", ["01_walkthrough"], indirect=True)
def test_notebook_01_from_the_first_step_to_a_restarted_kernel(
    browser: Any, desk: Desk, place: Path, tmp_path: Path
) -> None:
    """One after the other, in one notebook: each goes on where the one before ended."""
    path = place / "01_walkthrough.ipynb"
    every_step_by_the_widget(desk)
    a_rule_off_changes_the_subgraphs(desk)
    a_rule_box_marks_what_it_matches(desk)
    pruning_is_previewed(desk)
    mark_a_stop(desk)
    text = build_on_the_cpu(desk, "none")
    assert "TVM alone" in text
    assert "ms" in text
    save(desk)
    recording = byocviz.load(place / "walkthrough.byocviz")
    assert [step.name for step in recording.steps] == list(STEPS)
    assert recording.extra["stops"][0]["note"] == "all in one subgraph"
    assert recording.results.latency is not None
    a_reload_finds_the_state(desk)
    the_saved_notebook_reads_without_a_kernel(path, browser, tmp_path)
    a_kernel_that_was_restarted_is_said(desk, path)


@pytest.mark.parametrize("desk", ["02_ssd_on_tensorrt"], indirect=True)
def test_notebook_02_sees_what_is_in_a_picture(desk: Desk, place: Path) -> None:
    """A recognisable model, in a process of its own."""
    desk.page.locator("label", has_text="own process").first.click()
    desk.button("Run all").click()
    desk.frame.locator(".step", has_text="merge").first.click()
    desk.at("merge", 120)
    assert subgraphs(desk) == 1
    shot(desk, "ssd")
    text = build_on_the_cpu(desk, "chelsea")
    assert "TVM alone" in text
    assert "cat" in text
    save(desk)
    recording = byocviz.load(place / "SSDLite MobileNetV2.byocviz")
    assert recording.results.photos[0].detected[0].found
    assert recording.results.latency is not None


def menu(desk: Desk) -> None:
    """By a node's menu it, and what depends on it, stays on TVM; and no longer."""
    for words, held in (("Do not offload after", 1), ("Offload after it again", 0)):
        node = desk.frame.locator(".pane-after .node.k-op", has_text="conv2d").first
        node.click(button="right")
        if held:
            shot(desk, "menu")
        desk.frame.locator("[role=menuitem]", has_text=words).click()
        desk.tab("Stays on TVM")
        desk.page.wait_for_function(
            "n => document.querySelector('.widget-select-multiple select')?.options.length === n",
            arg=held,
            timeout=60_000,
        )
        desk.page.wait_for_timeout(2000)
        desk.at("merge")
        if held:
            shot(desk, "held")


def test_notebook_7(built: None, browser: Any, tmp_path: Path) -> None:
    path = take("01_walkthrough", tmp_path)
    with serving(tmp_path, "notebook") as address:
        context = browser.new_context(viewport={"width": 1400, "height": 1150})
        desk = Desk(context.new_page(), address, "notebook").open(path.name)
        desk.run(cells_with(path, *NEEDED))
        desk.at("import")
        for step in STEPS[1:5]:
            desk.button("▶").first.click()
            desk.at(step)
        assert subgraphs(desk) == 3
        shot(desk, "notebook7")
        menu(desk)
        assert desk.errors == []
        context.close()
