"""The results tab in a real Chromium: what building, checking, timing and detecting added."""

from __future__ import annotations

import csv
import io
import math
import re
from typing import Any

import msgspec
import pytest

from byocviz.recording import Recording
from byocviz.recording.results import (
    Check,
    Detected,
    Difference,
    Found,
    Latency,
    Photo,
    Results,
)
from byocviz.render.html import to_html

from .conftest import VIEWER, Open, Viewer
from .sampled import MACHINE, photos, timed, with_results

PAGE_LIMIT = 1_500_000


@pytest.fixture(scope="session")
def ssd_results(ssd: Recording) -> Recording:
    return with_results(ssd)


@pytest.fixture(scope="session")
def small(walkthrough: Recording) -> Recording:
    """Three subgraphs, all parts of the results."""
    return with_results(walkthrough)


def given(recording: Recording, **parts: Any) -> Recording:
    return msgspec.structs.replace(recording, results=Results(**parts))


def opened(view: Open, recording: Recording | str, **options: Any) -> Viewer:
    page = view(recording, "tab=results", drawn=False, **options)
    page.page.wait_for_selector(".results")
    return page


def milliseconds(text: str) -> float:
    value, unit = re.search(r"([\d.]+) (µs|ms|s)\b", text).groups()  # type: ignore[union-attr]
    return float(value) * {"µs": 1e-3, "ms": 1, "s": 1e3}[unit]


def box(locator: Any) -> dict[str, float]:
    return locator.bounding_box()  # type: ignore[no-any-return]


def test_the_tab_is_there_where_something_is_held(
    view: Open, walkthrough: Recording, small: Recording
) -> None:
    page = view(walkthrough, "tab=results")
    assert page.page.get_by_role("tab", name="Results").count() == 0
    page.key("r")
    assert page.page.locator(".results").count() == 0
    page = view(small)
    page.key("r")
    page.page.wait_for_selector(".results")
    assert "tab=results" in page.hash()
    page.key("g")
    page.drawn()
    extra = msgspec.structs.replace(walkthrough, extra={"mine": {"a": 1}})
    assert "mine" in opened(view, extra).page.inner_text(".results")


@pytest.mark.parametrize("part", ["build", "check", "latency", "photos"])
def test_only_the_parts_that_are_there_have_a_card(view: Open, small: Recording, part: str) -> None:
    page = opened(view, given(small, **{part: getattr(small.results, part)}))
    cards = page.page.locator(".result-card")
    assert cards.count() == 1
    name = {"photos": "detections"}.get(part, part)
    assert cards.first.get_attribute("id") == f"result-{name}"


def test_a_runtime_that_stands_in_is_said_first(view: Open, small: Recording) -> None:
    page = opened(view, small)
    line = page.page.inner_text(".results > :first-child")
    assert line == "ONNX Runtime stands in for TensorRT: this machine has no NVIDIA GPU"


def test_a_bar_a_variant_with_what_it_costs(view: Open, ssd_results: Recording) -> None:
    page = opened(view, ssd_results)
    timings = ssd_results.results.latency
    assert timings is not None
    rows = page.page.locator(".bars > .bar-row")
    assert rows.count() == len(timings.variants)
    order = sorted(timings.variants, key=lambda v: v.setting != "")
    base = next(v for v in timings.variants if v.kind == "tvm").median
    for i, variant in enumerate(order):
        text = rows.nth(i).inner_text()
        assert variant.name in text
        if variant.cannot:
            assert f"cannot: {variant.cannot}" in text
            assert rows.nth(i).locator(".fill").count() == 0
            continue
        shown = milliseconds(rows.nth(i).locator(".bar-value b").inner_text())
        assert variant.median is not None
        assert shown == pytest.approx(variant.median * 1e3, rel=0.01)
        assert "first run" in text
        if variant.kind == "byoc":
            ratio = re.search(r"([\d.]+)×", text)
            assert ratio is not None
            assert base is not None
            assert float(ratio[1]) == pytest.approx(base / variant.median, rel=0.01)
            assert f"{variant.subgraphs} subgraph" in text
            assert "across the boundary" in text
            assert "of operators" in text
            assert "in 1 subgraph" in text or f"in {variant.subgraphs} subgraphs" in text
    assert page.page.locator(".bar-group h3").all_text_contents() == [
        "Whole model",
        "prepared",
        "as imported",
    ]


