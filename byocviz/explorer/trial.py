"""Tries a rule in a process of its own: an endless loop or a crash ends there."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from byocviz.building.isolate import Child, Lost
from byocviz.errors import ByocvizError, in_short
from byocviz.explorer.apart import CHILD, Asked, Stopped, last_words, raise_again
from byocviz.recording.printable import printable

if TYPE_CHECKING:
    from byocviz.explorer.dialects import Dialect

_MOST_MATCHES = 20_000
_READING = 300.0
"""Seconds for a new child to import TVM and read the module: that is no fault of the rule's."""


class Trial(msgspec.Struct, frozen=True):
    """What a rule matched by itself, each match as ids of operators, or what went wrong."""

    matches: tuple[tuple[int, ...], ...] = ()
    refused: tuple[tuple[int, ...], ...] = ()
    """Matches that its own check refused."""
    error: str = ""
    mend: str = ""
    line: int = 0
    """The line of the text that failed, from 1; 0 where it is not known."""
    seconds: float = 0.0

    @property
    def operators(self) -> list[int]:
        """Ids of all operators in matches, each once, in order."""
        return sorted({i for match in self.matches for i in match})


class Trier:
    """Tries rules on a module, in one child for all; a new one where it was lost."""

    def __init__(self, ir: str, cancelled: Callable[[], bool]) -> None:
        self._ir = ir
        self._child = Child(Asked(cancelled), CHILD)
        self._read: Any = None

    def loaded(self, key: Any) -> bool:
        """Whether the module of that key is there."""
        return self._child.alive and self._read == key

    def try_rule(
        self, key: Any, path: Path | None, source: str, backend: str, time_limit: float
    ) -> Trial:
        """What `Session.try_rule` says; ``path`` holds the tagged module where it is not loaded."""
        try:
            if path is not None:
                if not self._child.alive:
                    self._child.close()
                load = {"do": "load", "ir": self._ir, "path": str(path)}
                raise_again(self._child.ask(load, _READING))
                self._read = key
            start = time.monotonic()
            job = {"do": "rule", "source": source, "backend": backend}
            raise_again(self._child.ask(job, time_limit))
            data = (self._child.folder / "found.json").read_bytes()
        except Stopped:
            return Trial(error="The trial was cancelled.", mend="Try again.")
        except Lost as lost:
            tail = last_words(lost.printed)
            return Trial(
                error=f"The rule: the process that it ran in {lost}."
                + f" It said: {tail}." * bool(tail),
                mend="Look for a loop that does not end, in a rule's text or in its check."
                if "limit" in str(lost)
                else "Look for what ends or crashes the interpreter, in a rule's text or in its "
                "check.",
            )
        except ByocvizError as error:
            return Trial(error=error.message, mend=error.mend)
        found = msgspec.json.decode(data, type=Trial)
        return msgspec.structs.replace(found, seconds=time.monotonic() - start)

    def close(self) -> None:
        """End the child."""
        self._child.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # the interpreter may be ending
            self._child.close()


def match(dialect: Dialect, module: Any, backend: str, source: str) -> Trial:
    """Match a rule's text by itself on a tagged module. For the child."""
    from byocviz.explorer.rulebox import RuleError, compile_rule, line_of

    name = f"{backend}.tried"
    try:
        found = dialect.try_rule(module, backend, compile_rule(source, name, dialect))
    except RuleError as error:
        return Trial(error=error.message, mend=error.mend, line=error.line)
    except ByocvizError as error:
        return Trial(error=error.message, mend=error.mend)
    except (Exception, SystemExit) as error:
        return Trial(
            error=printable(in_short(error)),
            mend="TVM, the text, or the rule's own check, raised it.",
            line=line_of(error, f"<rule {name}>"),
        )
    return Trial(
        tuple(tuple(one) for one in found.matches[:_MOST_MATCHES]),
        tuple(tuple(one) for one in found.refused[:_MOST_MATCHES]),
    )
