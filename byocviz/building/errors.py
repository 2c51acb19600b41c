"""What goes wrong between a partitioned module and a running one."""

from __future__ import annotations

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
    """A subgraph that a runtime did not build, or a module that does not compile around it."""


class EngineError(ByocvizError, RuntimeError):
    """An engine that failed while it ran, or inputs that do not fit it."""


class RuntimeMissing(ByocvizError, LookupError):
    """An unknown runtime, or one that cannot be used on this machine."""


def last_line(error: Exception) -> str:
    """What a native library's error says at its end, under the trace."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1][:500] if lines else type(error).__name__
