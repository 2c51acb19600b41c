"""What a `Build` asks of a module that was built, whichever of TVM's languages it is in.

`byocviz.building.module.Runnable` is of Relax, `byocviz.building.relay.module.RelayRunnable` of
Relay.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np

    from byocviz.building.engines import BuiltEngine
    from byocviz.building.latency import Stopwatch
    from byocviz.building.lower.lowered import Lowered
    from byocviz.building.runtimes import Engine
    from byocviz.building.variants import Alone
    from byocviz.recording.results import ModuleNode

Reference = Callable[[Sequence["np.ndarray"]], "list[np.ndarray]"]
"""A subgraph by TVM alone: the tensors that its engine is given, to its results."""


class BuiltModule(Protocol):
    """A module that was built. All mappings are by the subgraph's symbol."""

    entry: str
    executable: Any
    target: Any
    device: Any
    lowered: dict[str, Lowered]
    built: dict[str, BuiltEngine]
    lower_seconds: float
    tvm_seconds: float
    library: Path | None
    stopwatch: Stopwatch

    @property
    def engines(self) -> dict[str, Engine]: ...

    @property
    def names(self) -> list[str]:
        """Of the entry's parameters, in order."""

    def signature(self) -> str:
        """The parameters as people write them: ``image float32[1, 3, 300, 300]``."""

    def checked(self, inputs: Any) -> list[Any]:
        """The inputs in the order of the parameters, as arrays (or tuples of them).

        Raises `ModuleError` where one is missing, unknown, or of another shape or dtype.
        """

    def seeded(self, seed: int) -> dict[str, Any]:
        """Inputs by name."""

    def place(self, inputs: Any) -> list[Any]:
        """The checked inputs on the device, as TVM's executor takes them."""

    def call(self, placed: Sequence[Any], vm: Any = None) -> Any:
        """One run, waited for; ``vm`` is of `with_engines`. Raises `EngineError`."""

    def arrays(self, result: Any) -> list[np.ndarray]:
        """A result's tensors in order, nested tuples taken apart."""

    def with_engines(self, engines: Mapping[str, Any]) -> Any:
        """For `call`: the same code, in which these stand for the engines."""

    def alone(self, module: Any) -> Alone:
        """``module``, which holds no subgraphs, compiled by TVM alone for the same target."""

    def lower_whole(self, module: Any) -> tuple[Lowered, list[str]]:
        """The whole entry of ``module`` as one ONNX model, and its parameters' names."""

    def same(self, one: Any, other: Any) -> bool:
        """Whether two modules are equal but for names."""

    def imported(self, module: Any, params: Any) -> Any:
        """The module of the import step with the weights that were given to `record` bound."""

    def reference(self, imported: Any, inputs: Mapping[str, Any]) -> list[np.ndarray]:
        """The imported module's results by TVM alone on the CPU."""

    def references(self, module: Any) -> dict[str, Reference]:
        """Each subgraph of the partitioned ``module`` by TVM alone on the CPU."""

    def tree(self, engines: Mapping[str, str]) -> list[ModuleNode]:
        """TVM's runtime modules; ``engines`` are the runtimes' titles."""
