"""What the rules' checks answer while TVM's passes ask them, and what they log of it."""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tvm import relay

from byocviz.backends.refusal import Refusal, take
from byocviz.backends.relay_table import RelayRule
from byocviz.flow.relay.compat import aside, tag_of
from byocviz.flow.relay.patterns import certain_ends

_MOST_LINES = 20


@dataclass
class Verdict:
    """One answer of one rule's check."""

    rule: RelayRule
    root: int
    """Number of the call at which the match ends."""
    accepted: bool
    lines: list[str]
    """What the check logged."""
    error: str = ""
    refusal: Refusal | None = None
    """What it said itself of why it refuses."""


def root_tag(expr: Any) -> int:
    """The number of the call that a match ends in; it may end in a tuple's element."""
    while isinstance(expr, relay.TupleGetItem):
        expr = expr.tuple_value
    return tag_of(expr) if isinstance(expr, relay.Call) else -1


class _Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if len(self.lines) < _MOST_LINES:
            self.lines.append(" ".join(record.getMessage().split())[:500])


@contextmanager
def logged(functions: Iterable[Any]) -> Iterator[list[str]]:
    """Within: what the loggers that these functions can reach say goes to the list alone.

    The list is the same object all the time: clear it before each question.
    """
    handler = _Lines()
    loggers = {log for function in functions for log in _loggers(function)}
    before = [(log, log.level, log.propagate, log.disabled) for log in loggers]
    for log in loggers:
        log.setLevel(logging.DEBUG)
        log.propagate, log.disabled = False, False
        log.addHandler(handler)
    try:
        yield handler.lines
    finally:
        for log, level, propagate, disabled in before:
            log.removeHandler(handler)
            log.setLevel(level)
            log.propagate, log.disabled = propagate, disabled


def _loggers(function: Any) -> list[logging.Logger]:
    """The loggers among the globals of a function's module."""
    function = _inner(function)
    scope = getattr(function, "__globals__", None) or {}
    return [value for value in scope.values() if isinstance(value, logging.Logger)]


class Verdicts:
    """Every answer, once for each rule and call."""

    def __init__(self) -> None:
        self.all: dict[tuple[int, int], Verdict] = {}
        self.interrupt: KeyboardInterrupt | None = None
        """What came from the keyboard while a check ran."""

    def at(self, root: int) -> list[Verdict]:
        """The answers about matches that end in a call, in the order of the rules."""
        return sorted((v for v in self.all.values() if v.root == root), key=lambda v: v.rule.index)

    def refused(self) -> list[Verdict]:
        return [v for v in self.all.values() if not v.accepted]

    def fault(self) -> Verdict | None:
        """The check that failed, where one did."""
        return next((v for v in self.all.values() if v.error), None)

    def listening(self, rule: RelayRule, lines: list[str]) -> Callable[[Any], bool]:
        """The rule's check, whose answers are written down."""
        check = rule.check

        def ask(expr: Any) -> bool:
            if check is None:
                return True
            lines.clear()
            take()
            key = rule.index, root_tag(expr)
            try:
                with aside():
                    answer = bool(check(expr))
            except BaseException as error:
                said = f"{type(error).__name__}: {error}"[:500]
                self.all[key] = Verdict(rule, key[1], False, list(lines), said)
                if isinstance(error, Exception):
                    raise
                # TVM hands on no other kind.
                self.interrupt = error if isinstance(error, KeyboardInterrupt) else None
                raise RuntimeError(said) from error
            refusal = take()
            self.all[key] = Verdict(rule, key[1], answer, list(lines), refusal=refusal)
            return answer

        return ask

    def patterns(
        self, rules: Iterable[RelayRule], present: Container[str], lines: list[str]
    ) -> list[tuple[Any, ...]]:
        """The table for MergeComposite, but for the rules that cannot match: the pass looks
        through all of the module for each. ``present`` are the module's operators."""
        return [
            (rule.name, rule.pattern, self.listening(rule, lines))
            for rule in rules
            if rule.pattern is not None and rule.enabled and _may_match(rule, present)
        ]

    def operators(
        self, rules: Iterable[RelayRule], lines: list[str]
    ) -> Mapping[str, Callable[[Any], bool]]:
        """The operator rules for AnnotateTarget; the first of two for one operator counts."""
        found: dict[str, Callable[[Any], bool]] = {}
        for rule in rules:
            if rule.pattern is None and rule.enabled:
                found.setdefault(rule.op, self.listening(rule, lines))
        return found


def _may_match(rule: RelayRule, present: Container[str]) -> bool:
    ends = certain_ends(rule.pattern)
    return ends is None or any(name in present for name in ends)


def _inner(function: Any) -> Any:
    """The function within partial ones and those that were wrapped around it."""
    while True:
        inner = getattr(function, "__wrapped__", None)
        if inner is None and isinstance(function, functools.partial):
            inner = function.func
        if inner is None:
            return function
        function = inner


def where(check: Any) -> str:
    """File and line of a check, "" where it is not Python's."""
    check = _inner(check)
    try:
        path = Path(inspect.getsourcefile(check) or "")
        return f"{path.name}:{inspect.getsourcelines(check)[1]}"
    except (TypeError, OSError):
        return ""
