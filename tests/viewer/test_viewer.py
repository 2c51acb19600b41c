"""The page of a recording in a real Chromium, by mouse and by keyboard alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from byocviz.recording import Recording

from .conftest import VIEWER, Open


def test_every_step_by_mouse(view: Open, ssd: Recording) -> None:
    page = view(ssd, step="import")
    assert page.step == "import"
    for i, step in enumerate(ssd.steps):
        page.page.locator(".rail .step").nth(i).click()
        page.drawn(i)
        assert page.step == step.name
        assert page.nodes() > 0
        assert f"step={step.name}" in page.hash()


def test_every_step_by_keyboard(view: Open, ssd: Recording) -> None:
    page = view(ssd, step="import")
    seen = [page.step]
    for i in range(1, len(ssd.steps)):
        page.key("ArrowRight")
        page.drawn(i)
        seen.append(page.step)
    assert seen == [step.name for step in ssd.steps]
    page.key("ArrowRight")
    assert page.step == ssd.steps[-1].name
    page.key("Home")
    page.drawn(0)
    assert page.step == "import"
    page.key("End", "ArrowLeft")
    assert page.step == ssd.steps[-2].name


def test_unchanged_steps_can_be_passed_over(view: Open, unprepared: Recording) -> None:
    page = view(unprepared, step="import")
    changed = [s.name for s in unprepared.steps[1:-1] if s.changed]
    page.key("Shift+ArrowRight")
    assert page.step == changed[0]


def test_the_panes_stand_side_by_side_stacked_or_alone(view: Open, ssd: Recording) -> None:
    page = view(ssd, step="merge")
    before = page.page.locator(".pane-before")
    assert before.bounding_box()["y"] == page.page.locator(".pane-after").bounding_box()["y"]
    page.key("2")
    page.page.wait_for_timeout(100)
    after = page.page.locator(".pane-after").bounding_box()
    assert before.bounding_box()["x"] == after["x"]
    page.key("3")
    assert before.count() == 0
    page.page.get_by_role("button", name="Side by side").click()
    before.wait_for()


def test_each_operator_is_in_one_place_of_each_drawing(view: Open, ssd: Recording) -> None:
    """What is on the screen, opened wholly, is what the recording says."""
    page = view(ssd, step="merge")
    page.page.get_by_role("button", name="Open all, after").click()
    # What is out of sight is drawn after what is seen.
    total = ssd.step("merge").profile.total
    page.until("n => document.querySelectorAll('.pane-after .node.k-op').length >= n", total)
    assert page.page.locator(".pane-after .node.k-op").count() == total
    region = page.page.locator(".pane-after .box.k-region")
    assert region.count() == len(ssd.step("merge").subgraphs)


def test_folding_by_mouse_and_keyboard(view: Open, ssd: Recording) -> None:
    page = view(ssd, step="prepare")
    page.page.get_by_role("button", name="Open all, after").click()
    page.until("document.querySelectorAll('.pane-after .node.k-op').length > 290")
    page.drawn()
    whole = page.nodes()
    page.page.get_by_role("button", name="Fold all, after").click()
    page.drawn()
    folded = page.nodes()
    assert folded < whole
    page.page.locator(".pane-after .node .toggle").first.click()
    page.drawn()
    opened = page.nodes()
    assert opened > folded
    page.page.locator(".pane-after .boxtop .head").first.click()
    page.drawn()
    assert page.nodes() < opened
    # By keyboard: choose nodes until one that can open, then Enter.
    for _ in range(30):
        page.key("j")
        if page.page.locator(".pane-after .node.sel .toggle").count():
            break
    now = page.nodes()
    page.key("Enter")
    page.drawn()
    assert page.nodes() > now


def test_hovering_marks_the_same_operator_on_the_other_side(view: Open, ssd: Recording) -> None:
    page = view(ssd, step="merge")
    target = page.page.locator(".pane-after .node.k-op").first
    target.hover()
    page.page.wait_for_selector(".pane-before .node.hov")
    assert page.page.locator(".pane-after .node.hov").count() == 1
    assert page.page.get_attribute("#pane-link", "d") != ""
    page.page.mouse.move(5, 5)
    page.until("!document.querySelector('.node.hov')")


def test_a_replaced_operator_leads_to_what_replaced_it(view: Open, ssd: Recording) -> None:
    old = next(op for op in ssd.ops.values() if op.replaced_by and op.fate == "replaced")
    page = view(ssd, f"step=prepare&node=o{old.id}")
    text = page.page.inner_text(".inspector")
    assert "not at this step" in text
    assert f"#{ssd.successors_of(old.id)[0]}" in text
    page.page.wait_for_selector(".pane-after .node.sel")
    page.page.wait_for_selector(".pane-before .node.sel")


def test_the_choice_stays_from_step_to_step(view: Open, ssd: Recording) -> None:
    page = view(ssd, "step=composite&node=o704")
    page.key("ArrowRight")
    page.drawn(3)
    assert "#704" in page.page.inner_text(".inspector").lower()
    page.page.wait_for_selector(".pane-after .node.sel")


def test_the_inspector_says_why_and_the_mend(view: Open, ssd: Recording) -> None:
    op_id, reason = next(iter(ssd.last.reasons.items()))
    page = view(ssd, f"step=merge&node=o{op_id}")
    card = page.page.inner_text(".why-card")
    assert reason.code in card
    assert " ".join(reason.text.split())[:60] in " ".join(card.split())
    assert "Mend" in card
    way = page.page.locator(".way li")
    assert way.count() == len(ssd.steps)
    way.nth(0).locator("button").click()
    page.drawn(0)
    assert page.step == "import"


def test_a_subgraph_opens_in_place_and_in_its_own_view(view: Open, ssd: Recording) -> None:
    page = view(ssd, step="partition")
    assert page.page.locator(".pane-after .node.k-call").count() == 1
    page.page.locator(".pane-after .node.k-call .body").click(position={"x": 20, "y": 10})
    card = page.page.inner_text(".inspector")
    assert f"{len(ssd.last.subgraphs[0].op_ids)}" in card
    assert "Boundary" in card
    few = page.nodes()
    page.page.get_by_role("button", name="Open in place").click()
    page.until("n => document.querySelectorAll('.pane-after .node').length > n", few)
    page.page.get_by_role("button", name="Open in its own view").click()
    page.page.get_by_role("button", name="back to main").first.wait_for()


def test_control_flow_and_recursion_are_drawn(view: Open, walkthrough: Recording) -> None:
    loop = [f.name for f in walkthrough.step("merge").functions if f.graph].index("loop")
    page = view(walkthrough, f"step=merge&fn={loop}")
    if not page.page.locator(".pane-after .node.k-if").count():
        page.page.locator(".pane-after .pane-fn").select_option("loop")
        page.page.wait_for_selector(".pane-after .node.k-if")
    assert page.page.locator(".pane-after .box.k-branch").count() == 2
    assert page.page.locator(".pane-after .box.k-region").count() >= 1
    labels = page.page.locator(".pane-after .edge-label").all_text_contents()
    assert sorted(labels) == ["condition", "else", "then"]


def test_the_map_leaves_a_small_pane_free(view: Open, ssd: Recording) -> None:
    for height in (620, 900):
        page = view(ssd, step="merge", viewport={"width": 900, "height": height})
        page.page.wait_for_timeout(200)
        covered = page.page.evaluate(
            "[...document.querySelectorAll('.pane')].map((pane) => {"
            "const area = (one) => one.clientWidth * one.clientHeight;"
            "return area(pane.querySelector('.minimap')) / area(pane.querySelector('.canvas'));})"
        )
        assert max(covered) <= 0.2


def test_a_module_opens_on_the_function_that_changed(view: Open, walkthrough: Recording) -> None:
    page = view(walkthrough, step="merge")
    assert page.page.input_value(".pane-after .pane-fn") == "loop"
    assert page.page.input_value(".pane-before .pane-fn") == "loop"
    assert "fn=" not in page.hash()
    page.page.get_by_role("button", name="back to main").first.click()
    page.page.wait_for_selector(".pane-after .node.k-call")
    link = page.hash()
    assert "fn=0" in link
    again = view(walkthrough, link.removeprefix("#"))
    assert again.page.input_value(".pane-after .pane-fn") == "main"


def test_large_type(view: Open, ssd: Recording) -> None:
    page = view(ssd, step="merge", viewport={"width": 1280, "height": 720})
    head = page.page.locator(".step.now .step-name")
    node = page.page.locator(".pane-after .node .body").first
    small = (head.bounding_box()["height"], node.bounding_box()["height"])
    page.key("z")
    page.page.wait_for_timeout(300)
    assert head.bounding_box()["height"] > 1.2 * small[0]
    assert node.bounding_box()["height"] > 1.2 * small[1]
    assert page.page.evaluate("document.documentElement.scrollWidth") <= 1280
    assert "type=large" in page.hash()
    assert view(ssd, "step=merge&type=large").page.locator("html.large").count() == 1


def test_tables_sort_and_lead_to_the_drawing(view: Open, unprepared: Recording) -> None:
    page = view(unprepared, "step=merge&tab=tables", drawn=False)
    table = page.page.locator("#table-subgraphs")
    table.wait_for()
    step = unprepared.step("merge")
    assert table.locator("tbody tr").count() == len(step.subgraphs)
    table.get_by_role("button", name="operators").click()
    shown = [int(t) for t in table.locator("tbody tr td:nth-child(3)").all_text_contents()]
    assert shown == sorted((len(s.op_ids) for s in step.subgraphs), reverse=True)
    assert table.locator("th").nth(2).get_attribute("aria-sort") == "descending"
    table.get_by_role("button", name="operators").click()
    assert table.locator("th").nth(2).get_attribute("aria-sort") == "ascending"
    table.locator("tbody .op-link").first.click()
    page.drawn()
    assert "subgraph of merge" in page.page.inner_text(".inspector").lower()


def test_tables_hold_the_recordings_figures(view: Open, ssd: Recording) -> None:
    page = view(ssd, "step=merge&tab=tables", drawn=False)
    page.page.wait_for_selector("#table-steps")
    rows = page.page.locator("#table-steps tbody tr")
    for i, step in enumerate(ssd.steps):
        cells = rows.nth(i).locator("td").all_text_contents()
        assert cells[2] == str(step.profile.total)
        assert cells[3] == str(step.profile.subgraphs)
    rewrites = page.page.locator("#table-rewrites tbody tr").count()
    assert rewrites == sum(len(s.rewrites) for s in ssd.steps)
    assert ssd.what_if is not None
    blockers = page.page.locator("#table-blockers tbody tr").count()
    assert blockers == len(ssd.what_if)


def test_ir_text_is_compared_and_the_call_copied(view: Open, ssd: Recording) -> None:
    page = view(ssd, "step=composite&tab=ir", drawn=False)
    page.page.wait_for_selector(".diff .line.add")
    assert page.page.locator(".diff .line.del").count() > 0
    page.page.get_by_role("button", name="Copy: the TVM call of this step").click()
    page.page.wait_for_selector(".toast")
    assert page.page.evaluate("navigator.clipboard.readText()") == ssd.step("composite").call


def test_the_whole_text_of_a_function_is_there(view: Open, walkthrough: Recording) -> None:
    page = view(walkthrough, "step=import&tab=ir", drawn=False)
    page.page.wait_for_selector(".diff .line")
    main = next(f for f in walkthrough.step("import").functions if f.name == "main")
    shown = page.page.locator(".diff .line code").all_text_contents()
    assert "\n".join(shown).strip() == walkthrough.texts[main.text].strip()


def test_svg_and_png_are_saved(view: Open, ssd: Recording, tmp_path: Path) -> None:
    page = view(ssd, step="merge")
    page.key("e")
    for kind, start in (("SVG", b"<svg"), ("PNG", b"\x89PNG")):
        with page.page.expect_download() as saved:
            page.page.get_by_role("button", name=kind, exact=True).click()
        file = tmp_path / saved.value.suggested_filename
        saved.value.save_as(file)
        assert file.read_bytes().startswith(start)
        assert len(file.read_bytes()) > 5000
    text = (tmp_path / "byocviz-merge.svg").read_text()
    assert "class=" not in text.replace('class="root"', "")
    page.key("Escape")


def test_a_link_restores_the_view(view: Open, ssd: Recording) -> None:
    link = "step=annotate&from=import&node=o704&view=stacked&q=op%3Aadd"
    page = view(ssd, link)
    assert page.step == "annotate"
    assert page.page.locator(".panes.stacked").count() == 1
    assert page.page.input_value(".pane-before .pane-step") == "0"
    assert page.page.input_value("#search") == "op:add"
    assert "#704" in page.page.inner_text(".inspector")
    got = page.hash()
    for part in link.split("&"):
        assert part in got
    page.key("y")
    page.page.wait_for_selector(".toast")
    assert page.page.evaluate("navigator.clipboard.readText()").endswith(got)


def test_light_dark_by_system_and_by_hand(view: Open, walkthrough: Recording) -> None:
    theme = "document.documentElement.dataset.theme"
    page = view(walkthrough, color_scheme="dark")
    assert page.page.evaluate(theme) == "dark"
    page.key("d")
    assert page.page.evaluate(theme) == "light"
    page.page.get_by_role("button", name="Light or dark").click()
    assert page.page.evaluate(theme) == "dark"
    assert view(walkthrough, theme="light").page.evaluate(theme) == "light"


def test_neighbours_zoom_fit_minimap_and_pan(view: Open, ssd: Recording) -> None:
    page = view(ssd, step="prepare")
    page.key("j", "]")
    page.page.wait_for_selector(".pane-after .graph.some .node.kept")
    kept = page.page.locator(".pane-after .node.kept").count()
    page.key("]")
    assert page.page.locator(".pane-after .node.kept").count() > kept
    page.key("Escape")
    root = page.page.locator(".pane-after .root")
    assert page.page.locator(".pane-after .minimap").is_visible()
    here = root.get_attribute("style")
    page.key("+")
    assert root.get_attribute("style") != here
    page.key("f")
    page.page.wait_for_timeout(500)
    assert page.page.locator(".pane-after .minimap").is_hidden()
    fitted = root.get_attribute("style")
    box = page.page.locator(".pane-after .canvas").bounding_box()
    page.page.mouse.move(box["x"] + 30, box["y"] + 60)
    page.page.mouse.down()
    page.page.mouse.move(box["x"] + 130, box["y"] + 160, steps=4)
    page.page.mouse.up()
    assert root.get_attribute("style") != fitted


def test_what_a_wide_box_is_stays_in_sight(view: Open, ssd: Recording) -> None:
    page = view(ssd)
    title = page.page.locator(".pane-after .boxtop.k-region .box-title").first
    pane = page.page.locator(".pane-after .canvas").bounding_box()
    assert pane
    at = pane["x"] + pane["width"] / 2, pane["y"] + pane["height"] / 2
    page.page.mouse.move(*at)
    for _ in range(2):
        page.page.mouse.wheel(120, 0)
        page.page.wait_for_timeout(100)
        words = title.bounding_box()
        frame = page.page.locator(".pane-after .box.k-region .frame").first.bounding_box()
        assert words
        assert frame
        assert frame["x"] < pane["x"] < words["x"] < pane["x"] + 60


def test_help_lists_the_keys_and_closes(view: Open, walkthrough: Recording) -> None:
    page = view(walkthrough)
    page.key("?")
    page.page.get_by_role("dialog", name="Keys").wait_for()
    page.key("Escape")
    page.until("!document.querySelector('dialog')")


def test_the_outline_is_the_drawing_as_text(view: Open, walkthrough: Recording) -> None:
    page = view(walkthrough, step="import")
    page.key("o")
    outline = page.page.locator(".outline")
    outline.wait_for()
    page.until("document.querySelectorAll('.outline-item').length > 2")
    assert "call" in outline.inner_text()
    mark = outline.locator(".fold-mark").first
    mark.click()
    page.page.wait_for_selector(".outline .fold-mark[aria-expanded=true]")
    assert page.page.locator(".pane-after .box").count() > 0


def test_reduced_motion_moves_nothing(view: Open, ssd: Recording) -> None:
    page = view(ssd, step="composite", reduced_motion="reduce")
    page.key("ArrowRight")
    page.drawn(3)
    assert page.page.locator(".graph.moving").count() == 0


def test_nodes_move_from_step_to_step(view: Open, ssd: Recording) -> None:
    page = view(ssd, step="composite")
    page.page.wait_for_timeout(800)
    page.key("ArrowRight")
    page.drawn(3)
    assert page.page.locator(".pane-after .graph.moving").count() == 1


@pytest.mark.parametrize("tab", ["graph", "tables", "ir"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious(view: Open, ssd: Recording, tab: str, theme: str) -> None:
    page = view(ssd, f"step=merge&tab={tab}&node=o704", drawn=tab == "graph", theme=theme)
    page.page.wait_for_timeout(600)
    page.page.evaluate((VIEWER / "node_modules/axe-core/axe.min.js").read_text())
    found = page.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    bad = [
        (v["id"], v["impact"], [n["target"] for n in v["nodes"]][:3])
        for v in found["violations"]
        if v["impact"] in ("serious", "critical")
    ]
    assert bad == []


@pytest.mark.parametrize("width", [420, 900])
def test_a_narrow_window_shows_everything(view: Open, walkthrough: Recording, width: int) -> None:
    page = view(walkthrough, viewport={"width": width, "height": 900})
    assert page.nodes() > 0
    assert page.page.evaluate("document.documentElement.scrollWidth") <= width