def test_lengths_are_the_medians_and_whiskers_the_quantiles(view: Open, small: Recording) -> None:
    """Linear where the slowest is at most 20 times the fastest, and then there is no switch."""
    variants = [timed("TVM alone", "tvm", 0.1), timed("both", "byoc", 0.03, subgraphs=2)]
    page = opened(view, given(small, latency=Latency(variants, 40, 5)))
    assert page.page.get_by_role("group", name="Scale").count() == 0
    lanes = page.page.locator(".bars .lane")
    zero, unit = box(lanes.first)["x"] + 1.5, 0.0
    for i, variant in enumerate(variants):
        fill, whisker = box(lanes.nth(i).locator(".fill")), box(lanes.nth(i).locator(".whisker"))
        assert variant.median is not None
        assert variant.p10 is not None
        assert variant.p90 is not None
        unit = unit or fill["width"] / variant.median
        assert fill["width"] == pytest.approx(unit * variant.median, abs=1)
        assert whisker["x"] - zero == pytest.approx(unit * variant.p10, abs=1.5)
        end = whisker["x"] + whisker["width"] - zero
        assert end == pytest.approx(unit * variant.p90, abs=1.5)


def test_the_scale_is_logarithmic_only_where_it_has_to_be(
    view: Open, ssd_results: Recording
) -> None:
    page = opened(view, ssd_results)
    scale = page.page.get_by_role("group", name="Scale")
    log = scale.get_by_role("button", name="log", exact=True)
    assert log.get_attribute("aria-pressed") == "true"
    assert "Logarithmic scale" in page.page.inner_text("#result-latency")
    timed_ones = [v for v in ssd_results.results.latency.variants if v.median]  # type: ignore[union-attr]
    widths = [box(f)["width"] for f in page.page.locator(".bars .fill").all()]
    logs = [math.log(v.median) for v in timed_ones]  # type: ignore[arg-type]
    slopes = [(widths[0] - w) / (logs[0] - at) for w, at in zip(widths[1:], logs[1:], strict=True)]
    assert max(slopes) == pytest.approx(min(slopes), rel=0.03)
    scale.get_by_role("button", name="linear").click()
    assert "Logarithmic scale" not in page.page.inner_text("#result-latency")
    widths = [box(f)["width"] for f in page.page.locator(".bars .fill").all()]
    for width, variant in zip(widths, timed_ones, strict=True):
        expected = widths[0] * variant.median / timed_ones[0].median  # type: ignore[operator]
        assert width == pytest.approx(expected, abs=2)


def test_the_same_figures_as_a_table_and_as_csv(view: Open, ssd_results: Recording) -> None:
    page = opened(view, ssd_results)
    timings = ssd_results.results.latency
    assert timings is not None
    page.page.get_by_role("button", name="table", exact=True).click()
    rows = page.page.locator("#table-latency tbody tr")
    assert rows.count() == len(timings.variants)
    assert "cannot: NonMaxSuppression" in rows.nth(1).inner_text()
    page.page.get_by_role("button", name="CSV").click()
    page.page.wait_for_selector(".toast")
    text = page.page.evaluate("navigator.clipboard.readText()")
    read = list(csv.DictReader(io.StringIO(text)))
    assert [row["variant"] for row in read] == [v.name for v in timings.variants]
    for row, variant in zip(read, timings.variants, strict=True):
        assert row["cannot"] == variant.cannot
        assert [float(row[k]) if row[k] else None for k in ("median_s", "p10_s", "p90_s")] == [
            variant.median,
            variant.p10,
            variant.p90,
        ]


