"""Rules written as text: tried apart, added, pasted."""

from __future__ import annotations

import re
import time

import pytest

import byocviz
from byocviz.errors import ArgumentError
from byocviz.explorer.dialects.relax import RELAX
from byocviz.explorer.rulebox import AddedRule, RuleError, assigned, checked_name, compile_rule
from byocviz.explorer.session import PassLost, Session
from byocviz.recording.schema import STEPS
from tests.corpus.walkthrough import walkthrough

CONV = 'is_op("relax.nn.conv2d")(wildcard(), wildcard())'


@pytest.fixture(scope="module")
def session() -> Session:
    session = Session(walkthrough(), "tutorial", title="m")
    session.run_all()
    return session


@pytest.mark.parametrize(
    "text",
    [
        CONV,
        f"pattern = {CONV}",
        f"conv = {CONV}\nconv",
        f"# a word before\n\nconv = {CONV}\n(conv)",
        f"x = 'ünïcode'; {CONV}",
        f"x = '''a\u2028b\x1cc'''\n{CONV}",
        f"x = 1\r{CONV}",
        f"x = 1\r\n{CONV}\r\n",
        f"from tvm.relax.dpl import is_op\npattern = {CONV}\nprint",
    ],
)
def test_the_last_expression_is_the_pattern(text: str) -> None:
    name, pattern, *_ = compile_rule(text, "tutorial.mine", RELAX)
    assert name == "tutorial.mine"
    assert "conv2d" in str(pattern)
    scope: dict[str, object] = {}
    exec(f"from tvm.relax.dpl import *\n{assigned(text)}", scope)
    assert type(scope["pattern"]) is type(pattern)


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("x = 1\ny = (", 2, "never closed"),
        ("x = 1\nnothing_of_the_kind()", 2, "NameError"),
        ("x = 1", 0, "makes no pattern"),
        ("pattern = 3", 0, "int"),
        ("", 0, "makes no pattern"),
        (f"check = 3\n{CONV}", 0, "not a function"),
        (f"{CONV}\n" + "#" * 30_000, 0, "characters"),
        ("x = '\0'", 0, "null"),
    ],
)
def test_what_is_no_rule_is_said_with_its_line(text: str, line: int, said: str) -> None:
    with pytest.raises(RuleError, match=said) as caught:
        compile_rule(text, "tutorial.mine", RELAX)
    assert caught.value.line == line or line == 0
    assert caught.value.mend


@pytest.mark.parametrize("name", ["", "a b", "1a", "a'b", "x" * 200, "ä\n"])
def test_names(name: str) -> None:
    with pytest.raises(RuleError):
        checked_name(name)


def test_a_trial_names_the_operators(session: Session) -> None:
    trial = session.try_rule(CONV)
    ops = session.recording.ops
    convs = [i for i, p in session.recording.step("prepare").places.items()
             if ops[i].name == "relax.nn.conv2d"]  # fmt: skip
    assert trial.error == ""
    assert trial.operators == sorted(convs)
    refused = session.try_rule(f"{CONV}\ndef check(context):\n    return False".replace(
        CONV, f"pattern = {CONV}"))  # fmt: skip
    assert refused.matches == ()
    assert len(refused.refused) == len(convs)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import os\nos.abort()", "crashed"),
        ("import sys\nsys.exit(0)", "SystemExit"),
        (f"pattern = {CONV}\ndef check(context):\n    return 1 / 0", "division by zero"),
        (f"pattern = {CONV}\ndef check(context):\n    return 'yes'", "not a bool"),
    ],
)
def test_what_hangs_or_crashes_ends_apart(session: Session, text: str, said: str) -> None:
    trial = session.try_rule(text, time_limit=60.0)
    assert re.search(said, trial.error)
    assert trial.mend
    with pytest.raises(RuleError):
        session.add_rule("mine", text, time_limit=60.0)
    assert session.settings.added == ()


@pytest.mark.parametrize(
    "text", ["while True: pass", f"pattern = {CONV}\ndef check(context):\n    while True: pass"]
)
def test_a_loop_that_does_not_end_is_ended(session: Session, text: str) -> None:
    trial = session.try_rule(text, time_limit=1.0)
    assert "longer than the limit" in trial.error


def test_a_trial_can_be_cancelled(session: Session) -> None:
    end = time.monotonic() + 0.2
    session.cancelled = lambda: time.monotonic() > end
    trial = session.try_rule("while True: pass")
    session.cancelled = lambda: False
    assert "cancelled" in trial.error


def test_an_added_rule_comes_first(session: Session) -> None:
    session.add_rule("mine", CONV)
    session.add_rule("tutorial.mine", CONV)  # the same name, replaced
    recording = session.run_all()
    assert recording.backend.rules[0].name == "tutorial.mine"
    assert recording.backend.rules[0].matches > 0
    session.change(added=())
    assert "tutorial.mine" not in [r.name for r in session.run_all().backend.rules]


def test_isolated_passes_that_crash_leave_the_steps_before() -> None:
    session = Session(walkthrough(), "tutorial", isolated=True)
    session.run_all()
    assert session.recording.failed is None
    crash = f"pattern = {CONV}\ndef check(context):\n    import os\n    os.abort()"
    session.change(added=(AddedRule("crash", crash),))  # past the trial that add_rule makes
    with pytest.raises(PassLost, match="crashed"):
        session.run_all()
    assert session.done == ["import", "prepare"]
    session.change(added=())
    session.run_all()
    assert session.done == list(STEPS)
    with pytest.raises(ArgumentError):
        Session(walkthrough(), byocviz.backends.get("tutorial"), isolated=True)
