"""Watches a rule's check answer: which lines of it ran, and what it compares with.

A check is a Python function behind an FFI function, out of reach; but while it runs, its frames
can be seen. They show the line on which it refused and the constants that it was written with.
"""

from __future__ import annotations

import ast
import linecache
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

_STANDARD = sysconfig.get_paths()["stdlib"]
_LONGEST = 160
_MOST_LINES = 4000
"""Line events kept of one answer; a check that loops over more is compared by these."""


class Answer:
    """What a check said about one match, and how it came to it."""

    def __init__(self) -> None:
        self.asked = False
        self.accepted = False
        self.error = ""
        self._raised: BaseException | None = None
        self.lines: list[tuple[str, int]] = []
        self.code: CodeType | None = None
        """Of the check itself; None where it is no Python function."""
        self.end = 0
        """The line on which the check itself ended."""
        self.codes: dict[CodeType, FrameType | None] = {}
        self.words: dict[Any, None] = {}
        """Strings and numbers that the check's code mentions, in order."""

    def further_than(self, other: Answer) -> bool:
        return self.progress() > other.progress()

    def progress(self) -> tuple[int, int]:
        """How far the check came: the line of its end, then how many lines ran."""
        return self.end, len(self.lines)

    def where(self) -> str:
        """``tvm/relax/backend/contrib/tensorrt.py:84``, without the machine's own path."""
        if self.code is None:
            return ""
        return f"{short_path(self.code.co_filename)}:{self.end or self.code.co_firstlineno}"

    def condition(self) -> str:
        """The condition under which the check ended where it did, from its source; or ""."""
        return _condition(self.code.co_filename, self.end) if self.code and self.end else ""

    def watch(self, check: Any, context: Any) -> bool:
        """Call the check and note everything. What it raises is noted too, as a refusal."""
        self.asked = True
        self.lines, self.end, self.error, self._raised = [], 0, "", None
        before = sys.gettrace()
        sys.settrace(self._enter)
        try:
            self.accepted = bool(check(context))
        except Exception as error:
            # On its way through the FFI an error can lose its class; the frame still showed it.
            self.accepted, self.error = False, error_text(self._raised or error)
        finally:
            sys.settrace(before)
        return self.accepted

    def _enter(self, frame: FrameType, event: str, arg: Any) -> Any:
        code = frame.f_code
        if event != "call" or not _own(code.co_filename):
            return None
        if self.code is None:
            self.code = code
        if code not in self.codes:
            self.codes[code] = None
            for word in _words(frame):
                self.words.setdefault(word)
        return self._line

    def _line(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event in ("line", "return", "exception") and frame.f_code is self.code:
            self.end = frame.f_lineno
            if event == "exception" and isinstance(arg[1], BaseException):
                self._raised = arg[1]
        if event == "line" and len(self.lines) < _MOST_LINES:
            self.lines.append((frame.f_code.co_filename, frame.f_lineno))
        return self._line


def error_text(error: BaseException) -> str:
    """``ValueError: its last line``."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[-1][:_LONGEST]}" if lines else type(error).__name__


def _own(filename: str) -> bool:
    """Whether a file holds checks and their helpers rather than TVM's or Python's machinery."""
    if filename.startswith(("<frozen", _STANDARD)) and "site-packages" not in filename:
        return False
    parts = Path(filename).parts
    if "tvm_ffi" in parts or filename == __file__:
        return False
    if "tvm" in parts:
        return "backend" in parts or "contrib" in parts
    return "numpy" not in parts


def _words(frame: FrameType) -> Iterator[Any]:
    code = frame.f_code
    yield from _constants(code)
    names = code.co_names
    for name in names:
        value = frame.f_globals.get(name)
        yield from _simple(value)
        if isinstance(value, type):
            for other in names:
                yield from _simple(value.__dict__.get(other))
    for name in code.co_freevars:
        yield from _simple(frame.f_locals.get(name))


def _constants(code: CodeType) -> Iterator[Any]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _constants(constant)
        else:
            yield from _simple(constant)


def _simple(value: Any, depth: int = 3) -> Iterator[Any]:
    if isinstance(value, str):
        # A docstring or a message is no candidate for an attribute.
        if value and len(value) <= 40 and not any(c.isspace() for c in value):
            yield value
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield value
    elif isinstance(value, tuple | list | set | frozenset | dict) and depth and len(value) <= 64:
        parts = [*value, *value.values()] if isinstance(value, dict) else value
        for part in parts:
            yield from _simple(part, depth - 1)


def short_path(filename: str) -> str:
    """A file's path from the directory of its outermost package on."""
    path = Path(filename)
    start = path.parent
    while (start / "__init__.py").exists():
        start = start.parent
    try:
        return path.relative_to(start).as_posix()
    except ValueError:
        return path.name


_trees: dict[str, ast.Module | None] = {}


def _condition(filename: str, line: int) -> str:
    if filename not in _trees:
        try:
            _trees[filename] = ast.parse("".join(linecache.getlines(filename)))
        except SyntaxError:
            _trees[filename] = None
    tree = _trees[filename]
    if tree is None:
        return ""
    found: ast.expr | None = None
    for node in ast.walk(tree):
        if isinstance(node, ast.Return) and node.value is not None:
            inside = node.lineno <= line <= (node.end_lineno or node.lineno)
            if inside and not isinstance(node.value, ast.Constant):
                found = node.value
        elif isinstance(node, ast.If):
            # The innermost if whose own block holds the line; ast.walk goes outside in.
            first, last = node.body[0].lineno, node.body[-1].end_lineno or 0
            if first <= line <= last:
                found = node.test
    return " ".join(ast.unparse(found).split())[:_LONGEST] if found is not None else ""
