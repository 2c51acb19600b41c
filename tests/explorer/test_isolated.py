"""The passes in a process of their own: the same record, and what crashes or hangs ends there."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm
import tvm_ffi

import byocviz
from byocviz.errors import ArgumentError
from byocviz.explorer.explorer import Explorer
from byocviz.explorer.given import _pack, _unpack
from byocviz.explorer.rulebox import AddedRule
from byocviz.explorer.session import PassLost, Session, Stopped
from byocviz.recording.schema import STEPS, PrunePolicy
from tests.corpus import CASES
from tests.corpus.walkthrough import walkthrough

from .plain import plain
from .test_session import whole

CONV = 'is_op("relax.nn.conv2d")(wildcard(), wildcard())'


def checking(body: str) -> AddedRule:
    """A rule whose check does something."""
    return AddedRule("mine", f"pattern = {CONV}\ndef check(context):\n    {body}")


LOOP = checking("while True: pass")


@pytest.fixture(scope="module")
def apart() -> Iterator[Session]:
    """One session, and one child, for the tests of this module; each leaves it as it found it."""
    session = Session(walkthrough(), "tutorial", title="m", isolated=True)
    session.run_all()
    yield session
    session.close()


def gone(pid: int | None) -> bool:
    assert pid is not None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_it_gives_what_recording_gives(apart: Session) -> None:
    pid = apart._engine.pid
    assert pid not in (None, os.getpid())
    assert plain(apart.recording) == whole(walkthrough())
    for change in (
        {"rules": {"tutorial.add": False}},
        {"prepare": {"clip": False}},
        {"prune": PrunePolicy(min_ops=3)},
        {"held": [3]},
        {"backend": "onnxruntime"},
        {"lowerable": True},
        {"added": [AddedRule("relu", 'is_op("relax.nn.relu")(wildcard())')]},
    ):
        here = Session(walkthrough(), "tutorial", title="m")
        here.run_to("prepare")
        here.change(**change)
        assert apart.change(**change) != ""
        assert plain(apart.run_all()) == plain(here.run_all())
        assert apart.undo()
    assert plain(apart.run_all()) == whole(walkthrough())
    assert apart._engine.pid == pid  # one child for all


@pytest.mark.parametrize("case", CASES[5::99], ids=str)
def test_every_kind_of_module_travels(case: Any) -> None:
    mod, given = case.build(), {"entry": case.entry}
    session = Session(mod, case.backend, title="m", isolated=isinstance(case.backend, str), **given)
    try:
        for step in STEPS:
            session.run_to(step)
        assert session.why_here == ""
        assert plain(session.recording) == whole(mod, case.backend, **given)
    finally:
        session.close()


def test_modules_blockers_and_builds_come_from_there(apart: Session) -> None:
    here = byocviz.record(walkthrough(), "tutorial", progress=False, title="m")
    for step in ("import", "merge", "prune"):
        module = apart.recording.module(step)
        tvm.ir.assert_structural_equal(module, here.module(step))
        assert apart.recording.module(step) is module
    assert apart.recording.blockers() == here.blockers()
    build = byocviz.build(apart.recording, runtime="onnxruntime", cache=False, progress=False)
    assert not build.check().first
    policy = PrunePolicy(min_ops=3)
    there = Session(walkthrough(), "tutorial", title="m")
    there.run_all()
    loaded = set(apart.recording.__dict__["modules"].loaded)
    assert apart.preview(policy) == there.preview(policy)
    assert set(apart.recording.__dict__["modules"].loaded) == loaded  # nothing is fetched for it


def test_a_module_of_a_run_before_is_not_another_runs(apart: Session) -> None:
    before = apart.recording
    apart.change(rules={"tutorial.add": False})
    apart.run_all()
    assert "annotate" not in before.__dict__["modules"]
    assert "prepare" in before.__dict__["modules"]
    apart.undo()
    tvm.ir.assert_structural_equal(
        before.module("annotate"),
        byocviz.record(walkthrough(), "tutorial", progress=False).module("annotate"),
    )


@pytest.mark.parametrize(
    ("crash", "said"),
    [
        ("import os; os.abort()", "SIGABRT"),
        ("import ctypes; ctypes.string_at(0)", "SIGSEGV"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGFPE)", "SIGFPE"),
    ],
)
def test_a_pass_that_crashes_is_a_message(apart: Session, crash: str, said: str) -> None:
    apart.keep()
    apart.change(added=(checking(crash),))  # past the trial that add_rule makes
    with pytest.raises(PassLost, match=f"composite .*{said}") as caught:
        apart.run_all()
    assert caught.value.mend
    assert "rule tutorial.mine" in caught.value.message
    assert apart.done == ["import", "prepare"]
    assert apart.recording.failed is None
    apart.change(added=())
    assert plain(apart.run_all()) == whole(walkthrough())
    apart.keep()


def test_a_process_that_was_killed_between_steps_is_replaced(apart: Session) -> None:
    apart.change(prune=PrunePolicy(min_ops=3))
    apart._engine._child.close()
    apart.run_all()
    assert plain(apart.recording) == whole(walkthrough(), prune=PrunePolicy(min_ops=3))
    apart.undo()


def test_a_pass_that_does_not_end_is_cancelled_at_once(apart: Session) -> None:
    before = apart.recording
    apart.change(added=(LOOP,))
    pid = apart._engine.pid
    end = time.monotonic() + 0.5
    apart.cancelled = lambda: time.monotonic() > end
    with pytest.raises(Stopped):
        apart.run_all()
    apart.cancelled = lambda: False
    assert gone(pid)
    assert apart.done == ["import", "prepare"]
    assert apart.undo()
    assert apart.recording is before
    assert not apart.undo()
    assert plain(apart.run_all()) == whole(walkthrough())


def test_one_that_takes_too_long_is_ended(apart: Session) -> None:
    apart.change(added=(LOOP,))
    apart._engine._time_limit = 1.0
    with pytest.raises(PassLost, match="limit of 1 s"):
        apart.run_all()
    apart._engine._time_limit = 600.0
    apart.undo()


def test_what_a_rule_raises_is_said_as_ever(apart: Session) -> None:
    apart.change(added=(checking("1 / 0"),))
    recording = apart.run_all()
    assert recording.failed is not None
    assert recording.failed.name == "composite"
    assert "ZeroDivisionError" in str(recording.failed.error)
    apart.undo()


def test_the_switch_keeps_what_ran() -> None:
    session = Session(walkthrough(), "tutorial", title="m")
    session.run_to("merge")
    steps = list(session.recording.steps)
    for on in (True, False):
        session.isolate(on)
        assert session.recording.steps == steps
        tvm.ir.assert_structural_equal(
            session.recording.module("merge"),
            byocviz.record(walkthrough(), "tutorial", progress=False).module("merge"),
        )
    assert plain(session.run_all()) == whole(walkthrough())


def test_who_cannot_be_given_to_another_process() -> None:
    backend = byocviz.backends.get("tutorial")
    with pytest.raises(ArgumentError, match="by its name"):
        Session(walkthrough(), backend, isolated=True)
    with pytest.raises(ArgumentError):
        Session(walkthrough(), backend, isolated="yes")  # type: ignore[arg-type]
    byocviz.backends.register(backend.with_rules(*backend.rules()[:0]), name="mine-alone")
    try:
        session = Session(walkthrough(), "mine-alone", title="m", isolated=True)
        session.run_all()
        assert "this process" in session.why_here
        assert session.done == list(STEPS)
        session.change(backend="tutorial")
        session.run_all()
        assert session.why_here == ""
        assert plain(session.recording) == whole(walkthrough())
        session.close()
    finally:
        del byocviz.backends._registered["mine-alone"]


def test_it_is_offered_where_tvm_has_a_codegen_of_its_own() -> None:
    assert not Session(walkthrough(), "tutorial", isolated=None).isolated
    tvm_ffi.register_global_func("relax.ext.tutorial", lambda *_: None)
    try:
        assert Session(walkthrough(), "tutorial", isolated=None).isolated
        assert not Session(walkthrough(), "tutorial", isolated=False).isolated
        backend = byocviz.backends.get("tutorial")
        assert not Session(walkthrough(), backend, isolated=None).isolated
    finally:
        tvm_ffi.registry.remove_global_func("relax.ext.tutorial")


@pytest.mark.parametrize(
    "params",
    [
        {"w": np.arange(6, dtype="float32").reshape(2, 3), "b": np.float32(1)},
        [np.zeros((2, 2), "int8"), np.ones(3, "float16")],
        {"main": [np.zeros(1), np.ones(2)], "other": [np.ones(1)]},
        {},
    ],
)
def test_weights_travel(params: Any) -> None:
    def flat(given: Any) -> Any:
        if isinstance(given, dict):
            return {key: flat(value) for key, value in given.items()}
        if isinstance(given, list):
            return [flat(value) for value in given]
        array = np.asarray(given.numpy() if hasattr(given, "numpy") else given)
        return str(array.dtype), array.tolist()

    assert flat(_unpack(_pack(params))) == flat(params)


# -- in the widget


@pytest.fixture
def explorer(built: None) -> Iterator[Explorer]:
    made = byocviz.explore(walkthrough(), "tutorial", title="m", isolated=True)
    made.run_all()
    assert made.wait(120)
    yield made
    made.close()


def test_the_widget_lives_on(explorer: Explorer) -> None:
    before = plain(explorer.recording)
    explorer.change(added=(checking("import os; os.abort()"),))
    assert explorer.wait(60)
    assert isinstance(explorer.error, PassLost)
    assert "SIGABRT" in explorer.panel.message.value
    assert explorer.session.done == ["import", "prepare"]
    explorer.change(added=())
    assert explorer.wait(60)
    assert plain(explorer.recording) == before
    explorer.change(added=(LOOP,))
    while explorer._doing != "composite":
        time.sleep(0.01)
    explorer.cancel()
    assert explorer.wait(30)
    assert isinstance(explorer.error, Stopped)
    assert plain(explorer.recording) == before
    assert explorer.wanted.added == ()
    assert not explorer.busy
    explorer.panel.isolated.value = False
    assert explorer.wait(60)
    assert not explorer.session.isolated
    assert plain(explorer.recording) == before


@pytest.mark.parametrize("isolated", [True, False])
def test_an_endless_rule_can_be_cancelled(built: None, isolated: bool) -> None:
    explorer = byocviz.explore(walkthrough(), "tutorial", isolated=isolated)
    explorer.run_to("prepare")
    assert explorer.wait(60)
    explorer.try_rule(CONV)  # so that the process is there
    assert explorer.wait(60)
    explorer.try_rule("while True: pass", time_limit=600.0)
    time.sleep(0.5)
    assert explorer.busy
    explorer.cancel()
    assert explorer.wait(20)
    assert "cancelled" in explorer.panel.rule_said.value
    assert explorer.session.done == ["import", "prepare"]
    explorer.close()


def test_without_it_cancel_says_what_ends_first(built: None, tmp_path: Path) -> None:
    explorer = byocviz.explore(walkthrough(), "tutorial", isolated=False)
    explorer.run_to("prepare")
    assert explorer.wait(60)
    gate = tmp_path / "gate"
    slow = f"import os, time\n    while not os.path.exists({str(gate)!r}): time.sleep(0.01)"
    explorer.change(added=(checking(f"{slow}\n    return True"),))
    explorer.step = "merge"
    while explorer._doing != "composite":
        time.sleep(0.01)
    explorer.cancel()
    assert "composite ends first" in explorer.panel.message.value
    assert "own process" in explorer.panel.message.value
    assert explorer.busy
    gate.touch()
    assert explorer.wait(60)
    assert isinstance(explorer.error, Stopped)
    assert "Cancelled" in explorer.panel.message.value
    assert explorer.wanted.added == ()
    explorer.close()


def test_a_session_that_is_forgotten_ends_its_processes() -> None:
    session = Session(walkthrough(), "tutorial", isolated=True)
    session.run_to("import")
    session.try_rule(CONV)
    pids = session._engine.pid, session._trier._child.pid
    assert not any(map(gone, pids))
    del session
    gc.collect()
    assert all(map(gone, pids))


def test_every_module_is_there_after_the_switch() -> None:
    session = Session(walkthrough(), "tutorial")
    session.run_to("partition")
    session.isolate(True)
    for step in session.done:
        assert session.recording.module(step).functions
    assert session.preview(PrunePolicy(min_ops=2)) is not None
    session.isolate(False)
    session.change(rules={"tutorial.add": False})
    assert session.recording.module("prepare").functions
    session.close()


def test_neither_a_kill_between_steps_nor_the_end_of_a_thread_is_a_crash() -> None:
    apart = Session(walkthrough(), "tutorial", title="m", isolated=True)
    apart.run_all()
    apart.keep()
    apart.change(prune=PrunePolicy(min_ops=3))
    pid = apart._engine.pid
    os.kill(pid, signal.SIGKILL)
    while apart._engine._child.alive:
        time.sleep(0.01)
    step = threading.Thread(target=apart.run_all)
    step.start()
    step.join()
    assert apart.recording.last.name == "prune"
    began = apart._engine.pid
    assert began != pid
    time.sleep(0.1)  # were it to go with its thread, it would by now
    apart.undo()
    assert plain(apart.run_all()) == whole(walkthrough())
    assert apart._engine._child.alive
    assert apart._engine.pid == began
    apart.close()