def test_where_the_time_goes_leads_to_the_graph(view: Open, small: Recording) -> None:
    page = opened(view, small)
    page.page.locator(".bar-parts summary").first.click()
    parts = page.page.locator(".bar-parts .part-list").first.locator("li")
    assert parts.count() == len(small.last.subgraphs)
    # The other setting's subgraphs are not this recording's.
    page.page.locator(".bar-parts summary").nth(1).click()
    others = page.page.locator(".bar-parts .part-list").nth(1)
    assert others.locator("li").count() == 8
    assert others.locator(".op-link").count() == 0
    parts.first.locator(".op-link").click()
    page.drawn()
    assert "subgraph of" in page.page.inner_text(".inspector").lower()


def test_engines_lead_to_the_graph_and_to_their_text(view: Open, ssd_results: Recording) -> None:
    page = opened(view, ssd_results)
    table = page.page.locator("#table-engines")
    row = table.locator("tbody tr").first.inner_text()
    for part in ("S1", "310 ms", "16.5 MiB", "CPUExecutionProvider"):
        assert part in row
    button = table.get_by_role("button", name=re.compile("^ONNX text of"))
    button.click()
    panel = page.page.locator(".text-panel")
    panel.locator("pre").wait_for()
    whole = ssd_results.texts["onnx:0"]
    assert panel.locator("pre").inner_text().splitlines() == whole.splitlines()
    panel.get_by_role("button", name="copy").click()
    page.page.wait_for_selector(".toast")
    assert page.page.evaluate("navigator.clipboard.readText()") == whole
    page.key("Escape")
    assert panel.count() == 0
    assert button.evaluate("e => e === document.activeElement")
    table.get_by_role("button", name=re.compile("^layers of")).click()
    page.until("document.querySelector('.text-panel pre')?.textContent.startsWith('Conv_0')")
    page.page.get_by_role("button", name=re.compile("^Close")).click()
    table.locator(".op-link").first.click()
    page.drawn()
    assert page.step == ssd_results.last.name
    assert "node=s1" in page.hash()


def test_build_times_stand_apart_and_the_tree_is_indented(view: Open, small: Recording) -> None:
    page = opened(view, small)
    times = page.page.inner_text(".build-times")
    for part in ("lowering to ONNX", "410 ms", "3 engines, 1 from the cache", "TVM", "2.90 s"):
        assert part in times
    assert "2.90 s" not in page.page.inner_text("#result-latency")
    build = small.results.build
    assert build is not None
    rows = page.page.locator(".tree li")
    assert rows.count() == len(build.tree)
    lines = page.page.locator(".tree-lines").all_text_contents()
    assert lines == ["", "├─ ", "├─ ", "├─ ", "└─ "]
    where = page.page.inner_text(".build-more")
    for text in MACHINE.values():
        assert text in where


def test_what_exceeds_is_named_first_and_marked(view: Open, small: Recording) -> None:
    names = [sub.name for sub in small.last.subgraphs]
    differences = [
        Difference("y", "output", 0.25, 2.0, True, "all of it"),
        Difference("z", "output", None, None),
        Difference(names[0], "subgraph", 3e-7, 1e-6),
        Difference(names[1], "subgraph", 0.25, 2.0, True),
    ]
    check = Check(1e-3, 1e-2, "seed 7", differences, names[1])
    page = opened(view, given(small, check=check))
    top = page.page.inner_text(".verdict")
    assert "2 of 4 beyond tolerance" in top
    assert "0.001 + 0.01 × |TVM's|" in top
    assert names[1][:10] in top
    rows = page.page.locator("#table-differences tbody tr")
    states = [rows.nth(i).locator("td").first.inner_text().strip() for i in range(4)]
    assert states == ["exceeds", "exceeds", "?", "within"]  # those first
    assert page.page.locator(".state-over svg").count() == 2
    assert rows.nth(2).inner_text().count("?") >= 3
    page.page.locator(".verdict .op-link").click()
    page.drawn()
    assert "node=s2" in page.hash()


