"""The interface of a runtime, and what runtimes share."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from byocviz.building.errors import EngineError, RuntimeMissing

if TYPE_CHECKING:
    from byocviz.building.lower.lowered import Lowered, Port

Tell = Callable[[str], None]
"""Progress: what is done now."""


class Engine(Protocol):
    """A subgraph that was built, ready to run.

    Tensors are anything with memory: NumPy arrays, TVM's and PyTorch's tensors.
    """

    inputs: list[Port]
    outputs: list[Port]

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """The outputs in order, as NumPy arrays or on the runtime's own device.

        Raises `EngineError` where inputs do not fit or the engine fails.
        """

    def run_into(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Run, and leave the results in the memory of ``outputs``."""

    def describe(self) -> dict[str, str]:
        """What there is to say of the engine: its runtime, devices, options; for people."""


class Runtime(Protocol):
    """What executes subgraphs."""

    name: str
    title: str
    """As people write it."""
    options: Mapping[str, Any]
    """The options that `build` takes, with their defaults."""

    def supports(self, running: bool = True) -> str | None:
        """Why it cannot be used on this machine, with the mend; None: it can.

        ``running`` False asks only whether it can build engines here.
        """

    def build(
        self, lowered: Lowered, options: Mapping[str, Any] | None = None, tell: Tell | None = None
    ) -> Engine:
        """An engine of a lowered subgraph.

        Raises `RuntimeMissing` where `supports` says why, `BuildError` where the runtime refuses
        the subgraph, and `ByocvizError` for an unknown option.
        """


def chosen(runtime: Runtime, options: Mapping[str, Any] | None) -> dict[str, Any]:
    """The runtime's options with those that are given; refuses unknown names."""
    for name in options or {}:
        if name not in runtime.options:
            near = difflib.get_close_matches(name, list(runtime.options), n=1)
            raise RuntimeMissing(
                f"{runtime.title} has no option {name!r}.",
                (f"Did you mean {near[0]!r}? " if near else "")
                + f"Its options: {', '.join(runtime.options)}.",
            )
    return {**runtime.options, **(options or {})}


def usable(runtime: Runtime) -> None:
    """Refuse a runtime that cannot build here."""
    reason = runtime.supports(running=False)
    if reason is not None:
        raise RuntimeMissing(f"{runtime.title} cannot be used here.", reason)


def fits(name: str, what: str, ports: Sequence[Port], tensors: Sequence[Any]) -> None:
    """Refuse tensors whose number, shape or element type is not that of the ports."""
    if len(tensors) != len(ports):
        raise EngineError(
            f"The engine of {name} has {len(ports)} {what}s, and {len(tensors)} are given.",
            f"They are: {', '.join(f'{p.name} {p.dtype}{list(p.shape)}' for p in ports)}.",
        )
    for port, tensor in zip(ports, tensors, strict=True):
        shape, dtype = tuple(int(d) for d in tensor.shape), dtype_name(tensor)
        if shape != port.shape or dtype != port.dtype:
            raise EngineError(
                f"The {what} {port.name!r} of {name} is {port.dtype}{list(port.shape)}, and "
                f"{dtype}{list(shape)} is given.",
                "Engines are built for one shape and type; give tensors of it, or build anew.",
            )


def dtype_name(tensor: Any) -> str:
    """The element type of a tensor of any library, by NumPy's name."""
    return str(tensor.dtype).removeprefix("torch.")


def address(tensor: Any) -> int:
    """Where a tensor's elements lie, in bytes; for one whose elements lie in order."""
    if hasattr(tensor, "data_ptr"):
        return int(tensor.data_ptr())
    return int(tensor.ctypes.data)


def in_order(tensor: Any) -> bool:
    """Whether the elements lie one after the other in memory."""
    if hasattr(tensor, "is_contiguous"):
        return bool(tensor.is_contiguous())
    return bool(tensor.flags.c_contiguous)


def device(tensor: Any) -> str:
    """``cpu``, ``cuda``, ... NumPy arrays are on the CPU."""
    found = getattr(tensor, "device", "cpu")
    return str(getattr(found, "type", found)).partition(":")[0]
