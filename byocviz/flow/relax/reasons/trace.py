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

import tvm

import byocviz

_TVM = Path(tvm.__file__).parent
_BYOCVIZ = Path(byocviz.__file__).parent
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
        self.raised: BaseException | None = None
        """What the check raised, before its way through the FFI."""
        self.said: Any = None
        """What it returned."""
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
        return _condition(self.code, self.end) if self.code and self.end else ""

    def line(self) -> str:
        """The source of the line on which the check ended, of a lambda its expression; or ""."""
        if self.code is None or not self.end:
            return ""
        function = _function(self.code)
        if isinstance(function, ast.Lambda):
            return _written(function.body)
        if self.code.co_name == "<lambda>":
            return ""
        return linecache.getline(self.code.co_filename, self.end).strip()[:_LONGEST]

    def origin(self) -> str:
        """The helper that raised, as ``fits (own.py:7)``; "" where the check itself did."""
        trace = self.raised.__traceback__ if self.raised is not None else None
        found = ""
        while trace is not None:
            code = trace.tb_frame.f_code
            # TVM adds frames of its own, of files that are not there.
            if _own(code.co_filename) and linecache.getlines(code.co_filename):
                place = f"{short_path(code.co_filename)}:{trace.tb_lineno}"
                found = "" if code is self.code else f"{code.co_name} ({place})"
            trace = trace.tb_next
        return found

    def watch(self, check: Any, context: Any) -> bool:
        """Call the check and note everything. What it raises is noted too, as a refusal, and so
        is an answer that is no bool, which TVM does not take."""
        self.asked = True
        self.accepted, self.said = False, None
        self.lines, self.end, self.error, self.raised = [], 0, "", None
        before = sys.gettrace()
        sys.settrace(self._enter)
        try:
            self.said = check(context)
        except Exception as error:
            # On its way through the FFI an error can lose its class; the frame still showed it.
            self.raised = self.raised or error
            self.error = error_text(self.raised)
            return False
        finally:
            sys.settrace(before)
        self.raised = None
        self.error = "" if is_answer(self.said) else no_answer(self.said)
        self.accepted = not self.error and bool(self.said)
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
                self.raised = arg[1]
        if event == "line" and len(self.lines) < _MOST_LINES:
            self.lines.append((frame.f_code.co_filename, frame.f_lineno))
        return self._line


def is_answer(said: Any) -> bool:
    """Whether TVM takes it for a check's answer: numpy's bool, a string or None it does not."""
    return isinstance(said, bool | int)


def no_answer(said: Any) -> str:
    return f"TypeError: it returned {answer_text(said)}, not a bool"


def answer_text(said: Any) -> str:
    """An answer and its type: ``None``, ``'yes' (str)``, ``n % 8 == 0 (EQ)``."""
    kind = type(said)
    name = f"numpy.{kind.__name__}" if kind.__module__ == "numpy" else kind.__name__
    return "None" if said is None else f"{safe_repr(said)} ({name})"


def safe_repr(value: Any) -> str:
    """Its ``repr`` on one line, not too long."""
    try:
        text = repr(value)
    except Exception:  # of a class of the check's own
        text = f"a {type(value).__name__}"
    return " ".join(text.split())[:_LONGEST]


def error_text(error: BaseException) -> str:
    """``ValueError: its last line``."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[-1][:_LONGEST]}" if lines else type(error).__name__


def _own(filename: str) -> bool:
    """Whether a file holds checks and their helpers rather than TVM's or Python's machinery."""
    if filename.startswith(("<frozen", _STANDARD)) and "site-packages" not in filename:
        return False
    path = Path(filename)
    if "tvm_ffi" in path.parts or path.is_relative_to(_BYOCVIZ):
        return False  # what asks a check, and the lowering: no check has its cause there
    if path.is_relative_to(_TVM):
        inside = path.relative_to(_TVM).parts
        return "backend" in inside or "contrib" in inside
    return "numpy" not in path.parts


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

_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def _condition(code: CodeType, line: int) -> str:
    function = _function(code)
    if function is None:
        return ""
    if isinstance(function, ast.Lambda):
        body = function.body
        return "" if isinstance(body, ast.Constant) else _written(body)
    found: ast.expr | None = None
    for node in _own_nodes(function):
        if isinstance(node, ast.Return) and node.value is not None:
            inside = node.lineno <= line <= (node.end_lineno or node.lineno)
            if inside and not isinstance(node.value, ast.Constant):
                found = node.value
        elif isinstance(node, ast.If):
            # The innermost if whose own block holds the line; outer ones come first.
            first, last = node.body[0].lineno, node.body[-1].end_lineno or 0
            if first <= line <= last:
                found = node.test
    return _written(found) if found is not None else ""


def _written(expr: ast.expr) -> str:
    return " ".join(ast.unparse(expr).split())[:_LONGEST]


def _function(code: CodeType) -> _Function | None:
    """The node of the very function or lambda; None where the source does not tell which."""
    filename = code.co_filename
    if filename not in _trees:
        try:
            _trees[filename] = ast.parse("".join(linecache.getlines(filename)))
        except SyntaxError:
            _trees[filename] = None
    tree = _trees[filename]
    found = [
        node
        for node in (ast.walk(tree) if tree is not None else ())
        if isinstance(node, _Function)
        and _begins(node) == code.co_firstlineno
        and getattr(node, "name", "<lambda>") == code.co_name
    ]
    if len(found) > 1 and sys.version_info >= (3, 11):
        # Several lambdas begin on one line: the columns of the code tell them apart.
        spans = [s for s in code.co_positions() if None not in s and s[2] != s[3]]
        found = [node for node in found if spans and all(_holds(node, span) for span in spans)]
        inner = [n for n in found if not any(o is not n and o in ast.walk(n) for o in found)]
        found = inner or found
    return found[0] if len(found) == 1 else None


def _begins(function: _Function) -> int:
    decorators: list[ast.expr] = getattr(function, "decorator_list", [])
    return min([function.lineno, *(node.lineno for node in decorators)])


def _holds(function: _Function, span: Any) -> bool:
    """Whether the body holds a span of (line, end line, column, end column)."""
    line, end_line, column, end_column = span
    body = function.body if isinstance(function, ast.Lambda) else function
    starts = (body.lineno, body.col_offset) <= (line, column)
    return starts and (end_line, end_column) <= (body.end_lineno or 0, body.end_col_offset or 0)


def _own_nodes(function: _Function) -> Iterator[ast.AST]:
    """Its nodes, outer ones first, without those of functions and classes inside it."""
    front: list[ast.AST] = [function]
    while front:
        inside = [part for node in front for part in ast.iter_child_nodes(node)]
        front = [n for n in inside if not isinstance(n, _Function | ast.ClassDef)]
        yield from front
