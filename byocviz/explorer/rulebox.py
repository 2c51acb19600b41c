"""A rule written as Python text, in TVM's dataflow pattern language.

The text makes a ``pattern``, or ends with an expression that is one::

    conv = is_op("relax.nn.conv2d")(wildcard(), wildcard())
    is_op("relax.nn.relu")(conv)

It may make a ``check`` as well, a function that takes TVM's PatternCheckContext and returns a
bool. What ``tvm.relax.dpl`` exports, ``relax`` and ``tvm`` are at hand without an import; on Relay
``tvm.relay.dataflow_pattern``, ``relay`` and ``tvm``, and a check takes the call that a match ends
in.
"""

from __future__ import annotations

import ast
import linecache
import re
import traceback
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from byocviz.backends import Backend
from byocviz.errors import ByocvizError
from byocviz.recording.printable import printable

if TYPE_CHECKING:
    from byocviz.explorer.dialects import Dialect

_NAME = re.compile(r"[A-Za-z_][\w.]*")
_LONGEST = 20_000


class RuleError(ByocvizError, ValueError):
    """A rule's text that makes no rule. ``line`` is the line of the text, from 1; 0: none."""

    def __init__(self, message: str, mend: str, line: int = 0) -> None:
        self.line = line
        super().__init__(message, mend)


@dataclass(frozen=True)
class AddedRule:
    """A rule of the person's own: its name without the backend's, and its text."""

    name: str
    source: str

    def onto(self, backend: Backend, dialect: Dialect) -> Backend:
        """The backend with the rule before its own. Raises `RuleError`."""
        full = f"{backend.name}.{self.name}"
        entry = compile_rule(self.source, full, dialect)
        table = backend.table or "patterns = [...]  # the backend's own table"
        return replace(
            backend.with_rules(entry, first=True), table=f"{table}\n{self.text(full, dialect)}"
        )

    def text(self, full: str, dialect: Dialect) -> str:
        """Python text that puts the rule before those of ``patterns``."""
        check = ", {}, check" if dialect.ir == "relax" else ", check"
        entry = f"({full!r}, pattern{check if _has_check(self.source) else ''})"
        if dialect.ir == "relay" and not _has_check(self.source):
            entry = f"({full!r}, pattern, lambda _: True)"
        return f"{dialect.header}\n{assigned(self.source)}\npatterns = [{entry}, *patterns]"


def checked_name(name: str) -> str:
    """A rule's name. Raises `RuleError` for what TVM or a person could not read."""
    name = name.strip()
    if not _NAME.fullmatch(name) or len(name) > 80:
        raise RuleError(
            f"{printable(name, limit=80)!r} is no name for a rule.",
            "Give letters, digits, _ and full stops, such as my_rule.",
        )
    return name


def compile_rule(source: str, full: str, dialect: Dialect) -> tuple[Any, ...]:
    """What the dialect takes for a rule: ``(name, pattern[, annotations, check])`` on Relax,
    ``(name, pattern[, check])`` on Relay.

    Runs the text. Raises `RuleError` with the line where it fails.
    """
    if len(source) > _LONGEST:
        raise RuleError(f"A rule of {len(source):,} characters.", f"Keep it below {_LONGEST:,}.")
    where = f"<rule {full}>"
    try:
        tree = ast.parse(assigned(source), where)
        code = compile(tree, where, "exec")
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", 0) or 0
        said = str(getattr(error, "msg", error))
        raise RuleError(
            f"Line {line}: {printable(said, limit=300)}",
            "Mend the Python text.",
            line,
        ) from error
    scope: dict[str, Any] = {"__name__": where}
    exec(dialect.header, scope)
    scope.pop("pattern", None)  # the module in which tvm.relax.dpl keeps its classes
    # So that a trace, and inspect, find the text of a check.
    linecache.cache[where] = (len(source), None, source.splitlines(True), where)
    try:
        exec(code, scope)
    except Exception as error:
        line = line_of(error, where)
        raise RuleError(
            f"Line {line}: {type(error).__name__}: {printable(str(error), limit=500)}",
            "Mend the text; what is at hand: " + "; ".join(dialect.header.splitlines()) + ".",
            line,
        ) from error
    pattern = scope.get("pattern")
    if not isinstance(pattern, dialect.pattern()):
        raise RuleError(
            "The text makes no pattern."
            if pattern is None
            else f"pattern is a {type(pattern).__name__}, not a pattern.",
            'End with one, such as is_op("relax.nn.relu")(wildcard()), or give it the name '
            "pattern.",
        )
    check = scope.get("check")
    if check is None:
        return full, pattern
    if not callable(check):
        raise RuleError(
            f"check is a {type(check).__name__}, not a function.",
            "Write def check(context): ... that returns True or False.",
        )
    return (full, pattern, {}, check) if dialect.ir == "relax" else (full, pattern, check)


def assigned(source: str) -> str:
    """The text, its last expression given the name ``pattern`` where nothing has it."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return source  # said where it is compiled
    if _assigns(tree, "pattern") or not tree.body or not isinstance(tree.body[-1], ast.Expr):
        return source
    last = tree.body[-1]
    # As Python counts them: str.splitlines ends lines at other characters as well.
    lines = re.split(r"(?<=\n)|(?<=\r)(?!\n)", source)
    at = lines[last.lineno - 1].encode()
    lines[last.lineno - 1] = (
        at[: last.col_offset] + b"pattern = " + at[last.col_offset :]
    ).decode()
    return "".join(lines)


def _has_check(source: str) -> bool:
    try:
        return _assigns(ast.parse(source), "check")
    except (SyntaxError, ValueError):
        return False


def _assigns(tree: ast.Module, name: str) -> bool:
    return any(
        (isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store))
        or (isinstance(node, ast.FunctionDef) and node.name == name)
        for statement in tree.body
        for node in ast.walk(statement)
    )


def line_of(error: BaseException, where: str) -> int:
    """The last line of the rule's text that an exception passed; 0 where none."""
    lines = [
        frame.lineno or 0
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == where
    ]
    return lines[-1] if lines else 0
