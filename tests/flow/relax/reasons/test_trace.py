from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

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


TABLE = [
    ("one", lambda c: c == "first", "c == 'first'"),
    ("two", lambda c: (c == 2 or
                       c == 3), "c == 2 or c == 3"),
]  # fmt: skip
ONE_LINE = [lambda c: c == "a", lambda c: any((lambda d: d == "b")(e) for e in c)]


def test_the_condition_of_a_lambda_is_its_own_expression():
    for _, check, said in TABLE:
        answer = Answer()
        assert not answer.watch(check, "other")
        assert answer.condition() == answer.line() == said


def test_two_lambdas_of_one_line():
    known = ["c == 'a'", "any(((lambda d: d == 'b')(e) for e in c))"]
    for check, said in zip(ONE_LINE, known, strict=True):
        answer = Answer()
        assert not answer.watch(check, "other")
        # Before Python 3.11 code has no columns: then nothing is said.
        assert answer.condition() == (said if sys.version_info >= (3, 11) else "")


def test_a_return_round_a_check_is_not_the_checks():
    def table():
        return [("x", lambda context: context == "never")]

    def outer(context):
        def inner(value):
            if value == "never":
                return True
            return value == "else"

        return inner(context)

    for check, said in ((table()[0][1], "context == 'never'"), (outer, "inner(context)")):
        answer = Answer()
        assert not answer.watch(check, "other")
        assert answer.condition() == said


def test_answers_that_tvm_does_not_take():
    for said in (None, "yes", 1.0, np.bool_(True), []):
        answer = Answer()
        assert not answer.watch(lambda context, said=said: said, "x")
        assert "not a bool" in answer.error
        assert answer.raised is None
    answer = Answer()
    assert answer.watch(lambda context: 1, "x")
    assert not answer.error


def test_what_is_no_python_function_has_no_place():
    answer = Answer()
    assert answer.watch(len, [1])
    assert answer.where() == answer.condition() == ""


def test_paths_start_at_the_package():
    import byocviz.flow.relax.reasons.trace as module

    assert short_path(module.__file__) == "byocviz/flow/relax/reasons/trace.py"
    assert short_path("/no/such/rules.py") == "rules.py"
    assert not Path(short_path(__file__)).is_absolute()
