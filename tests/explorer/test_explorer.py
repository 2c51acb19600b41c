"""The explorer as a Python object: traits, messages of views, errors, two at once."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import gzip
import json
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import byocviz
from byocviz.errors import ArgumentError, BackendError
from byocviz.explorer.explorer import Explorer
from byocviz.recording.schema import STEPS, PrunePolicy
from tests.corpus.walkthrough import walkthrough


class Browser:
    """Stands where the front end's end of the wire is, and keeps what it is sent."""

    def __init__(self, explorer: Explorer, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sent: list[tuple[dict[str, Any], list[bytes]]] = []
        self.explorer = explorer
        monkeypatch.setattr(
            type(explorer.views.viewer),
            "send",
            lambda _, content, buffers=None: self.sent.append((content, list(buffers or ()))),
        )

    def says(self, **content: Any) -> None:
        self.explorer.views.viewer._message(None, {"view": "v1", **content}, [])

    def of(self, kind: str) -> list[tuple[dict[str, Any], list[bytes]]]:
        return [one for one in self.sent if one[0]["type"] == kind]


@pytest.fixture
def explorer(built: None) -> Iterator[Explorer]:
    made = byocviz.explore(walkthrough(), "tutorial", title="walk <b>")
    assert made.wait(60)
    yield made
    made.close()


@pytest.fixture
def browser_end(explorer: Explorer, monkeypatch: pytest.MonkeyPatch) -> Browser:
    end = Browser(explorer, monkeypatch)
    end.says(type="ready")
    return end


def test_a_step_runs_when_it_is_first_looked_at(explorer: Explorer) -> None:
    assert explorer.session.done == ["import"]
    explorer.step = "composite"
    assert explorer.wait(60)
    assert explorer.session.done == ["import", "prepare", "composite"]
    explorer.previous()
    explorer.next()
    explorer.next()
    assert explorer.wait(60)
    assert explorer.step == "annotate"
    explorer.run_all()
    assert explorer.wait(60)
    assert explorer.step == "annotate"
    assert explorer.session.done == list(STEPS)
    with pytest.raises(ArgumentError):
        explorer.step = "nothing"
    assert explorer.step == "annotate"


def test_traits_tell_and_take(explorer: Explorer) -> None:
    seen: list[Any] = []
    explorer.observe(lambda change: seen.append(change["new"]), ["step", "rules"])
    explorer.run_all()
    explorer.rules = {"tutorial.add": False}
    assert explorer.wait(60)
    assert {"tutorial.add": False} in seen
    assert [r.name for r in explorer.recording.backend.rules if not r.enabled] == ["tutorial.add"]
    explorer.prepare = {**explorer.prepare, "clip": False}
    assert explorer.wait(60)
    rewrites = explorer.recording.step("prepare").rewrites
    assert [r.name for r in rewrites if not r.enabled] == ["clip"]


def test_what_cannot_be_is_raised_and_changes_nothing(explorer: Explorer) -> None:
    wanted = explorer.wanted
    with pytest.raises(BackendError):
        explorer.change(backend="nobody")
    with pytest.raises(BackendError):
        explorer.change(rules={"tutorial.nothing": True})
    with pytest.raises(ArgumentError):
        explorer.hold([999])
    with pytest.raises(ArgumentError):
        explorer.hold_chosen()
    assert explorer.wanted == wanted


def test_only_the_newest_change_runs(explorer: Explorer) -> None:
    explorer.run_all()
    explorer.wait(60)
    gate = threading.Event()
    explorer._worker.submit("gate", lambda: gate.wait(30))
    runs: list[str] = []
    explorer.session.tell = lambda text, done, total: runs.append(text)
    for on in (False, True, False, True, False):
        explorer.toggle_rule("tutorial.add", on)
        explorer.toggle_rule("tutorial.reshape", on)
    gate.set()
    assert explorer.wait(60)
    assert runs.count("composite") == 1
    off = {rule.name for rule in explorer.recording.backend.rules if not rule.enabled}
    assert off == {"tutorial.add", "tutorial.reshape"}


def test_this_thread_goes_on_while_a_step_runs(explorer: Explorer) -> None:
    gate = threading.Event()
    explorer.session.tell = lambda text, done, total: gate.wait(30)
    explorer.run_all()
    assert explorer.busy
    assert explorer.recording.title
    assert explorer.still()
    gate.set()
    assert explorer.wait(60)
    assert not explorer.busy


def test_a_cell_that_waits_sees_all_that_was_done() -> None:
    """The kernel's loop runs again only after the cell."""

    async def cell() -> tuple[bool, list[str], str]:
        explorer = byocviz.explore(walkthrough(), "tutorial")
        explorer.run_all()
        assert explorer.wait(60)
        explorer.toggle_rule("tutorial.add", False)
        assert explorer.wait(60)
        steps = [step.name for step in explorer.recording.steps]
        return explorer.busy, steps, str(explorer.panel.compared.value)

    busy, steps, compared = asyncio.run(cell())
    assert not busy
    assert steps == list(STEPS)
    assert "tutorial.add" in compared


def test_cancel_keeps_the_steps_before(explorer: Explorer) -> None:
    told = explorer._told
    began = threading.Event()

    def slow(text: str, done: int, total: int) -> None:
        if text == "annotate":
            began.set()
            while not explorer._worker.cancelled:
                time.sleep(0.005)
        told(text, done, total)

    explorer.session.tell = slow
    explorer.run_all()
    assert began.wait(60)
    explorer.cancel()
    assert explorer.wait(60)
    assert explorer.session.done == ["import", "prepare", "composite"]
    assert "Cancelled" in explorer.panel.message.value
    explorer.session.tell = told
    explorer.run_all()
    assert explorer.wait(60)
    assert explorer.session.done == list(STEPS)


def test_an_error_of_a_pass_is_a_message(built: None) -> None:
    from tvm.relax.dpl import is_op, wildcard

    def check(context: Any) -> bool:
        raise RuntimeError("<script>alert(1)</script>")

    add = is_op("relax.add")(wildcard(), wildcard())
    explorer = byocviz.explore(walkthrough(), byocviz.Backend("chip", [("chip.a", add, {}, check)]))
    explorer.run_to("composite")
    assert explorer.wait(60)
    assert explorer.session.done == ["import", "prepare", "composite"]
    assert explorer.recording.failed is not None
    assert "composite failed" in explorer.panel.message.value
    assert "<script" not in explorer.panel.message.value + explorer.still()
    explorer.toggle_rule("chip.a", False)
    explorer.run_all()
    assert explorer.wait(60)
    assert explorer.session.done == list(STEPS)


def test_two_explorers_at_once(built: None) -> None:
    mod = walkthrough()
    both = [byocviz.explore(mod, "tutorial"), byocviz.explore(mod, "onnxruntime")]
    for explorer in both:
        explorer.run_all()
    both[0].toggle_rule("tutorial.add", False)
    for explorer in both:
        assert explorer.wait(120)
        assert explorer.error is None
        assert explorer.session.done == list(STEPS)
    assert [e.recording.backend.name for e in both] == ["tutorial", "onnxruntime"]
    assert both[0].views.viewer._name != both[1].views.viewer._name


def test_no_mark_is_lost_whatever_runs_meanwhile(explorer: Explorer, tmp_path: Any) -> None:
    """Marks come from the kernel's thread while the other runs, begins anew, fails and is
    cancelled; what is saved at any moment holds them all, and whole steps."""
    changes: list[dict[str, Any]] = [
        {"rules": {"tutorial.add": False}},
        {"prepare": {"clip": False}},
        {"prune": PrunePolicy(min_ops=3)},
        {"prepare": True, "rules": {}},
        {"backend": "onnxruntime"},
        {"prune": True, "backend": "tutorial"},
    ]
    explorer.run_all()
    notes: list[str] = []
    for number in range(60):
        if number % 3 == 0:
            # After a cancel the backend may be the other one, which has no such rule.
            with contextlib.suppress(BackendError):
                explorer.change(**changes[number // 3 % len(changes)])
        if number % 10 == 7:
            explorer.cancel()
        if number % 10 == 9:
            explorer.run_all()
        notes.append(f"note {number}")
        explorer.mark(notes[-1])
        time.sleep(0.003 * (number % 7))
        kept = byocviz.load(explorer.save(tmp_path / "a.byocviz"))
        assert [stop["note"] for stop in kept.extra["stops"]] == notes
        assert [step.name for step in kept.steps] == list(STEPS[: len(kept.steps)])
        assert all(step.functions for step in kept.steps)
    explorer.unmark(0)
    explorer.run_all()
    assert explorer.wait(60)
    assert [stop.note for stop in explorer.stops] == notes[1:]
    assert [stop["note"] for stop in explorer.recording.extra["stops"]] == notes[1:]


# -- what is sent


def test_a_view_gets_all_and_then_what_changed(explorer: Explorer, browser_end: Browser) -> None:
    explorer.run_all()
    assert explorer.wait(60)
    end = browser_end
    end.sent.clear()
    explorer.toggle_rule("tutorial.add", False)
    assert explorer.wait(60)
    states = end.of("state")
    assert states
    sent = {piece["digest"] for content, _ in states for piece in content["pieces"]}
    parts = states[-1][0]["parts"]
    assert parts["steps"][0] not in sent  # import and prepare are there already
    assert parts["steps"][1] not in sent
    assert parts["steps"][2] in sent
    # A view that comes later gets everything.
    end.sent.clear()
    end.says(type="ready", view="v2")
    ((content, buffers),) = end.of("state")
    assert content["to"] == "v2"
    named = {p["digest"] for p in content["pieces"]}
    assert named >= {parts["head"], parts["ops"], parts["results"], parts["extra"]}
    assert named >= set(parts["steps"])
    texts = json.loads(gzip.decompress(buffers[-1]))
    assert texts == explorer.recording.texts
    # And one that missed something asks for it.
    end.sent.clear()
    end.says(type="missing", digests=[parts["ops"], "nothing of the kind", 3])
    ((content, _),) = end.of("state")
    assert [p["digest"] for p in content["pieces"]] == [parts["ops"]]


def test_the_page_is_sent_when_it_is_asked_for(browser_end: Browser) -> None:
    browser_end.says(type="page?")
    ((content, buffers),) = browser_end.of("page")
    page = gzip.decompress(buffers[0]).decode()
    assert content["to"] == "v1"
    assert page.startswith("<!doctype html>")
    assert "connect-src &#39;none&#39;" in page


def test_views_agree(explorer: Explorer, browser_end: Browser) -> None:
    end = browser_end
    explorer.run_all()
    explorer.wait(60)
    end.sent.clear()
    end.says(
        type="view",
        show={"step": "merge", "select": {"op": 3}, "tab": "tables", "layout": "stacked"},
        zoom=[0, 0, 100, 50],
    )
    assert explorer.step == "merge"
    assert explorer.selection == {"op": 3}
    (content, _), *_ = end.of("show")
    assert content["except"] == "v1"
    assert content["show"]["select"] == {"op": 3}
    stop = explorer.mark("here")
    assert (stop.step, stop.op, stop.tab, stop.layout) == ("merge", 3, "tables", "stacked")
    assert stop.zoom == (0, 0, 100, 50)
    explorer.selection = {"subgraph": 0}
    assert end.of("show")[-1][0]["show"] == {"select": {"subgraph": 0}}


def test_whoever_asks_is_answered(browser_end: Browser) -> None:
    """So that a view knows that the kernel is there."""
    for kind in ("there?", "view", "drawn", "hold", "picture", "nothing of the kind"):
        browser_end.sent.clear()
        browser_end.says(type=kind)
        assert any(content["to"] == "v1" for content, _ in browser_end.of("heard"))


@pytest.mark.parametrize(
    "content",
    [
        {"type": "view"},
        {"type": "view", "show": 3},
        {"type": "view", "show": {"step": ["merge"], "select": "x", "tab": 4}, "zoom": "far"},
        {"type": "view", "show": {"step": "merge'", "select": {"op": "3"}}},
        {"type": "hold", "ops": "all"},
        {"type": "hold", "ops": [True, "3", -1, 10**9], "on": True},
        {"type": "picture", "png": "<script>"},
        {"type": "picture", "svg": 3},
        {"type": "missing", "digests": None},
        {"type": None},
        {"type": "drawn", "rev": "x"},
        {"type": "ready", "view": {"x": 1}},
    ],
)
def test_what_a_page_says_is_not_taken_as_it_comes(
    explorer: Explorer, browser_end: Browser, content: dict[str, Any]
) -> None:
    browser_end.says(**content)
    assert explorer.wait(60)
    assert explorer.step == "import"
    assert explorer.wanted.held == frozenset()
    assert "<script>" not in explorer.still()


def test_the_menu_of_a_node_holds_back(explorer: Explorer, browser_end: Browser) -> None:
    explorer.run_all()
    explorer.wait(60)
    conv = next(o.id for o in explorer.recording.ops.values() if o.name == "relax.nn.conv2d")
    browser_end.says(type="hold", ops=[conv], on=True)
    assert explorer.wait(60)
    assert explorer.recording.last.places[conv].on == "tvm"
    assert explorer.panel.held.options[0][1] == conv
    browser_end.says(type="hold", ops=[conv], on=False)
    assert explorer.wait(60)
    assert explorer.recording.last.places[conv].on == "tutorial"


# -- the controls


def test_the_controls_drive_the_session(explorer: Explorer) -> None:
    panel = explorer.panel
    explorer.run_all()
    explorer.wait(60)
    panel._rule_boxes["tutorial.add"].value = False
    assert explorer.wait(60)
    assert explorer.wanted.rules == {"tutorial.add": False}
    assert "tutorial.add" in panel.compared.value
    panel.min_ops.value = 6
    assert "at least 6 wanted" in panel.pruned.value
    assert explorer.wanted.prune is True  # previewed, not applied
    explorer.change(prune=panel.policy())
    assert explorer.wait(60)
    assert explorer.wanted.prune == PrunePolicy(min_ops=6)
    panel._rewrite_boxes["clip"].value = False
    assert explorer.wait(60)
    assert explorer.prepare["clip"] is False
    panel.backend.value = "onnxruntime"
    assert explorer.wait(60)
    assert explorer.recording.backend.name == "onnxruntime"
    assert explorer.error is None
    panel.find.value = "conv2d"
    assert 0 < len(panel.rule_list.children) < len(explorer.recording.backend.rules)


def test_the_rule_box(explorer: Explorer) -> None:
    panel = explorer.panel
    explorer.try_rule("conv = (")
    assert explorer.wait(60)
    assert "Line 1" in panel.rule_said.value
    assert explorer.step == "import"
    explorer.add_rule("mine", 'is_op("relax.nn.relu")(wildcard())')
    assert explorer.wait(60)
    assert explorer.recording.backend.rules[0].name == "tutorial.mine"
    explorer.add_rule("<b>", "1")
    assert explorer.wait(60)
    assert "<b>" not in panel.rule_said.value.replace("<b>", "", 1)
    assert [rule.name for rule in explorer.wanted.added] == ["mine"]


def test_build_and_run(explorer: Explorer, tmp_path: Any) -> None:
    explorer.build("onnxruntime", repeat=2)
    assert explorer.wait(120)
    assert explorer.error is None
    results = explorer.recording.results
    assert results.build is not None
    assert results.check is not None
    assert results.latency is not None
    assert "Median latency" in explorer.panel.built.value
    assert explorer.views.shown()["tab"] == "results"
    # Another partition has other results.
    explorer.toggle_rule("tutorial.add", False)
    assert explorer.wait(60)
    assert not explorer.recording.results
    assert explorer.session.before is not None
    assert explorer.session.before.results
    explorer.build("nobody")
    assert explorer.wait(60)
    assert "nobody" in explorer.panel.built.value
    assert byocviz.load(explorer.save(tmp_path / "a.byocviz")).title == "walk <b>"
    assert explorer.to_html(tmp_path / "a.html").stat().st_size > 10_000


def test_the_still_is_escaped_and_complete(explorer: Explorer) -> None:
    explorer.run_all()
    explorer.wait(60)
    bundle = explorer._repr_mimebundle_()
    text = bundle["text/html"]
    assert "walk &lt;b&gt;" in text
    for step in STEPS:
        assert step in text
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert len(text) < 20_000


def test_it_is_busy_until_the_last_job_is_done(explorer: Explorer) -> None:
    first, second = threading.Event(), threading.Event()

    async def kernel() -> None:
        explorer._loop = asyncio.get_running_loop()
        explorer._submit("first", lambda: first.wait(30))
        explorer._submit("second", lambda: second.wait(30))
        first.set()
        while explorer._worker.now != "second":
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.05)
        assert explorer.busy
        assert not explorer.panel.cancel.disabled
        second.set()
        while explorer.busy:
            await asyncio.sleep(0.005)

    try:
        asyncio.run(asyncio.wait_for(kernel(), 30))
    finally:
        first.set()
        second.set()
    assert explorer.panel.cancel.disabled


def test_a_closed_one_leaves_nothing(built: None) -> None:
    threads = threading.active_count()
    explorer = byocviz.explore(walkthrough(), "tutorial")
    explorer.run_all()
    session = weakref.ref(explorer.session)
    explorer.close()
    explorer.close()
    assert explorer.wait(60)
    del explorer
    gc.collect()
    assert session() is None
    assert threading.active_count() <= threads


def test_what_cannot_be_explored_says_nothing_else(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ArgumentError, match="is a recording"):
        byocviz.explore("walk.byocviz")
    gc.collect()
    assert "Exception ignored" not in capfd.readouterr().err


def test_a_page_is_written_while_the_step_that_is_looked_at_runs(
    explorer: Explorer, tmp_path: Path
) -> None:
    gate = threading.Event()
    explorer.session.tell = lambda text, done, total: gate.wait(30)
    explorer.step = "merge"
    assert explorer.to_html(tmp_path / "page.html").exists()
    gate.set()
    assert explorer.wait(60)


def test_a_mark_says_which_fields_there_are(explorer: Explorer) -> None:
    with pytest.raises(ArgumentError, match="colour"):
        explorer.mark("x", colour=1)
    assert explorer.mark("y", step="merge").step == "merge"