def test_boxes_lie_where_the_model_put_them(view: Open, small: Recording) -> None:
    page = opened(view, small)
    for at, photo in enumerate(small.results.photos):
        page.page.locator(".thumbs button").nth(at).click()
        frame = box(page.page.locator(".frame"))
        assert frame["width"] / frame["height"] == pytest.approx(
            photo.width / photo.height, rel=0.02
        )
        drawn = page.page.locator(".frame .edge")
        found = photo.detected[0].found
        assert drawn.count() == len(found)
        for i, one in enumerate(found):
            # The geometry, without its stroke.
            x, y, w, h = (
                float(drawn.nth(i).get_attribute(a)) for a in ("x", "y", "width", "height")
            )
            shown = [
                x * photo.width,
                y * photo.height,
                (x + w) * photo.width,
                (y + h) * photo.height,
            ]
            assert shown == pytest.approx(one.box, abs=0.5)
            tag = page.page.locator(".tag-label").nth(i)
            assert tag.inner_text() == f"{one.label} {one.score:.3f}"
            inside = box(tag)
            assert inside["x"] >= frame["x"] - 1
            assert inside["x"] + inside["width"] <= frame["x"] + frame["width"] + 1


def test_labels_do_not_lie_on_each_other(view: Open, small: Recording) -> None:
    found = [
        Found(f"thing {i}", 0.9 - i / 20, (40.0 + i, 30.0 + 2 * i, 300.0, 260.0), i)
        for i in range(6)
    ]
    photo = Photo("crowd", 400, 300, "", [Detected("one", "tvm", found)])
    page = opened(view, given(small, photos=[photo]))
    page.page.wait_for_timeout(100)
    tags = [box(t) for t in page.page.locator(".tag-label").all()]
    for i, a in enumerate(tags):
        for b in tags[i + 1 :]:
            apart = a["y"] + a["height"] <= b["y"] + 2 or b["y"] + b["height"] <= a["y"] + 2
            beside = a["x"] + a["width"] <= b["x"] or b["x"] + b["width"] <= a["x"]
            assert apart or beside


def test_a_row_and_its_box_light_up_together(view: Open, small: Recording) -> None:
    page = opened(view, small)
    rows = page.page.locator(".found button")
    rows.nth(1).hover()
    assert page.page.locator(".frame g.lit").count() == 1
    assert page.page.locator(".tag-label.lit").inner_text().startswith("dining table")
    page.page.mouse.move(4, 4)
    page.until("!document.querySelector('.frame g.lit')")
    rows.nth(0).focus()
    assert page.page.locator(".tag-label.lit").inner_text().startswith("cup")


def test_variants_one_at_a_time_and_side_by_side(view: Open, small: Recording) -> None:
    page = opened(view, small)
    detected = small.results.photos[0].detected
    assert page.page.locator(".shot").count() == 1
    page.page.get_by_role("group", name="Variant", exact=True).get_by_role(
        "button", name=detected[2].variant
    ).click()
    assert f"Against {detected[0].variant}: scores differ by at most" in page.page.inner_text(
        ".apart"
    )
    page.page.get_by_role("button", name="side by side").click()
    assert page.page.locator(".shot").count() == len(detected)
    titles = page.page.locator(".shot figcaption").all_text_contents()
    assert titles == [d.variant for d in detected]


def test_variants_that_find_other_things_say_so(view: Open, small: Recording) -> None:
    cat = Found("cat", 0.9, (1, 1, 20, 20), 16)
    detected = [
        Detected("a", found=[cat]),
        Detected("b"),
        Detected("c", found=[cat], max_score=0.0),
    ]
    photo = Photo("x", 40, 30, "", detected)
    page = opened(view, given(small, photos=[photo, Photo("none", 10, 10)]))
    page.page.get_by_role("button", name="side by side").click()
    said = page.page.locator(".apart").all_inner_texts()
    assert "Does not find the same things as a." in said[1]
    assert "Nothing was found" in page.page.locator(".shot").nth(1).inner_text()
    assert "at most 0" in said[2]
    assert "was not kept" in page.page.inner_text(".frame >> nth=0")
    page.page.get_by_role("button", name="none").click()
    assert page.page.locator(".frame").count() == 1


