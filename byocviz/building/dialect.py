"""Relax and Relay, for building."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from byocviz.errors import missing

if TYPE_CHECKING:
    from byocviz.building.engines import BuiltEngine
    from byocviz.building.lower import Lowered
    from byocviz.building.runnable import BuiltModule


class Dialect(Protocol):
    """What is of one of TVM's languages alone, in building and in a build that is kept: a module
    of functions."""

    def build(self, *args: Any, **how: Any) -> BuiltModule:
        """Build a partitioned module; `byocviz.building.module.build_module` has the arguments."""

    def target_of(self, target: Any) -> Any:
        """A target, or what TVM makes one of. Raises `BuildError`."""

    def to_json(self, function: Any) -> str:
        """The entry's parameters, as TVM writes a module."""

    def from_json(self, data: bytes, entry: str) -> Any:
        """What that says. Raises `BuildError`."""

    def restored(
        self,
        entry: str,
        signature: Any,
        module: Any,
        target: Any,
        lowered: dict[str, Lowered],
        built: dict[str, BuiltEngine],
        library: Path,
    ) -> tuple[BuiltModule, bool]:
        """The parts put together, and whether the library takes what the signature (of
        `from_json`) says. Raises whatever TVM does where they do not fit each other."""


def dialect(ir: str, why: str) -> Dialect:
    """By the name that a recording has. ``why`` it is needed is said by the `MissingPackage` that
    is raised where this TVM lacks it."""
    if ir == "relay":
        try:
            from tvm import relay  # noqa: F401
        except ImportError as error:
            raise missing("TVM with Relay", "relay", why) from error
        from byocviz.building.relay import restore as of_relay

        return of_relay
    try:
        # A TVM with Relay may have a Relax, too, which is an older one.
        from byocviz.building import restore as of_relax
    except ImportError as error:
        raise missing("TVM with Relax (apache-tvm)", "relax", why) from error
    return of_relax
