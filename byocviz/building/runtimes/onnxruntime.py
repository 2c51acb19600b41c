"""ONNX Runtime: on the CPU it runs what the converters write on any machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from byocviz.building.errors import BuildError, EngineError, RuntimeMissing
from byocviz.building.runtimes.base import (
    Base,
    Engine,
    Notes,
    Subgraph,
    address,
    at_operator,
    device,
    device_index,
    failed,
    fits,
    must_be_in_order,
    packed,
)
from byocviz.building.runtimes.options import Takes, among, switch, whole
from byocviz.errors import last_line

if TYPE_CHECKING:
    import numpy as np

    from byocviz.building.lower.lowered import Lowered

PROVIDERS = {
    "cpu": "CPUExecutionProvider",
    "cuda": "CUDAExecutionProvider",
    "tensorrt": "TensorrtExecutionProvider",
}
"""ONNX Runtime's names for what executes its graphs."""

MOST_THREADS = 1024
"""It starts as many as it is told to."""


class OnnxRuntime(Base):
    """ONNX Runtime. Options:

    ``threads``: how many work on one operator; 0 leaves it to ONNX Runtime. ``spinning``: whether
    they wait busily for the next call, which is fast and takes the processor from TVM's own
    threads meanwhile. ``optimize``: ONNX Runtime's own graph rewrites. ``providers``: ``"cpu"``,
    ``"cuda"`` or ``"tensorrt"``, or several: each takes what those before it left, the CPU the
    rest. The last two are in the package onnxruntime-gpu.
    """

    name = "onnxruntime"
    title = "ONNX Runtime"
    options: Mapping[str, Any] = {
        "threads": 0,
        "spinning": True,
        "optimize": True,
        "providers": ("cpu",),
    }
    takes: Mapping[str, Takes] = {
        "threads": whole(0, MOST_THREADS),
        "spinning": switch(),
        "optimize": switch(),
        "providers": among(PROVIDERS),
    }

    def supports(self, running: bool = True) -> str | None:
        try:
            import onnxruntime  # noqa: F401
        except ImportError as error:
            return f"It is not installed ({error}): pip install onnxruntime"
        return None

    def plan(self, subgraph: Subgraph, options: Mapping[str, Any], notes: Notes) -> None:
        """Makes the session and lets it go: `load` makes the one that runs."""
        _session(subgraph, options)

    def load(self, lowered: Lowered, plan: bytes | None, options: Mapping[str, Any]) -> Engine:
        return OnnxEngine(_session(lowered, options), lowered, options)

    def fingerprint(self, options: Mapping[str, Any]) -> dict[str, str]:
        import onnxruntime

        return {"onnxruntime": str(onnxruntime.__version__)}


def _session(subgraph: Subgraph, options: Mapping[str, Any]) -> Any:
    import onnxruntime as ort

    asked = _providers(ort.get_available_providers(), options["providers"])
    settings = ort.SessionOptions()
    settings.intra_op_num_threads = int(options["threads"])
    settings.log_severity_level = 4  # what fails is raised, and said once
    settings.add_session_config_entry(
        "session.intra_op.allow_spinning", "1" if options["spinning"] else "0"
    )
    if not options["optimize"]:
        settings.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = ort.InferenceSession(subgraph.serialized(), settings, providers=asked)
    except Exception as error:
        raise _refused(subgraph, error) from error
    # A provider whose libraries do not load is left out without an error.
    lost = [name for name in asked if name not in session.get_providers()]
    if lost:
        raise RuntimeMissing(
            f"ONNX Runtime has the {lost[0]} and cannot start it here.",
            "It needs an NVIDIA driver and the CUDA and cuDNN that this onnxruntime-gpu was built "
            "for (pip install 'onnxruntime-gpu[cuda,cudnn]').",
        )
    return session


def _providers(available: Sequence[str], wanted: Any) -> list[str]:
    """ONNX Runtime's names in order, the CPU last."""
    given = [wanted] if isinstance(wanted, str) else list(wanted)
    for name in given:
        if name not in PROVIDERS:
            raise RuntimeMissing(
                f"ONNX Runtime has no provider {name!r} here.", f"Known: {', '.join(PROVIDERS)}."
            )
        if PROVIDERS[name] not in available:
            raise RuntimeMissing(
                f"The ONNX Runtime that is installed has no provider {name!r} "
                f"(it has: {', '.join(available)}).",
                "pip uninstall onnxruntime; pip install onnxruntime-gpu",
            )
    found = [PROVIDERS[name] for name in dict.fromkeys(given) if name != "cpu"]
    return [*found, PROVIDERS["cpu"]]


