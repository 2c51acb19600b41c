"""ONNX Runtime on the CPU: runs what the converters write on any machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from byocviz.building.errors import BuildError, EngineError, last_line
from byocviz.building.runtimes.base import (
    Engine,
    Tell,
    address,
    chosen,
    device,
    fits,
    in_order,
    usable,
)

if TYPE_CHECKING:
    import numpy as np

    from byocviz.building.lower.lowered import Lowered

PROVIDER = "CPUExecutionProvider"


class OnnxRuntime:
    """ONNX Runtime. Options:

    ``threads``: how many work on one operator; 0 leaves it to ONNX Runtime. ``spinning``: whether
    they wait busily for the next call, which is fast and takes the processor from TVM's own
    threads meanwhile. ``optimize``: ONNX Runtime's own graph rewrites.
    """

    name = "onnxruntime"
    title = "ONNX Runtime"
    options: Mapping[str, Any] = {"threads": 0, "spinning": True, "optimize": True}

    def supports(self, running: bool = True) -> str | None:
        try:
            import onnxruntime  # noqa: F401
        except ImportError as error:
            return f"It is not installed ({error}): pip install onnxruntime"
        return None

    def build(
        self, lowered: Lowered, options: Mapping[str, Any] | None = None, tell: Tell | None = None
    ) -> Engine:
        usable(self)
        import onnxruntime as ort

        wanted = chosen(self, options)
        settings = ort.SessionOptions()
        settings.intra_op_num_threads = int(wanted["threads"])
        settings.log_severity_level = 4  # what fails is raised, and said once
        settings.add_session_config_entry(
            "session.intra_op.allow_spinning", "1" if wanted["spinning"] else "0"
        )
        if not wanted["optimize"]:
            settings.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        if tell is not None:
            tell(f"ONNX Runtime, {lowered.name}")
        try:
            session = ort.InferenceSession(lowered.serialized(), settings, providers=[PROVIDER])
        except Exception as error:
            raise _refused(lowered, error) from error
        return OnnxEngine(session, lowered, wanted, ort.__version__)


class OnnxEngine:
    """A session of ONNX Runtime. It may run in several threads at once."""

    def __init__(
        self, session: Any, lowered: Lowered, options: Mapping[str, Any], version: str
    ) -> None:
        from byocviz.building.lower.graph import onnx_type

        self.session = session
        self.name = lowered.name
        self.inputs, self.outputs = lowered.inputs, lowered.outputs
        self._options, self._version = options, version
        self._types = {p.name: onnx_type(p.dtype) for p in (*self.inputs, *self.outputs)}
        # Inputs that nothing reads are dropped by ONNX Runtime.
        self._read = {i.name for i in session.get_inputs()}

    def run(self, inputs: Sequence[Any]) -> list[np.ndarray]:
        import numpy as np

        from byocviz.building.lower.graph import numpy_dtype

        outputs = [np.empty(p.shape, numpy_dtype(p.dtype)) for p in self.outputs]
        self.run_into(inputs, outputs)
        return outputs

    def run_into(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """ONNX Runtime reads and writes the tensors' own memory: nothing is copied."""
        fits(self.name, "input", self.inputs, inputs)
        fits(self.name, "output", self.outputs, outputs)
        self._on_cpu((*inputs, *outputs))
        inputs = [t if in_order(t) else _packed(t) for t in inputs]
        binding = self.session.io_binding()
        for port, tensor in zip(self.inputs, inputs, strict=True):
            if port.name in self._read:
                binding.bind_input(
                    port.name, "cpu", 0, self._types[port.name], port.shape, address(tensor)
                )
        for port, tensor in zip(self.outputs, outputs, strict=True):
            if not in_order(tensor):
                raise EngineError(
                    f"The output {port.name!r} of {self.name} is a strided view.",
                    "Give a tensor whose elements lie one after the other.",
                )
            binding.bind_output(
                port.name, "cpu", 0, self._types[port.name], port.shape, address(tensor)
            )
        try:
            self.session.run_with_iobinding(binding)
        except Exception as error:
            raise EngineError(
                f"ONNX Runtime failed in the subgraph {self.name}: {last_line(error)}",
                "Check its inputs; save its ONNX (Lowered.model) for a report if they are right.",
            ) from error

    def _on_cpu(self, tensors: Sequence[Any]) -> None:
        for tensor in tensors:
            where = device(tensor)
            if where != "cpu":
                raise EngineError(
                    f"{self.name} runs on the CPU, and a tensor lies on {where}.",
                    "Build the module for the CPU, or take the runtime tensorrt.",
                )

    def describe(self) -> dict[str, str]:
        return {
            "runtime": f"ONNX Runtime {self._version}",
            "provider": ", ".join(self.session.get_providers()),
            "threads": str(self._options["threads"] or "all"),
        } | {k: str(v) for k, v in self._options.items() if k != "threads"}


def _packed(tensor: Any) -> Any:
    import numpy as np

    return np.ascontiguousarray(np.from_dlpack(tensor))


def _refused(lowered: Lowered, error: Exception) -> BuildError:
    """Names the Relax operator whose node ONNX Runtime speaks of, where it names one."""
    text = last_line(error)
    named = [n for n in lowered.nodes if n in text]
    node = max(named, key=len, default="")
    operator = ""
    if node:
        ids = ", ".join(str(i) for i in lowered.nodes[node])
        operator = f" at {lowered.calls[node]}" + (f" (operator {ids})" if ids else "")
    return BuildError(
        f"ONNX Runtime does not build the subgraph {lowered.name}{operator}: {text}",
        "Switch the operator's rule off so that it stays on TVM, or take another runtime.",
    )


def runtime() -> OnnxRuntime:
    return OnnxRuntime()
