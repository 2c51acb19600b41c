"""What engines raise below TVM arrives as what it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from byocviz.building.errors import EngineError
from byocviz.building.failures import Failures

tvm = pytest.importorskip("tvm")
# TVM 0.19 calls through ctypes, to which an interrupt is unraisable.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


def through_tvm(call: Callable[..., None]) -> Callable[..., Any]:
    """The function as TVM calls it."""
    if hasattr(tvm, "relay"):
        called: Callable[..., Any] = tvm.runtime.convert(call)
        return called
    import tvm_ffi

    converted: Callable[..., Any] = tvm_ffi.convert(call)
    return converted


def raising(error: BaseException) -> Callable[..., None]:
    def call(*_: Any) -> None:
        raise error

    return call


@pytest.mark.parametrize("error", [EngineError("full", "less"), KeyboardInterrupt(), OSError(5)])
def test_the_first_that_an_engine_raised_is_raised(error: BaseException) -> None:
    failures = Failures()
    calls = failures.noting({"one": raising(error), "two": raising(ValueError("later"))})

    def run() -> None:
        with failures:
            try:
                through_tvm(calls["one"])()
            except Exception:
                through_tvm(calls["two"])()

    with pytest.raises(type(error)) as caught:
        run()
    assert caught.value is error


@pytest.mark.skipif(hasattr(tvm, "relay"), reason="TVM 0.19 tells the error before")
def test_an_interrupt_before_the_first_line_of_ours_is_one() -> None:
    with pytest.raises(KeyboardInterrupt), Failures():
        through_tvm(raising(KeyboardInterrupt()))()


def test_an_error_of_tvm_and_what_was_before_are_left_alone() -> None:
    failures = Failures()
    calls = failures.noting({"one": raising(OSError("disk"))})
    with pytest.raises(OSError, match="disk"), failures:
        through_tvm(calls["one"])()
    with pytest.raises(ValueError, match="of TVM"), failures:
        through_tvm(raising(ValueError("of TVM")))()
    with failures:
        pass
