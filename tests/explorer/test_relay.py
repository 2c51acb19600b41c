"""The explorer on Relay: it steps through TVM's own passes, in the environment that has them."""

from __future__ import annotations

from tests.relay import needs_relay

needs_relay()

from collections.abc import Iterator  # noqa: E402
from typing import Any  # noqa: E402

import pytest  # noqa: E402
import tvm  # noqa: E402

import byocviz  # noqa: E402
from byocviz.errors import BackendError, ModuleError, StepMissing  # noqa: E402
from byocviz.explorer.explorer import Explorer  # noqa: E402
from byocviz.explorer.rulebox import AddedRule  # noqa: E402
from byocviz.explorer.session import PassLost, Session  # noqa: E402
from byocviz.recording.schema import STEPS, PrunePolicy  # noqa: E402
from tests.corpus_relay.walkthrough import walkthrough  # noqa: E402

from .plain import plain  # noqa: E402

CONV = 'is_op("nn.conv2d")(wildcard(), wildcard())'


def whole(**settings: Any) -> dict[str, Any]:
    backend = settings.pop("backend", "tutorial")
    made = byocviz.record(walkthrough(), backend, progress=False, title="m", **settings)
    return plain(made)


@pytest.fixture
def session() -> Iterator[Session]:
    made = Session(walkthrough(), "tutorial", title="m")
    yield made
    made.close()


def test_stepping_gives_what_recording_at_once_gives(session: Session) -> None:
    for step in STEPS:
        assert session.next_step == step
        session.run_to(step)
    assert plain(session.recording) == whole()


@pytest.mark.parametrize(
    ("change", "first"),
    [
        ({"rules": {"tutorial.add": False}}, "composite"),
        ({"rules": {"tutorial.conv2d_bias_relu": False}}, "composite"),
        ({"prepare": False}, "prepare"),
        ({"prepare": {"fold-constant": False}}, "prepare"),
        ({"backend": "tensorrt"}, "prepare"),
        ({"prune": PrunePolicy(min_ops=3)}, "prune"),
        ({"lowerable": True}, "composite"),
    ],
)
def test_there_and_back(session: Session, change: dict[str, Any], first: str) -> None:
    session.run_all()
    before = {key: getattr(session.settings, key) for key in change}
    assert session.change(**change) == first
    session.run_all()
    assert session.ran == list(STEPS[STEPS.index(first) :])
    assert plain(session.recording) == whole(**change)
    session.change(**before)
    session.run_all()
    assert plain(session.recording) == whole()
    session.change(**change)
    assert session.undo()
    assert plain(session.run_all()) == whole()


def test_nothing_is_offloaded_after_an_operator(session: Session) -> None:
    session.run_all()
    for identity in sorted(session.recording.ops):
        session.change(held=[identity])
        session.run_all()
        assert session.recording.failed is None
        places = session.recording.last.places
        assert identity not in places or places[identity].on == "tvm"
    add = next(o.id for o in session.recording.ops.values() if o.name == "add")
    session.change(held=[add])
    session.run_all()
    assert (
        "asked that nothing be offloaded" in session.recording.step("composite").reasons[add].text
    )
    assert "# Not in this text" in session.script()
    session.change(held=())
    assert plain(session.run_all()) == whole()


def test_rules_of_ones_own(session: Session) -> None:
    convs = [o.id for o in byocviz.record(walkthrough(), "tutorial", progress=False).operators()
             if o.name == "nn.conv2d"]  # fmt: skip
    assert session.try_rule(CONV).operators == convs
    refused = session.try_rule(f"pattern = {CONV}\ndef check(call):\n    return False")
    assert len(refused.refused) == len(convs)
    assert session.try_rule("conv = (").line == 1
    assert "cancelled" not in session.try_rule("while True: pass", time_limit=1.0).error
    session.add_rule("mine", CONV)
    session.run_all()
    first = session.recording.backend.rules[0]
    assert (first.name, first.matches) == ("tutorial.mine", len(convs))


@pytest.mark.parametrize("added", [False, True])
def test_the_script_makes_the_same_module(session: Session, added: bool) -> None:
    if added:
        session.change(added=[AddedRule("relu", 'is_op("nn.relu")(wildcard())')])
    recording = session.run_all()
    scope: dict[str, Any] = {"mod": walkthrough()}
    exec(session.script(), scope)
    tvm.ir.assert_structural_equal(scope["mod"], recording.module("prune"), map_free_vars=True)


def test_what_cannot_be(session: Session) -> None:
    with pytest.raises(StepMissing):
        session.change(prepare={"clip": False})  # one of Relax's
    with pytest.raises(BackendError):
        session.change(backend="nobody")
    with pytest.raises(ModuleError):
        Session(walkthrough(), "tutorial", entry="nothing")


def test_in_a_process_of_its_own(session: Session) -> None:
    session.run_to("merge")
    session.isolate(True)
    assert plain(session.run_all()) == whole()
    assert session.why_here == ""
    module = byocviz.record(walkthrough(), "tutorial", progress=False).module("prune")
    tvm.ir.assert_structural_equal(session.recording.module("prune"), module, map_free_vars=True)
    crash = f"pattern = {CONV}\ndef check(call):\n    import os; os.abort()"
    session.change(added=[AddedRule("mine", crash)])
    with pytest.raises(PassLost, match="SIGABRT"):
        session.run_all()
    assert session.done == ["import", "prepare"]
    session.change(added=())
    assert plain(session.run_all()) == whole()


def test_the_widget() -> None:
    explorer = byocviz.explore(walkthrough(), "tutorial", title="m")
    assert isinstance(explorer, Explorer)
    explorer.run_all()
    assert explorer.wait(120)
    assert explorer.error is None
    assert plain(explorer.recording) == whole()
    panel = explorer.panel
    assert "fold-constant" in panel._rewrite_boxes
    assert "tensorrt" in panel.backend.options
    panel._rule_boxes["tutorial.add"].value = False
    assert explorer.wait(120)
    assert plain(explorer.recording) == whole(rules={"tutorial.add": False})
    panel.min_ops.value = 4
    assert "at least 4 wanted" in panel.pruned.value
    explorer.build("onnxruntime", repeat=2)
    assert explorer.wait(300)
    assert explorer.error is None
    assert explorer.recording.results.latency is not None
    assert "AnnotateTarget" in explorer.script()
    explorer.close()
