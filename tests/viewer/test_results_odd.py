"""Results that are odd, hostile or many: shown as far as they go."""

from __future__ import annotations

import math
import re
from typing import Any

import msgspec
import pytest

from byocviz.recording import Recording
from byocviz.recording.results import (
    BuildInfo,
    Check,
    Detected,
    Difference,
    EngineInfo,
    Found,
    Latency,
    ModuleNode,
    Part,
    Photo,
    Results,
    Variant,
)
from byocviz.render.html import to_html

from .conftest import Open
from .sampled import photos, timed
from .test_hostile import NASTY, packed, swapped
from .test_results import given, opened


def hostile(walkthrough: Recording) -> Recording:
    image = photos()[1].image
    ops = sorted(walkthrough.ops)[:2]

    def all_of(text: str) -> Results:
        words = {text[:2000]: text}
        variants = [
            Variant(
                text, text, text, [0.1], 0.1, 0.1, 0.1, 0.1, parts=[Part(text, 0.1)], note=text
            ),
            Variant(text, "byoc", text, cannot=text, note=text),
        ]
        boxes = [(-5.0, -5.0, 9e9, 9e9), (30.0, 30.0, 1.0, 1.0)]
        found = [Found(text, 0.5, b, i) for i, b in enumerate(boxes)]
        return Results(
            BuildInfo(
                text,
                text,
                stands_in_for=text,
                why=text,
                codegen=text,
                target=text,
                step=text,
                engines=[EngineInfo(text, ops, facts=words, code="t", layers="t")],
                tree=[ModuleNode(text, text, text), ModuleNode(text, text, text, 0)],
                made=text,
                machine=words,
            ),
            Check(1e-3, 1e-3, text, [Difference(text, text, 1.0, 1.0, True, text)], text),
            Latency(variants, 3, 1, text, words, text),
            [Photo(text, 40, 30, image, [Detected(text, text, found, 0.1, 0.1, text)] * 3)],
        )

    parts = [all_of(text) for text in NASTY]
    latencies = [p.latency.variants for p in parts if p.latency]
    results = parts[0]
    assert results.build is not None
    assert results.check is not None
    assert results.latency is not None
    for part in parts[1:]:
        assert part.build is not None
        assert part.check is not None
        results.build.engines += part.build.engines
        results.check.differences += part.check.differences
        results.photos += part.photos
    results.latency.variants = [v for one in latencies for v in one]
    return msgspec.structs.replace(
        walkthrough,
        results=results,
        texts=walkthrough.texts | {"t": "\n".join(NASTY)},
        extra={text[:3000]: {text[:3000]: text} for text in NASTY},
    )


@pytest.mark.parametrize("width", [420, 1600])
def test_every_string_is_data(view: Open, walkthrough: Recording, width: int) -> None:
    page = opened(view, hostile(walkthrough), viewport={"width": width, "height": 900})
    assert page.page.locator(".result-card").count() == 4
    page.page.get_by_role("button", name=re.compile("^ONNX text of")).first.click()
    page.page.locator(".text-panel pre").wait_for()
    for name in ("table", "side by side"):
        page.page.get_by_role("button", name=name, exact=True).click()
    for name in page.page.locator(".results button.name").all()[:20]:
        name.click()
    page.page.wait_for_timeout(300)
    assert page.page.evaluate("window.hurt") is None
    assert page.page.locator("iframe, object, embed").count() == 0
    sources = page.page.locator("img").evaluate_all("all => all.map(i => i.src.slice(0, 23))")
    assert set(sources) == {"data:image/jpeg;base64,"}
    shown = page.page.locator(".results").evaluate("e => e.textContent")
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x00\u200f]", shown)
    assert page.page.evaluate("document.documentElement.scrollWidth") <= width


def test_figures_that_are_not_known_are_question_marks(view: Open, walkthrough: Recording) -> None:
    nan = math.nan
    variants = [
        Variant("a", "tvm", median=nan, p10=nan, first=nan),
        Variant("b", "byoc", median=0.02, parts=[Part("x", nan), Part("TVM", 0.01)]),
        Variant("c", "byoc"),
    ]
    results = {
        "build": BuildInfo(
            "r", "R", engines=[EngineInfo("f", seconds=nan)], lower_seconds=nan, tvm_seconds=nan
        ),
        "check": Check(nan, nan, differences=[Difference("y", max_abs=nan)]),
        "latency": Latency(variants),
        "photos": [Photo("p", 9, 9, "", [Detected("a", found=[Found("x", nan, (1, 1, 2, 2))])])],
    }
    page = opened(view, given(walkthrough, **results))
    values = page.page.locator(".bar-value b").all_text_contents()
    assert values == ["?", "20 ms", "?"]
    assert "subgraphs and boundary: ?" in page.page.locator(".bars > li").nth(2).inner_text()
    assert page.page.locator(".speed").count() == 0
    assert page.page.locator(".tag-label").inner_text() == "x ?"
    assert "?" in page.page.inner_text("#table-engines tbody")
    shown = page.page.inner_text(".results")
    assert not re.search(r"NaN|Infinity|undefined|null", shown)
    page.page.get_by_role("button", name="table", exact=True).click()
    assert "NaN" not in page.page.inner_text(".results")


