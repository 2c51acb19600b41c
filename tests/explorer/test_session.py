"""A session agrees with `byocviz.record`, whatever was changed on the way."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import msgspec
import pytest
import tvm
from hypothesis import given, settings
from hypothesis import strategies as st

import byocviz
from byocviz.errors import ArgumentError, BackendError, StepMissing
from byocviz.explorer.session import Session, Stopped
from byocviz.recording.schema import STEPS, PrunePolicy
from byocviz.recording.stops import Stop
from tests.corpus import CASES, Case
from tests.corpus.walkthrough import walkthrough

from .plain import plain

CONV = 'is_op("relax.nn.conv2d")(wildcard(), wildcard())'
SOME = CASES[::11]


def whole(mod: Any, backend: Any = "tutorial", **settings: Any) -> dict[str, Any]:
    return plain(byocviz.record(mod, backend, progress=False, title="m", **settings))


@pytest.fixture
def session() -> Session:
    return Session(walkthrough(), "tutorial", title="m")


@pytest.mark.parametrize("case", SOME, ids=str)
def test_stepping_gives_what_recording_at_once_gives(case: Case) -> None:
    mod, given = case.build(), {"entry": case.entry}
    session = Session(mod, case.backend, title="m", **given)
    for step in STEPS:
        session.run_to(step)
    assert plain(session.recording) == whole(mod, case.backend, **given)


@pytest.mark.parametrize("case", SOME[::3], ids=str)
def test_there_and_back_gives_the_same(case: Case) -> None:
    mod, given = case.build(), {"entry": case.entry}
    session = Session(mod, case.backend, title="m", **given)
    session.run_all()
    first = plain(session.recording)
    for change in (
        {"rules": {rule.name: False for rule in session.recording.backend.rules[:1]}},
        {"prepare": False},
        {"prune": PrunePolicy(min_ops=3)},
    ):
        before = session.settings
        session.change(**change)
        session.run_all()
        assert plain(session.recording) == whole(mod, case.backend, **given, **change)
        session.change(**{key: getattr(before, key) for key in change})
        session.run_all()
        assert plain(session.recording) == first


@pytest.mark.parametrize(
    ("change", "first"),
    [
        ({"prepare": {"dead-code": False}}, "prepare"),
        ({"rules": {"tutorial.add": False}}, "composite"),
        ({"backend": "onnxruntime"}, "composite"),
        ({"lowerable": True}, "composite"),
        ({"prune": PrunePolicy(min_ops=2)}, "prune"),
    ],
)
def test_only_the_steps_that_are_touched_run_again(
    session: Session, change: dict[str, Any], first: str
) -> None:
    session.run_all()
    kept = {step.name: step for step in session.recording.steps}
    assert session.change(**change) == first
    at = STEPS.index(first)
    assert session.done == list(STEPS[:at])
    session.run_all()
    assert session.ran == list(STEPS[at:])
    for name in STEPS[:at]:
        assert session.recording.step(name) is kept[name]
    assert session.comparison() is not None


def test_a_change_before_a_step_ran_costs_nothing(session: Session) -> None:
    session.run_to("prepare")
    session.change(rules={"tutorial.add": False})
    assert session.done == ["import", "prepare"]
    assert session.change(rules={"tutorial.add": False}) == ""
    session.run_all()
    assert plain(session.recording) == whole(walkthrough(), rules={"tutorial.add": False})


def test_a_change_that_cannot_be_changes_nothing(session: Session) -> None:
    session.run_all()
    before, settings = plain(session.recording), session.settings
    for change, error in (
        ({"rules": {"tutorial.nothing": False}}, BackendError),
        ({"backend": "nobody"}, BackendError),
        ({"prepare": {"nothing": True}}, StepMissing),
        ({"held": [10_000]}, ArgumentError),
        ({"colour": 1}, ArgumentError),
    ):
        with pytest.raises(error):
            session.change(**change)
    assert session.settings == settings
    assert plain(session.recording) == before
    with pytest.raises(ArgumentError):
        session.run_to("nothing")


def test_the_run_before_stays(session: Session) -> None:
    session.run_all()
    first = session.recording
    session.change(rules={"tutorial.add": False})
    # A second change before anything ran again still compares with what ran.
    session.change(rules={"tutorial.add": False, "tutorial.reshape": False})
    session.run_all()
    assert session.before is first
    compared = session.comparison()
    assert compared is not None
    assert compared.subgraphs[0] == len(first.last.subgraphs)
    assert compared.rules_on[0] == ["tutorial.add", "tutorial.reshape"]


def test_what_is_cancelled_leaves_the_steps_before(session: Session) -> None:
    def tell(text: str, done: int, total: int) -> None:
        if text == "merge":
            raise Stopped("enough")

    session.tell = tell
    with pytest.raises(Stopped):
        session.run_all()
    assert session.done == ["import", "prepare", "composite", "annotate"]
    session.tell = lambda text, done, total: None
    session.run_all()
    assert plain(session.recording) == whole(walkthrough())


def test_nothing_is_offloaded_after_an_operator(session: Session) -> None:
    session.run_all()
    everything = session.recording.last.profile.offloaded_ops
    for identity in sorted(session.recording.ops):
        session.change(held=[identity])
        session.run_all()
        places = session.recording.last.places
        assert session.recording.failed is None
        assert identity not in places or places[identity].on == "tvm"
        assert session.recording.last.profile.offloaded_ops <= everything
    convs = [o.id for o in session.recording.ops.values() if o.name == "relax.nn.conv2d"]
    session.change(held=convs)
    session.run_all()
    reasons = session.recording.step("composite").reasons
    assert any(reason.code == "held-back" for reason in reasons.values())
    session.change(held=())
    session.run_all()
    assert plain(session.recording) == whole(walkthrough())


def test_the_preview_says_what_pruning_does(session: Session) -> None:
    assert session.preview(PrunePolicy(min_ops=3)) is None
    session.run_all()
    for policy in (PrunePolicy(min_ops=n) for n in range(6)):
        seen = session.preview(policy)
        assert seen is not None
        session.change(prune=policy)
        session.run_all()
        last = session.recording.last
        assert seen.subgraphs[1] == len(last.subgraphs)
        assert seen.coverage_ops[1] == pytest.approx(last.profile.coverage_ops)
        assert seen.coverage_macs[1] == pytest.approx(last.profile.coverage_macs)
        assert seen.boundary_bytes[1] == (last.profile.bytes_in or 0) + (
            last.profile.bytes_out or 0
        )


@pytest.mark.parametrize("held", [(), (3,)])
@pytest.mark.parametrize("prune", [True, PrunePolicy(min_ops=3)])
def test_the_script_makes_the_same_module(held: tuple[int, ...], prune: Any) -> None:
    mod = walkthrough()
    session = Session(mod, "tutorial", prune=prune, rules={"tutorial.add": False})
    session.run_to("prepare")
    session.change(held=held)
    session.add_rule("relu", 'is_op("relax.nn.relu")(wildcard())')
    recording = session.run_all()
    scope: dict[str, Any] = {"mod": mod}
    exec(session.script(), scope)
    tvm.ir.assert_structural_equal(scope["mod"], recording.module(recording.last.name))


def test_a_failing_rule_is_said_and_the_steps_before_stay() -> None:
    def check(context: Any) -> bool:
        raise RuntimeError("nothing to be done")

    from tvm.relax.dpl import is_op, wildcard

    chip = byocviz.Backend(
        "chip", [("chip.a", is_op("relax.add")(wildcard(), wildcard()), {}, check)]
    )
    session = Session(walkthrough(), chip)
    recording = session.run_all()
    assert recording.failed is not None
    assert recording.failed.name == "composite"
    session.change(rules={"chip.a": False})
    session.run_all()
    assert session.recording.failed is None


def test_marks_stay_through_changes(session: Session) -> None:
    session.run_all()
    session.mark(Stop("merge", "three convs", op=3))
    session.mark(Stop("prune", "then"))
    session.change(rules={"tutorial.add": False})
    session.run_all()
    assert [stop.note for stop in session.stops] == ["three convs", "then"]
    assert msgspec.json.decode(msgspec.json.encode(session.recording.extra)) == {
        "stops": [
            {"step": "merge", "note": "three convs", "select": {"op": 3}},
            {"step": "prune", "note": "then"},
        ]
    }
    assert session.outdated == [0, 1]
    session.unmark(0)
    assert [stop.note for stop in session.stops] == ["then"]
    session.mark(Stop("prune", "under these"))
    assert session.outdated == [0]
    session.change(rules={})
    assert session.outdated == [1]


def test_what_was_explored_can_be_built(session: Session) -> None:
    session.run_all()
    session.change(rules={"tutorial.add": False})
    build = byocviz.build(session.run_all(), runtime="onnxruntime", cache=False, progress=False)
    assert not build.check().first
    assert session.recording.results.check is not None


@pytest.mark.parametrize("ran", ["", "import", "merge"])
@pytest.mark.parametrize(
    "change", [{"prune": False}, {"lowerable": True}, {"prepare": False}], ids=str
)
def test_what_is_undone_while_it_runs_leaves_every_step_in_its_place(
    session: Session, ran: str, change: dict[str, Any]
) -> None:
    if ran:
        session.run_to(ran)
    session.keep()
    session.change(**change)

    def tell(text: str, done: int, total: int) -> None:
        if text == "prune":
            raise Stopped("enough")

    session.tell = tell
    with pytest.raises(Stopped):
        session.run_all()
    assert session.undo()
    session.tell = lambda text, done, total: None
    assert plain(session.run_all()) == whole(walkthrough())


@pytest.mark.parametrize("name", ["walk.byocviz", Path("WALK.BYOCVIZ")])
def test_a_recording_is_not_explored(session: Session, name: Any) -> None:
    for one in (name, session.recording):
        with pytest.raises(ArgumentError, match="is a recording"):
            Session(one, "tutorial")


def test_a_stop_of_anything_can_be_saved(session: Session, tmp_path: Path) -> None:
    session.run_to("import")
    session.mark(Stop("import", "half a pair \ud800", zoom=(0, 0, float("nan"), 1)))
    session.mark(Stop(5, None, op=10**30))  # type: ignore[arg-type]
    with pytest.raises(ArgumentError):
        session.mark(Stop("import", zoom=3))  # type: ignore[arg-type]
    saved = byocviz.load(session.recording.save(tmp_path / "walk.byocviz"))
    assert [one.get("note") for one in saved.extra["stops"]] == ["half a pair ?", ""]


_ACTS = st.one_of(
    st.tuples(st.just("run"), st.sampled_from(STEPS)),
    st.tuples(st.just("cancel"), st.sampled_from(STEPS), st.booleans()),
    st.sampled_from([("undo",), ("keep",), ("mark",), ("preview",)]),
    st.tuples(
        st.just("change"),
        st.sampled_from(
            [
                {"rules": {"tutorial.add": False}},
                {"rules": {}},
                {"prepare": False},
                {"prepare": {"clip": False}},
                {"prune": False},
                {"prune": PrunePolicy(min_ops=3)},
                {"backend": "onnxruntime"},
                {"lowerable": True},
            ]
        ),
    ),
)


@settings(max_examples=6, deadline=None)
@given(st.lists(_ACTS, min_size=3, max_size=10))
def test_whatever_was_done_it_ends_as_recording_does(acts: list[tuple[Any, ...]]) -> None:
    session = Session(walkthrough(), "tutorial", title="m")
    for kind, *more in acts:
        if kind == "run":
            session.run_to(more[0])
        elif kind == "change":
            with contextlib.suppress(BackendError):  # a rule that this backend does not have
                session.change(**more[0])
        elif kind == "cancel":
            _cancelled(session, *more)
        elif kind == "mark":
            session.mark(Stop("import", "x"))
        elif kind == "preview":
            session.preview(PrunePolicy(min_ops=2))
        else:
            getattr(session, kind)()
    got, now = plain(session.run_all()), session.settings
    got.pop("extra", None)
    want = whole(
        walkthrough(),
        now.backend,
        rules=dict(now.rules) or None,
        prepare=now.prepare,
        prune=now.prune,
        lowerable=now.lowerable,
    )
    want.pop("extra", None)
    assert got == want


def _cancelled(session: Session, at: str, back: bool) -> None:
    def tell(text: str, done: int, total: int) -> None:
        if text == at:
            raise Stopped("enough")

    session.tell = tell
    with contextlib.suppress(Stopped):
        session.run_all()
    session.tell = lambda text, done, total: None
    if back:
        session.undo()
