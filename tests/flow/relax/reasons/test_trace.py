from __future__ import annotations

import sys
from pathlib import Path

from byocviz.flow.relax.reasons.trace import Answer, short_path

WORDS = {"allowed": ["NHWC", "NCHW"], "limit": 7}


class Config:
    KINDS = ("int4", "int8")


def check(context):
    """A docstring is no candidate for an attribute."""
    if context == "first":
        return False
    if context in Config.KINDS or context in WORDS:
        return helper(
            context,
        )
    return context != "last" and context != 3.5


def helper(context):
    raise ValueError(f"no {context}\nat all")


def test_line_and_condition_of_a_refusal():
    answer = Answer()
    assert not answer.watch(check, "first")
    assert answer.condition() == "context == 'first'"
    line = answer.end
    later = Answer()
    assert not later.watch(check, "last")
    assert later.condition() == "context != 'last' and context != 3.5"
    assert later.end > line
    assert later.further_than(answer)
    assert not answer.further_than(later)
    assert answer.where().endswith(f"test_trace.py:{line}")


def test_words_of_the_check_its_globals_and_classes():
    answer = Answer()
    answer.watch(check, "other")
    assert answer.accepted
    assert {"first", "last", 3.5, "NHWC", "NCHW", 7, "int4", "int8"} <= set(answer.words)
    assert not any("docstring" in str(word) for word in answer.words)


def test_closure_words():
    allowed = ("ceil", "floor")

    def inside(context):
        return context in allowed

    answer = Answer()
    answer.watch(inside, "ceil")
    assert {"ceil", "floor"} <= set(answer.words)


def test_an_exception_is_a_refusal():
    answer = Answer()
    assert not answer.watch(check, "int8")
    assert answer.error == "ValueError: at all"
    assert answer.condition()


def test_the_tracer_of_a_debugger_stays():
    def mine(frame, event, arg):
        return None

    before = sys.gettrace()
    sys.settrace(mine)
    try:
        Answer().watch(check, "other")
        assert sys.gettrace() is mine
    finally:
        sys.settrace(before)


def test_what_is_no_python_function_has_no_place():
    answer = Answer()
    assert answer.watch(len, [1])
    assert answer.where() == answer.condition() == ""


def test_paths_start_at_the_package():
    import byocviz.flow.relax.reasons.trace as module

    assert short_path(module.__file__) == "byocviz/flow/relax/reasons/trace.py"
    assert short_path("/no/such/rules.py") == "rules.py"
    assert not Path(short_path(__file__)).is_absolute()
