"""Finding operators on the page."""

from __future__ import annotations

from typing import Any

import pytest

from byocviz.recording import Recording

from .conftest import Open


def test_a_reason_leads_to_its_first_operator(view: Open, ssd: Recording) -> None:
    """What is found may be out of sight while all else fades."""
    page = view(ssd, step="merge")
    (code, *_) = {reason.code for reason in ssd.step("merge").reasons.values()}
    page.page.locator(".inspector .op-link", has_text=code).click()
    page.page.wait_for_selector(".pane-after .node.hit-now.sel")
    page.until(
        "() => { const at = document.querySelector('.pane-after .node.hit-now')"
        ".getBoundingClientRect(), box = document.querySelector('.pane-after .canvas')"
        ".getBoundingClientRect(); return at.top >= box.top && at.bottom <= box.bottom; }"
    )
    assert page.page.input_value("#search") == f"reason:{code}"
    # What stands in the box is replaced by what is typed.
    page.key("/")
    page.page.keyboard.type("op:clip")
    assert page.page.input_value("#search") == "op:clip"


def test_search_by_keyboard(view: Open, ssd: Recording) -> None:
    page = view(ssd, step="merge")
    page.key("/")
    page.page.keyboard.type("op:conv2d")
    count = ssd.step("merge").profile.ops["relax.nn.conv2d"]
    page.until("n => document.querySelector('.search .count').textContent === String(n)", count)
    page.page.keyboard.press("Enter")
    page.until("n => document.querySelector('.search .count').textContent === `1 of ${n}`", count)
    page.page.wait_for_selector(".pane-after .node.hit-now")
    page.page.keyboard.press("Enter")
    page.until("n => document.querySelector('.search .count').textContent === `2 of ${n}`", count)
    page.page.keyboard.press("Escape")
    page.until("document.querySelector('#search').value === ''")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("on:tvm", lambda r: r.last.profile.total - r.last.profile.offloaded_ops),
        ("region:s1", lambda r: len(r.last.subgraphs[0].op_ids)),
        ("reason:", lambda r: len(r.last.reasons)),
        ("op:conv2d on:tensorrt", lambda r: r.last.subgraphs[0].ops["relax.nn.conv2d"]),
    ],
    ids=["on", "region", "reason", "both"],
)
def test_search_filters(view: Open, ssd: Recording, query: str, expected: Any) -> None:
    page = view(ssd, f"step={ssd.last.name}&q={query.replace(' ', '+')}")
    assert page.page.inner_text(".search .count") == str(expected(ssd))


def test_what_is_gone_is_found_on_the_left(view: Open, ssd: Recording) -> None:
    page = view(ssd, step="prepare")
    page.page.locator(".change.c-gone").click()
    gone = ssd.step("import").places.keys() - ssd.step("prepare").places.keys()
    page.until("n => document.querySelector('.search .count').textContent === n", str(len(gone)))
    page.key("3")  # the after pane alone, where it does not stand
    page.key("n")
    page.page.wait_for_selector(".pane-before .node.sel.c-gone")
    assert "gone" in page.page.inner_text(".inspector")
