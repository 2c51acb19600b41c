"""The interface of a runtime, and what runtimes share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from byocviz.building.errors import EngineError, RuntimeMissing
from byocviz.building.runtimes.options import Takes, chosen

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

    def serialized(self) -> bytes | None:
        """The engine as bytes, which its runtime's `load` takes; None where there is no such
        thing."""

    def layers(self) -> str:
        """The engine's own layers as text; "" where it has none or they cannot be read."""

    def describe(self) -> dict[str, str]:
        """What there is to say of the engine: its runtime, devices, options; for people."""


class Subgraph(Protocol):
    """What a native library builds from: a `Lowered`, or what stands for one in the process that
    builds, where there is no TVM."""

    @property
    def name(self) -> str: ...

    @property
    def nodes(self) -> Mapping[str, Sequence[int]]:
        """Ids of the operators that an ONNX node stands for."""

    @property
    def calls(self) -> Mapping[str, str]:
        """The Relax operator by the ONNX node's name."""

    def serialized(self) -> bytes:
        """The ONNX model."""


@dataclass
class Notes:
    """What one build hands on to the next: TensorRT's timing cache."""

    timing: bytes = b""


class Runtime(Protocol):
    """What executes subgraphs.

    Building is in two parts. `plan` is what native libraries do and may crash or hang in: it can
    run in another process, where an instance is made without arguments from the class, by the
    name of its module. `load` makes the engine of the plan.
    """

    name: str
    title: str
    """As people write it."""
    options: Mapping[str, Any]
    """The options that `build` takes, with their defaults."""
    takes: Mapping[str, Takes]
    """What each of them takes; one that is not here is checked by the runtime itself."""
    serializes: bool
    """Whether `plan` gives the engine as bytes. If not, it only shows that the library takes the
    subgraph, and `load` makes the engine of the subgraph itself."""

    def supports(self, running: bool = True) -> str | None:
        """Why it cannot be used on this machine, with the mend; None: it can.

        ``running`` False asks only whether it can build engines here.
        """

    def refuse(self, lowered: Lowered) -> None:
        """Raises `BuildError` for what can be said before the build: a type at the boundary."""

    def plan(self, subgraph: Subgraph, options: Mapping[str, Any], notes: Notes) -> bytes | None:
        """The serialised engine; None from a runtime that has no such thing.

        ``options`` are complete. Raises `BuildError` where the runtime refuses the subgraph.
        """

    def load(self, lowered: Lowered, plan: bytes | None, options: Mapping[str, Any]) -> Engine:
        """The engine of a plan; of the subgraph itself where there is none."""

    def target(self) -> Any:
        """What TVM best compiles the rest of a module for, so that tensors lie where engines
        take them; None: the CPU. Imports TVM."""

    def fingerprint(self, options: Mapping[str, Any]) -> dict[str, str]:
        """What a plan depends on beside the subgraph and options: versions, the GPU."""

    def build(
        self, lowered: Lowered, options: Mapping[str, Any] | None = None, tell: Tell | None = None
    ) -> Engine:
        """An engine of a lowered subgraph, built in this process.

        Raises `RuntimeMissing` where `supports` says why, `BuildError` where the runtime refuses
        the subgraph, and what `chosen` raises for options.
        """


class Base:
    """What runtimes share."""

    name = ""
    title = ""
    options: Mapping[str, Any] = {}
    takes: Mapping[str, Takes] = {}
    serializes = False

    def supports(self, running: bool = True) -> str | None:
        return None

    def refuse(self, lowered: Lowered) -> None:
        return None

    def plan(self, subgraph: Subgraph, options: Mapping[str, Any], notes: Notes) -> bytes | None:
        raise NotImplementedError

    def load(self, lowered: Lowered, plan: bytes | None, options: Mapping[str, Any]) -> Engine:
        raise NotImplementedError

    def target(self) -> Any:
        return None

    def fingerprint(self, options: Mapping[str, Any]) -> dict[str, str]:
        return {}

    def build(
        self, lowered: Lowered, options: Mapping[str, Any] | None = None, tell: Tell | None = None
    ) -> Engine:
        usable(self)
        wanted = chosen(self, options)
        self.refuse(lowered)
        if tell is not None:
            tell(f"{self.title}, {lowered.name}")
        plan = self.plan(lowered, wanted, Notes()) if self.serializes else None
        return self.load(lowered, plan, wanted)


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


def device_index(tensor: Any) -> int:
    """The number of the GPU that a tensor lies on, as CUDA counts them."""
    return int(getattr(getattr(tensor, "device", None), "index", 0) or 0)


def stream(index: int) -> int:
    """The CUDA stream that TVM works on, on that GPU."""
    import tvm_ffi

    return int(tvm_ffi.get_raw_stream(tvm_ffi.device("cuda", index)))


def packed(tensor: Any) -> Any:
    """A tensor in the host's memory with its elements in order; copied where they are not."""
    import numpy as np

    return tensor if in_order(tensor) else np.ascontiguousarray(np.from_dlpack(tensor))


def must_be_in_order(name: str, what: str, port: Port, tensor: Any) -> None:
    """Refuse a strided view where nothing can be copied."""
    if not in_order(tensor):
        raise EngineError(
            f"The {what} {port.name!r} of {name} is a strided view.",
            "Give a tensor whose elements lie one after the other.",
        )


def failed(title: str, name: str, why: str = "") -> EngineError:
    """An engine that failed while it ran."""
    return EngineError(
        f"{title} failed in the subgraph {name}{': ' if why else '.'}{why}",
        "Check its inputs; save its ONNX (Lowered.model) for a report if they are right.",
    )


def at_operator(subgraph: Subgraph, said: str) -> str:
    """`` at`` the operator that a library speaks of; "" where it names none."""
    operator = named(subgraph, blamed(subgraph, said))
    return f" at {operator}" if operator else ""


def blamed(subgraph: Subgraph, text: str) -> str:
    """The ONNX node whose name stands in what a library says; "" where none does."""
    return max((n for n in {*subgraph.nodes, *subgraph.calls} if n in text), key=len, default="")


def named(subgraph: Subgraph, node: str) -> str:
    """The Relax operator of an ONNX node, with its ids where they are known; "" for neither."""
    operator = subgraph.calls.get(node, "")
    ids = ", ".join(str(i) for i in subgraph.nodes.get(node, ()))
    return f"{operator} (operator {ids})" if ids else operator
