"""What the explorer asks of each of TVM's two graph languages, so that it knows neither.

`of` a module gives its `Dialect`, `named` that of a recording's ``ir``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from byocviz.backends import Backend
    from byocviz.explorer.settings import Resolved, Settings
    from byocviz.recording import Recording
    from byocviz.recording.schema import Subgraph


@dataclass(frozen=True)
class Matched:
    """What a rule matched by itself: ids of operators, one tuple a match."""

    matches: list[list[int]]
    refused: list[list[int]]


def answered(said: Any) -> bool:
    """What a rule's own check said. Raises TypeError for what is no answer."""
    if not isinstance(said, (bool, int)):
        raise TypeError(f"check returned {type(said).__name__}, not a bool")
    return bool(said)


class Dialect(Protocol):
    """One graph language."""

    ir: str
    header: str
    """What stands before a rule's text where it is pasted."""
    begin: str
    """A rule's text to begin with."""

    def check(self, module: Any, entry: str) -> None:
        """Raises `ModuleError` for what cannot be walked."""

    def rewrites(self) -> Mapping[str, str]:
        """The rewrites of the prepare step: what each does, by name, in order."""

    def switched(self, settings: Settings, params: Any) -> dict[str, bool]:
        """Every rewrite of the prepare step by name, on or off."""

    def backend(self, given: str | Backend) -> Backend:
        """Raises `BackendError` where there is none."""

    def lowerable(self, backend: Backend) -> Backend:
        """The backend whose rules take only what lowers to ONNX."""

    def backends(self) -> list[str]:
        """The names for which there is one."""

    def rules(self, backend: Backend, switches: Mapping[str, bool] | None) -> list[Any]:
        """Rules with ``name`` and ``enabled``, in order. Raises `BackendError`."""

    def pattern(self) -> type:
        """The class of a rule's pattern."""

    def walk(self, given: Any, settings: Settings, resolved: Resolved, tell: Any) -> Any:
        """A walk that has not begun: ``data``, ``next_step``, ``advance``, ``modules``."""

    def adopt(self, walk: Any, given: Any, settings: Settings, resolved: Resolved) -> None:
        """Give a walk the settings as they are now."""

    def describe(self, recording: Recording, title: str, resolved: Resolved) -> None:
        """Say what the recording was made of, and when."""

    def blockers(self, walk: Any) -> list[Any]:
        """What one more rule would change."""

    def prunable(self, module: Any, subgraphs: list[Subgraph], backend: str) -> frozenset[str]:
        """The external functions that can be put back."""

    def try_rule(self, module: Any, backend: str, entry: tuple[Any, ...]) -> Matched:
        """Match one rule alone on a tagged module; entry is (name, pattern[, ..., check])."""

    def native(self, backend: str) -> bool:
        """Whether this TVM was built with the backend's own codegen."""


def named(ir: str) -> Dialect:
    """The dialect of that name, ``relax`` or ``relay``."""
    if ir == "relay":
        from byocviz.explorer.dialects.relay import RELAY

        return RELAY
    from byocviz.explorer.dialects.relax import RELAX

    return RELAX


def of(module: Any) -> Dialect:
    """The dialect that a module is written in."""
    from byocviz.flow.arguments import is_relay

    return named("relay" if is_relay(module) else "relax")
