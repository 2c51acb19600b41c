"""An engine of TensorRT or TensorRT-RTX, on tensors of the GPU or of the host."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from byocviz.building.errors import EngineError
from byocviz.building.runtimes.base import (
    address,
    device,
    device_index,
    failed,
    fits,
    must_be_in_order,
    packed,
    stream,
)
from byocviz.building.runtimes.gpu import Device, Memory, gpu, missing_gpu
from byocviz.building.runtimes.gpu import device as gpu_device
from byocviz.building.runtimes.trt import listening
from byocviz.errors import last_line

if TYPE_CHECKING:
    from byocviz.building.lower.lowered import Lowered, Port
    from byocviz.building.runtimes.trt import TrtRuntime

_ALIGNMENT = 256
"""Bytes that an engine's tensors must be aligned to, which what cuMemAlloc gives is."""


class TrtEngine:
    """A serialised engine. It is loaded when it first runs, which needs a GPU.

    Tensors on the GPU are read and written where they lie, on TVM's stream, and are not waited
    for. Those in the host's memory go through memory on the GPU that is kept between runs, and
    the results are there when a run ends.
    """

    def __init__(
        self, runtime: TrtRuntime, lowered: Lowered, plan: bytes, options: Mapping[str, Any]
    ) -> None:
        self.runtime, self.plan = runtime, plan
        self.name = lowered.name
        self.inputs, self.outputs = lowered.inputs, lowered.outputs
        self._options = options
        self._lock = threading.Lock()
        self._context: Any = None
        self._known: set[str] = set()
        self._kept: dict[str, Memory] = {}
        self._index = 0
        self._through_host: bool | None = None

    def load(self, index: int = 0) -> None:
        """Hand the engine to a GPU. Raises `EngineError` where there is none, or it is not one
        that the engine is for."""
        if self._context is not None:
            if index != self._index:
                raise EngineError(
                    f"The engine of {self.name} is on GPU {self._index}, and a tensor lies on "
                    f"GPU {index}.",
                    "Build it once for each GPU.",
                )
            return
        reason = missing_gpu()
        if reason is not None:
            raise EngineError(
                f"The engine of {self.name} cannot run here. {reason}",
                "Run it where there is a GPU, or take the runtime onnxruntime.",
            )
        here = gpu(index)
        meant = self.runtime.built_for(self._options)
        if here is not None and meant and here.sm not in meant:
            raise EngineError(
                f"The engine of {self.name} is for {', '.join(meant)}, and the GPU here "
                f"({here.name}) is {here.sm}.",
                "Build it anew here, or with this GPU's compute capability.",
            )
        trt = import_module(self.runtime.package)
        with gpu_device(index).current(), listening(trt) as log:
            said = ""
            try:
                self._loader = trt.Runtime(log)
                self._engine = self._loader.deserialize_cuda_engine(self.plan)
            except Exception as error:  # pybind's own, where the library gives none
                self._engine, said = None, last_line(error)
            if self._engine is None:
                why = log.last() or said or "it does not say why"
                raise EngineError(
                    f"{self.runtime.title} {trt.__version__} does not load the engine of "
                    f"{self.name} on {here or 'this GPU'}: {why}",
                    "Engines are for one kind of GPU and one version; build it anew here.",
                )
            context = self._engine.create_execution_context()
            if context is None:
                raise EngineError(
                    f"{self.runtime.title} cannot prepare the engine of {self.name}: "
                    f"{log.last() or 'it does not say why'}",
                    "Free memory on the GPU, or give less workspace.",
                )
        # Inputs that nothing reads may be dropped.
        self._known = {self._engine.get_tensor_name(i) for i in range(self._engine.num_io_tensors)}
        self._index, self._context = index, context

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """The outputs: TVM's tensors on the GPU where an input lies there, else NumPy arrays."""
        import numpy as np

        from byocviz.building.lower.graph import numpy_dtype

        fits(self.name, "input", self.inputs, inputs)
        on_gpu = [t for t in inputs if device(t) == "cuda"]
        outputs: list[Any]
        if on_gpu:
            import tvm

            where = tvm.cuda(device_index(on_gpu[0]))
            outputs = [tvm.runtime.empty(p.shape, p.dtype, where) for p in self.outputs]
        else:
            outputs = [np.empty(p.shape, numpy_dtype(p.dtype)) for p in self.outputs]
        self.run_into(inputs, outputs)
        return outputs

    def run_into(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        fits(self.name, "input", self.inputs, inputs)
        fits(self.name, "output", self.outputs, outputs)
        gpus = self._gpus((*inputs, *outputs))
        inputs = [packed(t) if device(t) == "cpu" else t for t in inputs]
        for what, ports, tensors in (
            ("input", self.inputs, inputs),
            ("output", self.outputs, outputs),
        ):
            for port, tensor in zip(ports, tensors, strict=True):
                must_be_in_order(self.name, what, port, tensor)
        with self._lock:
            self.load(min(gpus, default=self._index))
            here = gpu_device(self._index)
            with here.current():
                self._run(here, stream(self._index) if gpus else here.stream, inputs, outputs)

    def _gpus(self, tensors: Sequence[Any]) -> set[int]:
        """The GPUs that the tensors lie on. Raises `EngineError` for another device, or two."""
        strange = {device(t) for t in tensors} - {"cpu", "cuda"}
        found = {device_index(t) for t in tensors if device(t) == "cuda"}
        if strange or len(found) > 1:
            where = ", ".join([*sorted(strange), *(f"GPU {i}" for i in sorted(found))])
            raise EngineError(
                f"The tensors of {self.name} lie on {where}.",
                f"{self.runtime.title} takes tensors of one GPU and of the host's memory.",
            )
        return found

    def _run(self, here: Device, queue: int, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        through_host = False
        for port, tensor in zip(self.inputs, inputs, strict=True):
            if port.name not in self._known:
                continue
            place, size = self._place(here, port, tensor)
            if device(tensor) == "cpu":
                through_host = True
                here.to_gpu(place, address(tensor), size, queue)
            elif place != address(tensor):
                here.within(place, address(tensor), size, queue)
            self._bind(port, place)
        after = []
        for port, tensor in zip(self.outputs, outputs, strict=True):
            place, size = self._place(here, port, tensor)
            if place != address(tensor):
                after.append((tensor, place, size))
            self._bind(port, place)
        if not self._context.execute_async_v3(queue):
            raise failed(self.runtime.title, self.name)
        wait = False
        for tensor, place, size in after:
            if device(tensor) == "cpu":
                wait = True
                here.to_host(address(tensor), place, size, queue)
            else:
                here.within(address(tensor), place, size, queue)
        if wait or through_host:
            here.wait(queue)  # also for inputs: their memory is the caller's again
        self._through_host = wait or through_host

    def _place(self, here: Device, port: Port, tensor: Any) -> tuple[int, int]:
        """Where the engine finds a tensor on the GPU, and its bytes."""
        size = _bytes(port)
        if size and device(tensor) == "cuda" and address(tensor) % _ALIGNMENT == 0:
            return address(tensor), size
        if port.name not in self._kept:
            self._kept[port.name] = Memory(here, size)
        return self._kept[port.name].address, size

    def _bind(self, port: Port, place: int) -> None:
        if not self._context.set_tensor_address(port.name, place):
            raise failed(self.runtime.title, self.name, f"it has no tensor {port.name!r}")

    def addresses(self) -> dict[str, int]:
        """Where the last run's tensors lay on the GPU, as the engine was told, by name."""
        if self._context is None:
            return {}
        return {name: int(self._context.get_tensor_address(name)) for name in sorted(self._known)}

    def serialized(self) -> bytes:
        return self.plan

    def layers(self) -> str:
        """The engine's own layers, one a line; "" where no GPU lets them be read."""
        if self._context is None:
            try:
                with self._lock:
                    self.load(self._index)
            except EngineError:
                return ""
        trt = import_module(self.runtime.package)
        inspector = self._engine.create_engine_inspector()
        return str(inspector.get_engine_information(trt.LayerInformationFormat.ONELINE))

    def describe(self) -> dict[str, str]:
        trt = import_module(self.runtime.package)
        facts = {
            "runtime": f"{self.runtime.title} {trt.__version__}",
            "device": str(gpu(self._index) or "no GPU here"),
            "bytes": str(len(self.plan)),
            **{k: str(v) for k, v in self._options.items() if v is not None},
        }
        if self._through_host is not None:
            facts["copies through the host"] = "yes" if self._through_host else "no"
        return facts


def _bytes(port: Port) -> int:
    from byocviz.building.lower.graph import numpy_dtype

    size = int(numpy_dtype(port.dtype).itemsize)
    for dim in port.shape:
        size *= dim
    return size
