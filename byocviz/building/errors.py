"""What goes wrong between a partitioned module and a running one, and the request to stop."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from byocviz.errors import ByocvizError


class LoweringError(ByocvizError, ValueError):
    """A call that cannot be written as ONNX with the same meaning.

    ``operator`` is the operator's name, ``identity`` its id (-1: the module was not recorded),
    ``variable`` the name that its result is bound to; ``attribute`` and ``value`` are what stands
    in the way.
    """

    def __init__(
        self,
        operator: str,
        identity: int,
        variable: str,
        attribute: str,
        value: Any,
        why: str,
        mend: str = "",
    ) -> None:
        self.operator = operator
        self.identity = identity
        self.variable = variable
        self.attribute = attribute
        self.value = value
        self.why = why
        place = f" (operator {identity})" if identity >= 0 else ""
        bound = f" in {variable!r}" if variable else ""
        what = f": {attribute} = {value}" if attribute else ""
        super().__init__(
            f"{operator}{bound}{place} cannot be lowered to ONNX{what}. {why}".rstrip(),
            mend or "Switch the rule off for it, so that it stays on TVM.",
        )


class BuildError(ByocvizError, RuntimeError):
    """A subgraph that a runtime did not build, or a module that does not compile around it.

    ``subgraph`` is its symbol, "" where it is not about one. ``onnx_path`` is where the subgraph's
    ONNX was saved for a bug report, where a native library crashed, hung or ran out of memory.
    """

    def __init__(
        self, message: str, mend: str = "", *, subgraph: str = "", onnx_path: Path | None = None
    ) -> None:
        self.subgraph = subgraph
        self.onnx_path = onnx_path
        super().__init__(message, mend)


class BuildCancelled(ByocvizError, RuntimeError):
    """A build that was stopped on request; nothing of it is left."""


class Cancel:
    """A request to stop, which may come from any thread, at any time, more than once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cancelled = False
        self._actions: list[Callable[[], None]] = []

    @property
    def cancelled(self) -> bool:
        return self._cancelled

    def cancel(self) -> None:
        """Stop what runs under this request, at once."""
        with self._lock:
            self._cancelled = True
            actions, self._actions = self._actions, []
        for action in actions:
            action()

    def check(self) -> None:
        """Raises `BuildCancelled` where there was a request."""
        if self._cancelled:
            raise BuildCancelled("The build was cancelled.", "Build again to have its engines.")

    def on_cancel(self, action: Callable[[], None]) -> None:
        """Have ``action`` called on a request; at once, where there was one."""
        with self._lock:
            if not self._cancelled:
                self._actions.append(action)
                return
        action()

    def forget(self, action: Callable[[], None]) -> None:
        """No longer call ``action``."""
        with self._lock, contextlib.suppress(ValueError):
            self._actions.remove(action)


class CacheWarning(UserWarning):
    """The engine cache could not be used; engines are built all the same."""


class EngineError(ByocvizError, RuntimeError):
    """An engine that failed while it ran, or inputs that do not fit it."""


class RuntimeMissing(ByocvizError, LookupError):
    """An unknown runtime, or one that cannot be used on this machine."""
