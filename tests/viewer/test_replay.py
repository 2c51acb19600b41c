"""Presenting, in a real Chromium from file://: the audience's page and the speaker's window."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from byocviz.recording import Recording
from byocviz.recording.stops import Stop, with_stops
from byocviz.render.html import to_html
from byocviz.render.replay import replay_options

from .conftest import VIEWER, Open, Viewer
from .sampled import with_results
from .test_hostile import NASTY, packed, swapped

FINISH = "document.getAnimations().forEach((one) => one.finish())"
AT = "n => document.querySelector('.talk-count')?.innerText.split('/')[0].trim() === String(n)"


@pytest.fixture(scope="session")
def talk(ssd: Recording) -> Recording:
    """The SSD with results and stops of every kind."""
    recording = with_results(ssd)
    merged = recording.step("merge")
    outside = next(iter(merged.reasons))
    return with_stops(
        recording,
        [
            Stop("import", "# The model\nAs it came, **705** operators."),
            Stop("prepare", "What importers leave\n\n- `clip`\n- layouts", layout="stacked"),
            Stop("merge", "One subgraph", subgraph=0),
            Stop("merge", "Why this one stays", op=outside, layout="single"),
            Stop("merge", "All of it", fit=True, left="import"),
            Stop("merge", "A part", zoom=(100.0, 200.0, 300.0, 400.0)),
            Stop("prune", title="In numbers", tab="tables"),
            Stop("prune", "The code", tab="ir"),
            Stop("prune", "Building", tab="results", card="build"),
            Stop("prune", "How fast", tab="results", card="latency"),
            Stop("prune", "What it sees", tab="results", card="detections"),
        ],
    )


def present(view: Open, recording: Recording, link: str = "", **options: Any) -> Viewer:
    begun = options.pop("replay", {})
    page = view(to_html(recording, replay=begun), link, drawn=False, **options)
    page.page.wait_for_selector(".talk")
    return page


def at(page: Viewer, n: int) -> None:
    page.until(AT, n)


def seen(page: Viewer) -> dict[str, Any]:
    """What a stop shows, but for what moves."""
    shown: dict[str, Any] = page.page.evaluate(
        """() => ({
            title: document.querySelector('.talk-title').innerText,
            step: document.querySelector('.step[aria-current=step] .step-name')?.textContent,
            steps: [...document.querySelectorAll('.pane .pane-step')].map(
                (one) => one.options ? one.options[one.selectedIndex].text : one.innerText),
            panes: document.querySelector('.panes')?.className,
            body: document.querySelector('.body').className,
            cards: [...document.querySelectorAll('.result-card')].map((one) => one.id),
            inspector: document.querySelector('.inspector .card-title, .inspector h2')?.innerText,
            note: document.querySelector('.stage-note')?.innerText,
        })"""
    )
    return shown


def settled(page: Viewer, n: int) -> dict[str, Any]:
    """What a stop shows once it is drawn and nothing moves."""
    at(page, n)
    page.page.wait_for_timeout(60)
    if page.page.locator(".panes").count():
        page.until("n => document.documentElement.dataset.stop === String(n)", n)
        page.page.wait_for_timeout(450)
    return seen(page)


def transform(page: Viewer, side: str = "after") -> list[float]:
    text = page.page.evaluate(
        "side => document.querySelector(`.pane-${side} .root`).style.transform", side
    )
    return [float(one) for one in re.findall(r"-?[\d.]+", text)]


def test_the_whole_talk_by_one_key_and_back(view: Open, talk: Recording) -> None:
    stops = talk.extra["stops"]
    page = present(view, talk)
    forth = []
    for n in range(1, len(stops) + 1):
        forth.append(settled(page, n))
        page.key("ArrowRight")
    assert [one["title"] for one in forth] == [
        "The model", "What importers leave", "One subgraph", "Why this one stays", "All of it",
        "A part", "In numbers", "The code", "Building", "How fast", "What it sees",
    ]  # fmt: skip
    page.key("ArrowRight")
    settled(page, len(stops))  # the last stays
    for n in range(len(stops), 0, -1):
        assert settled(page, n) == forth[n - 1]
        page.key("ArrowLeft")
    assert [one["step"] for one in forth[:3]] == ["import", "prepare", "merge"]
    assert "stacked" in forth[1]["panes"]
    assert "single" in forth[3]["panes"]
    assert forth[4]["steps"] == ["import", "merge"]
    assert "tab-tables" in forth[6]["body"]
    assert "tab-ir" in forth[7]["body"]
    assert [one["cards"] for one in forth[8:]] == [
        ["result-build"],
        ["result-latency"],
        ["result-detections"],
    ]
    assert "705 operators" in forth[0]["note"]
    assert not page.page.locator(".top").is_visible()


def test_clickers_and_space(view: Open, talk: Recording) -> None:
    page = present(view, talk)
    for key, n in (
        ("PageDown", 2), (" ", 3), ("PageUp", 2), ("Shift+ ", 1), ("End", 11), ("PageDown", 11),
        ("Home", 1), ("PageUp", 1),
    ):  # fmt: skip
        page.key(key)
        at(page, n)
    # A click leaves the keyboard where it was.
    page.page.get_by_role("button", name="Next stop").click()
    at(page, 2)
    page.key(" ")
    at(page, 3)
    page.key("b")
    assert page.page.locator(".blank").is_visible()
    page.key("PageDown")  # brings the picture back and moves nothing
    page.until("!document.querySelector('.blank')")
    at(page, 3)
    page.key("Shift+ArrowLeft")
    page.until(
        "document.querySelector('.step[aria-current=step] .step-name').innerText === 'annotate'"
    )
    page.key("ArrowRight")
    at(page, 4)


def test_what_a_stop_is_about_is_in_sight(view: Open, talk: Recording) -> None:
    stops = talk.extra["stops"]
    page = present(view, talk, "replay=3")
    settled(page, 3)
    assert page.page.locator(".pane-after .box.k-region.sel, .pane-after .node.sel").count() >= 1
    page.key("ArrowRight")
    settled(page, 4)
    op = stops[3]["select"]["op"]
    assert f"#{op}" in page.page.inner_text(".inspector").lower()
    node = page.page.locator(".pane-after .node.sel").first.bounding_box()
    frame = page.page.locator(".pane-after .canvas").bounding_box()
    for side, size in (("x", "width"), ("y", "height")):
        assert frame[side] <= node[side]
        assert node[side] + node[size] <= frame[side] + frame[size]
    page.key("ArrowRight")
    settled(page, 5)
    root = page.page.locator(".pane-after .root").bounding_box()
    frame = page.page.locator(".pane-after .canvas").bounding_box()
    assert root["height"] <= frame["height"] + 2
    assert root["y"] >= frame["y"] - 2
    page.key("ArrowRight")
    settled(page, 6)
    x, y, k = transform(page)
    frame = page.page.locator(".pane-after .canvas").bounding_box()
    left, top, width, height = 100, 200, 300, 400
    assert k == pytest.approx(min(3, frame["width"] / width, frame["height"] / height), rel=0.02)
    assert x + k * (left + width / 2) == pytest.approx(frame["width"] / 2, abs=2)
    assert y + k * (top + height / 2) == pytest.approx(frame["height"] / 2, abs=2)


def test_without_stops_each_change_and_each_result_is_one(view: Open, ssd: Recording) -> None:
    recording = with_results(ssd)
    page = present(view, recording)
    changed = [one.name for i, one in enumerate(recording.steps) if i == 0 or one.changed]
    titles = []
    for n in range(1, len(changed) + 5):
        settled(page, n)
        titles.append(page.page.inner_text(".talk-title"))
        page.key("ArrowRight")
    assert [one.partition(":")[0] for one in titles[: len(changed)]] == changed
    assert titles[len(changed) :] == [
        "Building it", "The same results?", "How fast it is", "What it finds",
    ]  # fmt: skip


def test_a_reload_resumes_at_the_same_stop(view: Open, talk: Recording) -> None:
    page = present(view, talk)
    for _ in range(4):
        page.key("ArrowRight")
    before = settled(page, 5)
    assert page.hash() == "#replay=5"
    page.page.reload()
    page.page.wait_for_selector(".talk")
    assert settled(page, 5) == before
    page.key("ArrowLeft")
    at(page, 4)
    page.page.evaluate("location.hash = '#replay=2'")
    at(page, 2)
    for odd in ("0", "-3", "x", "1e9", "2.5", ""):
        page.page.evaluate("n => (location.hash = '#replay=' + n)", odd)
        page.page.wait_for_timeout(60)
        assert page.page.inner_text(".talk-title")


def test_it_goes_on_by_itself_and_pauses(view: Open, talk: Recording) -> None:
    quick = [{**one, "seconds": 0.4} for one in talk.extra["stops"][:3]]
    quick[1]["seconds"] = 3600
    recording = msgspec.structs.replace(talk, extra={"stops": [*quick, quick[0]]})
    page = present(view, recording, replay=replay_options(autoplay=True))
    at(page, 2)
    assert page.page.get_by_role("button", name="Pause").count() == 1
    page.page.wait_for_timeout(900)
    at(page, 2)  # stays as long as it says
    page.key("a")
    assert page.page.get_by_role("button", name="Go on by itself").count() == 1
    page.key("ArrowRight")
    at(page, 3)
    page.page.wait_for_timeout(900)
    at(page, 3)  # paused
    page.key("a")
    at(page, 4)
    page.until("!document.querySelector('.talk-ring')")  # the end ends it
    # The pause of the command holds where a stop says nothing.
    bare = [{k: v for k, v in one.items() if k != "seconds"} for one in quick]
    recording = msgspec.structs.replace(talk, extra={"stops": bare})
    page = present(view, recording, replay=replay_options(autoplay=0.3))
    at(page, 3)


def speaker_of(page: Viewer) -> Viewer:
    with page.page.expect_popup() as opening:
        page.page.keyboard.press("s")
    speaker = Viewer(opening.value)
    speaker.page.wait_for_selector(".speaker-head")
    return speaker


def test_the_speakers_window_keeps_step_both_ways(view: Open, talk: Recording) -> None:
    page = present(view, talk)
    assert page.page.locator(".stage-note").count() == 1
    speaker = speaker_of(page)
    both = (page, speaker)
    assert "705 operators" in speaker.page.inner_text(".speaker-note")
    assert "What importers leave" in speaker.page.inner_text(".speaker-next")
    page.until("!document.querySelector('.stage-note')")  # the note is before the speaker now
    page.key("v")
    assert page.page.locator(".stage-note").count() == 1
    page.key("ArrowRight")
    for one in both:
        at(one, 2)
    assert speaker.page.locator(".speaker-note li").count() == 2
    speaker.key("PageDown")
    for one in both:
        at(one, 3)
    speaker.page.get_by_role("button", name="before").click()
    for one in both:
        at(one, 2)
    speaker.key("End")
    for one in both:
        at(one, 11)
    assert "last stop" in speaker.page.inner_text(".speaker-next")
    speaker.key("b")
    page.until("document.querySelector('.blank') !== null")
    speaker.key("b", "Home")
    for one in both:
        at(one, 1)
    # The clock began with the first move.
    elapsed = "document.querySelector('.speaker-elapsed').innerText"
    speaker.until(f"{elapsed} !== '00:00'")
    # Either window loaded anew finds the other.
    page.key("ArrowRight", "ArrowRight")
    page.page.reload()
    page.page.wait_for_selector(".talk")
    at(page, 3)
    speaker.key("ArrowRight")
    for one in both:
        at(one, 4)
    speaker.page.reload()
    speaker.page.wait_for_selector(".speaker-head")
    page.key("ArrowLeft")
    for one in both:
        at(one, 3)
    speaker.until(f"{elapsed} !== '00:00'")
    # Pressed again it is the same window.
    page.page.bring_to_front()
    page.key("s")
    page.page.wait_for_timeout(300)
    assert len(page.page.context.pages) == 2
    page.page.goto("about:blank")
    speaker.page.wait_for_selector("[role=alert]")
    assert "does not answer" in speaker.page.inner_text("[role=alert]")
    assert speaker.errors == page.errors == speaker.requests == page.requests == []


def test_strangers_are_not_listened_to(view: Open, talk: Recording) -> None:
    page = present(view, talk)
    page.page.evaluate(
        """() => {
            window.postMessage({ byocvizAsk: { type: 'go', to: 4 } }, '*');
            const frame = document.createElement('iframe');
            document.body.append(frame);
            frame.contentWindow.parent.postMessage({ byocvizAsk: { type: 'go', to: 4 } }, '*');
        }"""
    )
    speaker = speaker_of(page)
    speaker.page.evaluate(
        "window.postMessage({ byocvizState: { type: 'state', at: 7, count: 9 } }, '*')"
    )
    for ask in ("null", "3", "{}", "{type:'go',to:'x'}", "{type:'go',to:1.5}", "{type:'no'}"):
        speaker.page.evaluate(f"opener.postMessage({{ byocvizAsk: {ask} }}, '*')")
    page.page.wait_for_timeout(200)
    at(page, 1)
    at(speaker, 1)
    page.errors.clear()  # a frame may not be looked into


def test_a_blocked_window_is_said(view: Open, talk: Recording) -> None:
    page = present(view, talk)
    page.page.evaluate("window.open = () => null")
    page.key("s", "ArrowRight", "s")
    # Until all steps have been compared, what the recording has to tell is still being found.
    page.until("![...document.querySelectorAll('.step-line')].some(line => line.innerText === '…')")
    assert page.page.locator(".messages li").count() == 1
    assert "blocked the speaker's window" in page.page.inner_text(".messages")
    page.key("ArrowRight")
    at(page, 3)
    assert not page.page.locator(".messages").is_visible()
    page.page.get_by_role("button", name="Messages").click()
    page.until("document.querySelector('.messages').offsetHeight > 0")


def test_what_was_timed_plays_in_its_recorded_proportions(view: Open, talk: Recording) -> None:
    page = present(view, talk, "replay=10")
    latency = talk.results.latency
    assert latency is not None
    said = page.page.inner_text("#result-latency .recorded")
    assert said == f"recorded {latency.made[:10]} on x86-64, 2 cores"
    page.page.evaluate(
        """() => {
            window.grown = [];
            const animate = Element.prototype.animate;
            Element.prototype.animate = function (frames, timing) {
                const median = this.closest('.bar-row')?.dataset.median;
                if (this.matches('.fill')) window.grown.push([Number(median), timing.duration]);
                return animate.call(this, frames, timing);
            };
        }"""
    )
    page.key("ArrowLeft", "ArrowRight")
    at(page, 10)
    page.until("grown.length > 0")
    ends = page.page.evaluate("grown")
    medians = {one.median for one in latency.variants if one.median}
    assert {one for one, _ in ends} == medians
    paces = [duration / median for median, duration in ends]
    assert max(paces) == pytest.approx(min(paces))
    text = page.page.inner_text("#result-latency .run-line")
    factor = 1000 / paces[0]
    wanted = (
        "in the time that it took" if factor == pytest.approx(1)
        else f"{factor:,.0f} times faster" if factor > 1
        else f"{1 / factor:,.0f} times slower"
    )  # fmt: skip
    assert wanted in text
    page.page.evaluate(FINISH)
    widths = page.page.evaluate(
        """() => [...document.querySelectorAll('.bar-row[data-median]')].map((row) => [
            Number(row.dataset.median),
            row.querySelector('.fill').getBoundingClientRect().width,
        ])"""
    )
    longest = max(widths)
    for median, width in widths:
        assert width == pytest.approx(longest[1] * median / longest[0], abs=3)


def test_engines_are_built_one_after_the_other(view: Open, talk: Recording) -> None:
    page = present(view, talk, "replay=9")
    build = talk.results.build
    assert build is not None
    said = set()
    for _ in range(400):
        said.add(page.page.inner_text("#result-build .run-now").partition(",")[0].partition(":")[0])
        if not page.page.locator("#result-build [data-playing]").count():
            break
        page.page.wait_for_timeout(15)
    n = len(build.engines)
    assert any(re.fullmatch(rf"engine \d+ of {n}|TVM|lowering to ONNX", one) for one in said)
    assert f"{n} engine" in page.page.inner_text("#result-build .run-now")
    assert "recorded" in page.page.inner_text("#result-build .recorded")


def test_less_motion_shows_all_at_once(view: Open, talk: Recording) -> None:
    page = present(view, talk, "replay=10", reduced_motion="reduce")
    assert (
        page.page.evaluate(
            "document.getAnimations().filter((one) => one.effect.getTiming().duration > 0).length"
        )
        == 0
    )
    assert "at once" in page.page.inner_text("#result-latency .run-line")


def test_notes_are_text(view: Open, walkthrough: Recording) -> None:
    lines = "\n\n".join(
        f"- {one}\n\n**{one}** [{one}]({one}) `{one}`\n\n# {one}" for one in NASTY[:10]
    )
    huge = "*_`[**" * 170_000
    recording = msgspec.structs.replace(
        walkthrough,
        extra={
            "stops": [
                {"step": one, "note": note, "title": title, "function": one, "zoom": zoom}
                for one in ("merge", NASTY[0], "__proto__", 3)
                for note, title, zoom in (
                    (lines, "", [1, 2, 3]),
                    (NASTY[0], NASTY[1], "fit"),
                    (huge, huge, [1e308, -1e308, 1e308, 1e-300]),
                    (["x"], {"a": 1}, None),
                )
            ]
            + ["text", None, 3, [], {"select": {"op": 1e99}}, {"card": "toString", "tab": "x"}]
        },
    )
    page = present(view, recording)
    n = int(page.page.inner_text(".talk-count").partition("/")[2])
    assert n == 22
    for i in range(1, n + 1):
        at(page, i)
        assert page.page.locator(".app img, .app iframe, .app a, .app script").count() == 0
        page.key("ArrowRight")
    assert page.page.evaluate("window.hurt") is None
    shown = page.page.inner_text(".app")
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x00]", shown)
    page.key("Home")
    assert "<img src=x" in page.page.inner_text(".stage-note")
    speaker = speaker_of(page)
    assert speaker.page.locator("img, iframe, a[href]").count() == 0
    assert speaker.page.evaluate("window.hurt") is None
    assert speaker.errors == []


def test_problems_are_shown_where_the_person_looks(view: Open, talk: Recording) -> None:
    said = ["talk.yaml, line 6: no step 'merg'; the nearest is 'merge'.", NASTY[0]]
    page = present(view, talk, replay=replay_options(problems=said))
    assert said[0] in page.page.inner_text(".messages")
    assert page.page.evaluate("window.hurt") is None


def test_a_newer_schema_still_plays(view: Open, talk: Recording) -> None:
    plain = msgspec.to_builtins(talk, str_keys=True)
    html = swapped(to_html(talk, replay={}), packed({**plain, "schema": 99, "new": {"a": 1}}))
    page = view(html, drawn=False)
    page.page.wait_for_selector(".talk")
    assert "schema 99" in page.page.inner_text(".messages")
    page.key("ArrowRight")
    settled(page, 2)


def test_nothing_to_present_is_said(view: Open) -> None:
    page = view(to_html(Recording(title="nothing"), replay={}), drawn=False)
    assert "holds no steps" in page.page.inner_text("#byocviz-root")
    page.key("P", "s", "ArrowRight", "a")


def test_any_page_presents_and_goes_back(view: Open, ssd: Recording) -> None:
    page = view(ssd, "step=merge")
    page.key("P")
    page.page.wait_for_selector(".talk")
    assert page.page.inner_text(".talk-title").startswith("merge")
    assert page.page.evaluate("document.documentElement.classList.contains('large')")
    page.key("P")
    page.until("!document.querySelector('.talk')")
    assert page.page.locator(".top").is_visible()
    assert not page.page.evaluate("document.documentElement.classList.contains('large')")
    assert page.step == "merge"
    page.page.get_by_role("button", name="Present").click()
    page.page.wait_for_selector(".talk")
    page.page.get_by_role("button", name="Leave the presentation").click()
    page.until("!document.querySelector('.talk')")


@pytest.mark.parametrize("width", [1280, 1920])
def test_the_stage_can_be_read_by_all(view: Open, talk: Recording, width: int) -> None:
    """Contrast, names and roles; and nothing is wider than the screen."""
    page = present(view, talk, viewport={"width": width, "height": width * 9 // 16})
    for n in range(1, 12):
        settled(page, n)
        wide = page.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, n
        if n in (1, 3, 9, 10, 11):
            page.page.evaluate(FINISH)
            page.page.evaluate((VIEWER / "node_modules/axe-core/axe.min.js").read_text())
            found = page.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
            serious = [
                (one["id"], one["nodes"][0]["target"])
                for one in found["violations"]
                if one["impact"] in ("serious", "critical")
            ]
            assert serious == [], n
        page.key("ArrowRight")