class OnnxEngine:
    """A session of ONNX Runtime. It may run in several threads at once."""

    def __init__(self, session: Any, lowered: Lowered, options: Mapping[str, Any]) -> None:
        from byocviz.building.lower.graph import onnx_type

        self.session = session
        self.name = lowered.name
        self.inputs, self.outputs = lowered.inputs, lowered.outputs
        self._options = options
        self._types = {p.name: onnx_type(p.dtype) for p in (*self.inputs, *self.outputs)}
        # Inputs that nothing reads are dropped by ONNX Runtime.
        self._read = {i.name for i in session.get_inputs()}
        self._providers: list[str] = session.get_providers()
        self.on_gpu = self._providers[0] != PROVIDERS["cpu"]
        self._through_host: bool | None = None

    def run(self, inputs: Sequence[Any]) -> list[np.ndarray]:
        import numpy as np

        from byocviz.building.lower.graph import numpy_dtype

        outputs = [np.empty(p.shape, numpy_dtype(p.dtype)) for p in self.outputs]
        self.run_into(inputs, outputs)
        return outputs

    def run_into(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """ONNX Runtime reads and writes the tensors' own memory.

        A provider on the GPU takes tensors on it as they are; it copies those of the host.
        """
        fits(self.name, "input", self.inputs, inputs)
        fits(self.name, "output", self.outputs, outputs)
        self._reachable((*inputs, *outputs))
        inputs = [packed(t) if device(t) == "cpu" else t for t in inputs]
        binding = self.session.io_binding()
        for port, tensor in zip(self.inputs, inputs, strict=True):
            must_be_in_order(self.name, "input", port, tensor)
            if port.name in self._read:
                binding.bind_input(*self._place(port, tensor))
        for port, tensor in zip(self.outputs, outputs, strict=True):
            must_be_in_order(self.name, "output", port, tensor)
            binding.bind_output(*self._place(port, tensor))
        gpus = {device_index(t) for t in (*inputs, *outputs) if device(t) == "cuda"}
        for index in gpus:
            _wait(index)  # ONNX Runtime works on a stream of its own
        try:
            self.session.run_with_iobinding(binding)
            if self.on_gpu:
                binding.synchronize_outputs()
        except Exception as error:
            raise failed("ONNX Runtime", self.name, last_line(error)) from error

    def _place(self, port: Any, tensor: Any) -> tuple[Any, ...]:
        where = device(tensor)
        index = device_index(tensor) if where == "cuda" else 0
        return port.name, where, index, self._types[port.name], port.shape, address(tensor)

    def _reachable(self, tensors: Sequence[Any]) -> None:
        places = {device(tensor) for tensor in tensors}
        strange = places - ({"cpu", "cuda"} if self.on_gpu else {"cpu"})
        if strange:
            raise EngineError(
                f"{self.name} runs on the {'GPU' if self.on_gpu else 'CPU'}, and a tensor lies "
                f"on {sorted(strange)[0]}.",
                "Build the module for the CPU, or take the runtime tensorrt or the provider cuda.",
            )
        self._through_host = self.on_gpu and "cpu" in places

    def serialized(self) -> None:
        return None

    def layers(self) -> str:
        return ""

    def describe(self) -> dict[str, str]:
        import onnxruntime

        facts = {
            "runtime": f"ONNX Runtime {onnxruntime.__version__}",
            "provider": ", ".join(self._providers),
            "threads": str(self._options["threads"] or "all"),
        }
        facts |= {k: str(v) for k, v in self._options.items() if k not in ("threads", "providers")}
        if self._through_host is not None:
            facts["copies through the host"] = "yes" if self._through_host else "no"
        return facts


def _wait(index: int) -> None:
    """Until TVM is done with what it put on that GPU."""
    import tvm

    tvm.cuda(index).sync()


def _refused(subgraph: Subgraph, error: Exception) -> BuildError:
    """Names the Relax operator whose node ONNX Runtime speaks of, where it names one."""
    text = last_line(error)
    return BuildError(
        f"ONNX Runtime does not build the subgraph {subgraph.name}"
        f"{at_operator(subgraph, text)}: {text}",
        "Switch the operator's rule off so that it stays on TVM, or take another runtime.",
        subgraph=subgraph.name,
    )


def runtime() -> OnnxRuntime:
    return OnnxRuntime()