def test_extra_is_listed_and_only_jpeg_and_png_become_pictures(
    view: Open, walkthrough: Recording
) -> None:
    image = photos()[1].image
    extra = {
        "photo": image,
        "webp": image.replace("jpeg", "webp"),
        "svg": "data:image/svg+xml;base64,PHN2Zy8+",
        "remote": "https://example.invalid/x.png",
        "rows": [{"name": "a", "seconds": 0.1}, {"name": "b", "seconds": 0.2}],
        "nested": {"a": {"b": [1, 2, None]}},
    }
    page = opened(view, msgspec.structs.replace(walkthrough, extra=extra))
    assert page.page.locator(".results h2").all_text_contents() == list(extra)
    assert page.page.locator(".results img").count() == 1
    assert page.page.locator(".results table").count() == 1


def test_headlines_lead_to_their_cards(view: Open, ssd_results: Recording) -> None:
    page = opened(view, ssd_results, reduced_motion="reduce")
    buttons = page.page.locator(".headlines button")
    assert buttons.count() == 4
    for i, name in enumerate(["latency", "check", "detections", "build"]):
        buttons.nth(i).focus()
        page.page.keyboard.press("Enter")
        page.until("id => document.activeElement.id === `result-${id}`", name)
        place = box(page.page.locator(f"#result-{name} > header"))
        assert 0 < place["y"] < 900


def test_the_results_by_keyboard_alone(view: Open, small: Recording) -> None:
    """Every control is reached by Tab, in the order in which it stands."""
    page = opened(view, small)
    wanted = page.page.locator(
        ".results :is(button, summary, select, [tabindex='0']):not([disabled])"
    ).evaluate_all(
        "all => all.filter(e => e.checkVisibility()).map((e, i) => (e.dataset.seen = i))"
    )
    page.page.locator(".headlines button").first.focus()
    seen = set()
    for _ in range(len(wanted) + 5):
        seen.add(page.page.evaluate("document.activeElement.dataset.seen"))
        page.page.keyboard.press("Tab")
    assert {str(i) for i in wanted} <= seen


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("state", ["chart", "table"])
def test_axe_finds_nothing_serious(
    view: Open, ssd_results: Recording, theme: str, state: str
) -> None:
    wrong = Check(1e-3, 1e-3, "", [Difference("y", "output", 1.0, 1.0, True)], "y")
    results = msgspec.structs.replace(ssd_results.results, check=wrong)
    page = opened(view, msgspec.structs.replace(ssd_results, results=results), theme=theme)
    if state == "table":
        for name in ("table", "side by side"):
            page.page.get_by_role("button", name=name, exact=True).click()
        page.page.get_by_role("button", name=re.compile("^ONNX text of")).click()
        page.page.locator(".text-panel pre").wait_for()
    page.page.evaluate((VIEWER / "node_modules/axe-core/axe.min.js").read_text())
    found = page.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    bad = [
        (v["id"], v["impact"], [(n["target"], n["failureSummary"]) for n in v["nodes"]][:4])
        for v in found["violations"]
        if v["impact"] in ("serious", "critical")
    ]
    assert bad == []


@pytest.mark.parametrize("width", [420, 900])
def test_a_narrow_window_shows_everything(view: Open, small: Recording, width: int) -> None:
    page = opened(view, small, viewport={"width": width, "height": 900})
    assert page.page.evaluate("document.documentElement.scrollWidth") <= width
    for card in page.page.locator(".result-card").all():
        assert box(card)["width"] <= width


def test_the_page_stays_small(ssd_results: Recording) -> None:
    assert len(to_html(ssd_results).encode()) < PAGE_LIMIT


def test_the_sample_is_what_the_schema_says(small: Recording) -> None:
    """The tests' own data goes through the file as real data does."""
    from byocviz.recording import from_bytes, to_bytes

    assert from_bytes(to_bytes(small)) == small