def test_results_of_another_form_are_shown_as_far_as_they_go(
    view: Open, walkthrough: Recording
) -> None:
    html = to_html(walkthrough)
    plain = msgspec.to_builtins(walkthrough, str_keys=True)
    odd: list[Any] = [None, 3, "x", [], [[]], {}, {"a": 1}, -1, True, [None, 3, "x", {}, [1]]]
    shapes: list[Any] = []
    for number, value in enumerate(odd):
        forms: list[Any] = [
            {"build": value, "check": value, "latency": value, "photos": value},
            {
                "build": {"engines": value, "tree": value, "machine": value, "title": value},
                "check": {"differences": value, "atol": value, "first": value},
                "latency": {"variants": value, "machine": value, "repeat": value},
                "photos": [
                    {"width": 4, "height": 4, "detected": value, "image": value, "name": value},
                    {"width": 4, "height": 4, "detected": [{"found": value}], "image": "data:x"},
                    {"width": 4, "height": 4, "detected": [{"found": [["a", 1, value]]}]},
                ],
            },
            {
                "build": {"engines": [{"facts": value, "op_ids": value, "code": value}]},
                "latency": {"variants": [{"median": value, "seconds": value, "parts": value}]},
                "check": {"differences": [{"name": value, "max_abs": value}]},
            },
        ]
        # A page takes a while: of each value one form, of the first and the last all.
        shapes += forms if value in (odd[0], odd[-1]) else [forms[number % len(forms)]]
    for shape in shapes:
        page = view(
            swapped(html, packed({**plain, "results": shape, "extra": {"a": 1}})),
            "tab=results",
            drawn=False,
        )
        page.page.wait_for_selector(".results")
        assert page.page.locator(".fatal").count() == 0
        assert not re.search("NaN|undefined|object Object", page.page.inner_text(".results"))
        page.page.context.close()


def test_two_hundred_variants_and_five_hundred_engines(view: Open, walkthrough: Recording) -> None:
    variants = [
        timed(f"variant {i}", "byoc" if i else "tvm", 0.5 / (1 + i % 50), setting=f"s{i // 20}")
        for i in range(200)
    ]
    engines = [EngineInfo(f"f{i}", seconds=0.1, facts={"n": str(i)}) for i in range(500)]
    tree = [ModuleNode("module", f"m{i}", parent=i - 1) for i in range(500)]
    found = [Found("a", 0.5, (i % 90, i % 80, 99, 99), i % 90) for i in range(3000)]
    results = {
        "build": BuildInfo("r", "R", engines=engines, tree=tree),
        "check": Check(
            1e-3, 1e-3, "", [Difference(f"f{i}", "subgraph", i * 1e-6) for i in range(500)]
        ),
        "latency": Latency(variants, 40, 5),
        "photos": [
            Photo("p", 100, 100, "", [Detected(f"v{i}", "byoc", found) for i in range(200)])
        ],
    }
    page = opened(view, given(walkthrough, **results))
    assert page.page.locator(".bars > .bar-row").count() == 200
    assert page.page.locator("#table-engines tbody tr").count() == 200
    page.page.locator("#table-engines").get_by_role("button", name="300 more of 500").click()
    assert page.page.locator("#table-engines tbody tr").count() == 500
    more = page.page.locator(".build-more").get_by_role("button", name=re.compile("more of 500"))
    for _ in range(3):
        more.click()
    assert "Level 180" in page.page.locator(".tree").evaluate("e => e.textContent")
    assert page.page.locator(".frame .edge").count() == 100
    page.page.get_by_label("Variant", exact=True).select_option("150")
    page.page.get_by_role("button", name="side by side").click()
    assert page.page.locator(".shot").count() == 6
    assert page.page.evaluate("document.documentElement.scrollWidth") <= 1600
