"""What TensorRT and TensorRT-RTX share: parsing, building and running by one API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from byocviz.building.errors import BuildError, EngineError
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
from byocviz.building.runtimes.gpu import missing_gpu

if TYPE_CHECKING:
    from byocviz.building.lower.lowered import Lowered


class TrtRuntime:
    """Base of both. ``package`` is the Python module that holds the API."""

    name = ""
    title = ""
    package = ""
    install = ""
    options: Mapping[str, Any] = {}
    needs_gpu_to_build = True

    def supports(self, running: bool = True) -> str | None:
        try:
            import_module(self.package)
        except ImportError as error:
            return f"It is not installed ({error}): {self.install}"
        if running or self.needs_gpu_to_build:
            return missing_gpu()
        return None

    def build(
        self, lowered: Lowered, options: Mapping[str, Any] | None = None, tell: Tell | None = None
    ) -> Engine:
        usable(self)
        wanted = chosen(self, options)
        if tell is not None:
            tell(f"{self.title}, {lowered.name}")
        return TrtEngine(self, lowered, self.plan(lowered, wanted), wanted)

    def plan(self, lowered: Lowered, options: Mapping[str, Any]) -> bytes:
        """The serialised engine. Raises `BuildError` where the parser or builder refuses."""
        trt = import_module(self.package)
        log = logger(trt)
        builder = trt.Builder(log)
        network = builder.create_network(self._flags(trt, options))
        parser = trt.OnnxParser(network, log)
        if not parser.parse(lowered.serialized()):
            raise _unparsed(self.title, lowered, parser)
        config = builder.create_builder_config()
        self._configure(trt, config, options)
        plan = builder.build_serialized_network(network, config)
        if plan is None:
            raise BuildError(
                f"{self.title} builds no engine of the subgraph {lowered.name}: "
                f"{log.last() or 'it does not say why'}",
                "Switch off the rule of the operator that it names, so that it stays on TVM.",
            )
        return bytes(plan)

    def _flags(self, trt: Any, options: Mapping[str, Any]) -> int:
        return 0

    def _configure(self, trt: Any, config: Any, options: Mapping[str, Any]) -> None:
        if options.get("workspace"):
            config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, int(options["workspace"]))


def logger(trt: Any) -> Any:
    """A logger that keeps what is wrong for the error's text and prints nothing."""

    class Log(trt.ILogger):  # type: ignore[misc]
        def __init__(self) -> None:
            trt.ILogger.__init__(self)
            self.lines: list[str] = []

        def log(self, severity: Any, text: str) -> None:
            if severity <= trt.ILogger.Severity.ERROR:
                self.lines.append(text)

        def last(self) -> str:
            return self.lines[-1][:500] if self.lines else ""

    return Log()


def _unparsed(title: str, lowered: Lowered, parser: Any) -> BuildError:
    found = []
    for index in range(parser.num_errors):
        error = parser.get_error(index)
        node = error.node_name()
        operator = lowered.calls.get(node, "")
        ids = ", ".join(str(i) for i in lowered.nodes.get(node, ()))
        where = f"{operator} (operator {ids})" if ids else operator or node
        found.append(f"{where}: {error.desc()}" if where else error.desc())
    return BuildError(
        f"{title} does not take the subgraph {lowered.name}: {'; '.join(found)[:800]}",
        "Switch the operator's rule off, so that it stays on TVM.",
    )


class TrtEngine:
    """A serialised engine. It is loaded when it first runs, which needs a GPU."""

    def __init__(
        self, runtime: TrtRuntime, lowered: Lowered, plan: bytes, options: Mapping[str, Any]
    ) -> None:
        self.runtime, self.plan = runtime, plan
        self.name = lowered.name
        self.inputs, self.outputs = lowered.inputs, lowered.outputs
        self._options = options
        self._loaded: Any = None
        self._context: Any = None

    def load(self) -> None:
        """Hand the engine to the GPU. Raises `EngineError` where there is none, or it is not
        the one that the engine is for."""
        if self._context is not None:
            return
        reason = missing_gpu()
        if reason is not None:
            raise EngineError(
                f"The engine of {self.name} cannot run here. {reason}",
                "Run it where there is a GPU, or take the runtime onnxruntime.",
            )
        trt = import_module(self.runtime.package)
        log = logger(trt)
        self._loaded = trt.Runtime(log)
        self._engine = self._loaded.deserialize_cuda_engine(self.plan)
        if self._engine is None:
            raise EngineError(
                f"{self.runtime.title} does not load the engine of {self.name}: {log.last()}",
                "Engines are for one GPU and one version; build it anew here.",
            )
        self._context = self._engine.create_execution_context()

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """The outputs, as TVM's tensors on the inputs' device."""
        import tvm

        self.load()
        where = inputs[0].device if inputs else tvm.cuda(0)
        outputs = [tvm.runtime.empty(p.shape, p.dtype, where) for p in self.outputs]
        self.run_into(inputs, outputs)
        return outputs

    def run_into(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """The engine reads and writes the tensors' own memory, on TVM's stream; it is not waited
        for."""
        fits(self.name, "input", self.inputs, inputs)
        fits(self.name, "output", self.outputs, outputs)
        ports = [*self.inputs, *self.outputs]
        for port, tensor in zip(ports, (*inputs, *outputs), strict=True):
            if device(tensor) != "cuda" or not in_order(tensor):
                raise EngineError(
                    f"{port.name!r} of {self.name} is no packed tensor on the GPU "
                    f"({device(tensor)}).",
                    "Build the module for the target 'cuda' and give tensors on it.",
                )
        self.load()
        for port, tensor in zip(ports, (*inputs, *outputs), strict=True):
            self._context.set_tensor_address(port.name, address(tensor))
        if not self._context.execute_async_v3(_stream((*inputs, *outputs)[0])):
            raise EngineError(
                f"{self.runtime.title} failed in the subgraph {self.name}.",
                "Check its inputs; save its ONNX (Lowered.model) for a report if they are right.",
            )

    def describe(self) -> dict[str, str]:
        trt = import_module(self.runtime.package)
        return {
            "runtime": f"{self.runtime.title} {trt.__version__}",
            "bytes": str(len(self.plan)),
            **{k: str(v) for k, v in self._options.items()},
        }


def _stream(tensor: Any) -> int:
    """The CUDA stream that TVM works on."""
    import tvm_ffi

    index = getattr(tensor.device, "index", 0) or 0
    return int(tvm_ffi.get_raw_stream(tvm_ffi.device("cuda", index)))
