"""The explorer in a real JupyterLab, and a real Notebook 7, in a real Chromium."""

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
from tests.explorer.lab import Desk, outputs, serving, write_notebook

SHOTS = os.environ.get("BYOCVIZ_SHOTS")
SSD = """\
from byocviz.models import ssd
ex = byocviz.explore(ssd.load(), title="SSD")
ex
"""
WALKTHROUGH = """\
from tests.corpus.walkthrough import walkthrough
ex = byocviz.explore(walkthrough(), "tutorial", title="walkthrough")
ex
"""
CLIP = "tensorrt.clip"

pytestmark = pytest.mark.xdist_group("jupyter")


def shot(desk: Desk, name: str) -> None:
    if SHOTS:
        desk.shot(Path(SHOTS) / f"explorer-{name}.png")


@pytest.fixture(scope="module")
def place(built: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lab")
    write_notebook(folder / "ssd.ipynb", SSD)
    return folder


@pytest.fixture(scope="module")
def desk(place: Path, browser: Any) -> Iterator[Desk]:
    """JupyterLab with the SSD's notebook; the tests below go on where the one before ended."""
    with serving(place) as address:
        context = browser.new_context(viewport={"width": 1500, "height": 1250})
        desk = Desk(context.new_page(), address).open("ssd.ipynb")
        desk.run(2)
        yield desk
        context.close()
        assert desk.errors == []


def subgraphs(desk: Desk, step: str = "merge") -> int:
    """What the rail says of a step."""
    text = desk.frame.locator(".step", has_text=step).first.inner_text()
    return int(text.split("→")[1].split()[0].replace(",", ""))


def every_step_by_the_widget(desk: Desk) -> None:
    desk.at("import")
    assert "not run yet" in desk.frame.locator(".step").nth(1).inner_text()
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
    desk.tab("Rules")
    desk.page.get_by_placeholder("find a rule").fill(CLIP)
    desk.page.wait_for_timeout(500)
    desk.page.locator("label.widget-label-basic", has_text=CLIP).first.click()
    desk.until(
        "n => { const t = [...document.querySelectorAll('.step')].find(s =>"
        " s.textContent.includes('merge')).textContent; return t.includes('→') &&"
        " Number(t.split('→')[1].match(/[0-9,]+/)[0].replace(',', '')) !== n }",
        before,
        120,
    )
    desk.at("merge")
    assert subgraphs(desk) > before
    desk.tab("This run")
    desk.page.wait_for_timeout(500)
    shot(desk, "rule")
    said = desk.page.locator(".widget-tab-contents").inner_text()
    assert "coverage" in said
    assert CLIP in said
    desk.tab("Rules")
    desk.page.locator("label.widget-label-basic", has_text=CLIP).first.click()
    desk.until(
        "n => { const t = [...document.querySelectorAll('.step')].find(s =>"
        " s.textContent.includes('merge')).textContent; return t.includes('→') &&"
        " Number(t.split('→')[1].match(/[0-9,]+/)[0].replace(',', '')) === n }",
        before,
        120,
    )


def a_rule_box_marks_what_it_matches(desk: Desk) -> None:
    desk.tab("Own rule")
    box = desk.page.locator(".widget-textarea textarea").first
    box.fill("conv = (")
    desk.button("Try it").click()
    desk.page.wait_for_selector("text=Line 1", timeout=60_000)
    box.fill('is_op("relax.nn.conv2d")(wildcard(), wildcard())')
    desk.button("Try it").click()
    desk.page.wait_for_selector("text=They are marked in the drawing", timeout=60_000)
    desk.until("() => document.querySelectorAll('.pane-after .sel').length > 0")
    shot(desk, "rulebox")


def mark_a_stop(desk: Desk) -> None:
    desk.tab("Talk")
    desk.page.get_by_placeholder("what is said here").fill("all in one subgraph")
    desk.page.keyboard.press("Tab")
    desk.button("Mark a stop").click()
    desk.page.wait_for_selector(".widget-html li:has-text('all in one subgraph')")


def build_on_the_cpu(desk: Desk) -> None:
    desk.tab("Build and run")
    desk.page.wait_for_timeout(300)
    for label, value in (("runtime", "onnxruntime"), ("picture", "chelsea")):
        desk.page.locator(f".widget-dropdown:has(label:text-is('{label}')) select").select_option(
            value
        )
    desk.button("Build and run").last.click()
    desk.until(
        "() => document.querySelector('[role=tab][aria-selected=true]')?.textContent === 'Results'",
        timeout=300,
    )
    desk.page.wait_for_timeout(1500)
    shot(desk, "results")
    text = desk.frame.locator(".body").inner_text()
    assert "TVM alone" in text
    assert "cat" in text
    assert "ms" in text


def save(desk: Desk, place: Path) -> None:
    desk.tab("Save")
    desk.button("Save the recording").click()
    desk.page.wait_for_selector("text=Written:", timeout=30_000)
    recording = byocviz.load(place / "SSD.byocviz")
    assert [step.name for step in recording.steps] == list(STEPS)
    assert recording.extra["stops"][0]["note"] == "all in one subgraph"
    assert recording.results.latency is not None
    assert recording.results.photos[0].detected[0].found


def a_reload_finds_the_state(desk: Desk, place: Path) -> None:
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


def the_saved_notebook_reads_without_a_kernel(
    desk: Desk, place: Path, browser: Any, tmp_path: Path
) -> None:
    kept = [out["data"] for out in outputs(place / "ssd.ipynb") if "data" in out]
    assert any("text/html" in data for data in kept)
    assert (place / "ssd.ipynb").stat().st_size < 1_000_000
    subprocess.run(
        [sys.executable, "-m", "nbconvert", "--to", "html", "--output-dir", str(tmp_path),
         str(place / "ssd.ipynb")],
        check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    context = browser.new_context(viewport={"width": 1200, "height": 1000}, offline=True)
    page = context.new_page()
    page.goto((tmp_path / "ssd.html").as_uri())
    still = page.locator("[data-byocviz-static]").first
    assert still.is_visible()
    assert "merge" in still.inner_text()
    assert page.evaluate("document.querySelector('[data-byocviz-static] img').naturalWidth") > 300
    if SHOTS:
        page.screenshot(path=str(Path(SHOTS) / "explorer-static.png"))
    context.close()


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


def test_a_session_from_the_first_step_to_the_saved_notebook(
    browser: Any, desk: Desk, place: Path, tmp_path: Any
) -> None:
    """One after the other, in one notebook: each goes on where the one before ended."""
    every_step_by_the_widget(desk)
    a_rule_off_changes_the_subgraphs(desk)
    a_rule_box_marks_what_it_matches(desk)
    mark_a_stop(desk)
    build_on_the_cpu(desk)
    save(desk, place)
    a_reload_finds_the_state(desk, place)
    the_saved_notebook_reads_without_a_kernel(desk, place, browser, tmp_path)


def test_notebook_7(built: None, browser: Any, tmp_path: Path) -> None:
    write_notebook(tmp_path / "walk.ipynb", WALKTHROUGH)
    with serving(tmp_path, "notebook") as address:
        context = browser.new_context(viewport={"width": 1400, "height": 1150})
        desk = Desk(context.new_page(), address, "notebook").open("walk.ipynb")
        desk.run(2)
        desk.at("import")
        for step in STEPS[1:5]:
            desk.button("▶").first.click()
            desk.at(step)
        assert subgraphs(desk) == 3
        shot(desk, "notebook7")
        menu(desk)
        assert desk.errors == []
        context.close()
