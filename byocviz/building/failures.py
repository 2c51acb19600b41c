"""What an engine raises loses its type on its way through TVM: it is noted before, raised after."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

Call = Callable[..., None]


class Failures:
    """What the engines of one run raised. As a context it takes the place of what TVM raises."""

    def __init__(self) -> None:
        self._first: BaseException | None = None

    def noting(self, calls: Mapping[str, Call]) -> dict[str, Call]:
        """The same functions by symbol, heard by this."""
        return {symbol: self._noting(call) for symbol, call in calls.items()}

    def _noting(self, call: Call) -> Call:
        def noted(*arguments: Any) -> None:
            try:
                call(*arguments)
            except BaseException as error:  # an interrupt too
                self._first = self._first or error
                raise

        return noted

    def __enter__(self) -> None:
        self._first = None

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        if not isinstance(error, Exception):
            return
        if self._first is not None:
            raise self._first from None
        # An interrupt before the first line of `noted`: of it alone TVM has nothing to say.
        # (TVM 0.19 tells the error before it, whatever that was.)
        if type(error) is RuntimeError and not str(error):
            raise KeyboardInterrupt from None
