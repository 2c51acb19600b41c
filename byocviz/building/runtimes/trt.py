"""What TensorRT and TensorRT-RTX share: parsing and building by one API."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from byocviz.building.errors import BuildError
from byocviz.building.runtimes.base import Base, Engine, Notes, Subgraph, at_operator, named
from byocviz.building.runtimes.gpu import gpu, missing_gpu
from byocviz.building.runtimes.half import half
from byocviz.building.runtimes.options import Takes, switch, whole
from byocviz.errors import last_line

if TYPE_CHECKING:
    from byocviz.building.lower.lowered import Lowered, Port

BOUNDARY = ("float32", "float16", "bfloat16", "int8", "uint8", "int32", "int64", "bool")
"""Element types that an engine's inputs and outputs may have. The parser takes float64 for
float32 without a word, which is why it is refused here."""


TAKES: Mapping[str, Takes] = {
    "fp16": switch(),
    "tf32": switch(),
    "workspace": whole(1, 1 << 50, none=True),
}
"""Of the options that both have."""


class TrtRuntime(Base):
    """Base of both. ``package`` is the Python module that holds the API."""

    package = ""
    install = ""
    needs_gpu_to_build = True
    keeps_timing = True
    """Whether kernels are timed during the build, and the times can be kept."""
    serializes = True

    def supports(self, running: bool = True) -> str | None:
        if (reason := unusable(self.package, self.install)) is not None:
            return reason
        if running or self.needs_gpu_to_build:
            return missing_gpu()
        return None

    def refuse(self, lowered: Lowered) -> None:
        for what, ports in (("input", lowered.inputs), ("output", lowered.outputs)):
            for port in ports:
                if port.dtype not in BOUNDARY:
                    raise self._strange(lowered, what, port)

    def _strange(self, lowered: Lowered, what: str, port: Port) -> BuildError:
        node = next(
            (
                n.name
                for n in lowered.model.graph.node
                if port.name in (n.input if what == "input" else n.output)
            ),
            "",
        )
        operator = named(lowered, node)
        other = "float32" if port.dtype.startswith("float") else "int32"
        return BuildError(
            f"{self.title} has no {port.dtype}, and the {what} {port.name!r} of "
            f"{lowered.name} is {port.dtype}{list(port.shape)}"
            + (f", at {operator}." if operator else "."),
            f"Cast it to {other} in the model, or switch the operator's rule off so that it stays "
            "on TVM.",
            subgraph=lowered.name,
        )

    def plan(self, subgraph: Subgraph, options: Mapping[str, Any], notes: Notes) -> bytes:
        """The serialised engine. Raises `BuildError` where the parser or builder refuses."""
        trt = import_module(self.package)
        model = subgraph.serialized()
        if options["fp16"]:
            model = half(self.title, subgraph.name, model)
        with listening(trt) as log:
            builder = self._builder(trt, log)
            typed = int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED)
            network = builder.create_network(1 << typed)
            parser = trt.OnnxParser(network, log)
            if not parser.parse(model):
                raise _unparsed(self.title, subgraph, parser, log)
            config = builder.create_builder_config()
            self._configure(trt, config, options)
            timed = self.keeps_timing and bool(options["timing_cache"])
            if timed:
                _set_times(config, notes.timing)
            plan = builder.build_serialized_network(network, config)
            if plan is None:
                raise _unbuilt(self.title, subgraph, log.last())
            if timed:
                notes.timing = bytes(config.get_timing_cache().serialize())
            return bytes(plan)

    def _builder(self, trt: Any, log: Any) -> Any:
        try:
            return trt.Builder(log)
        except Exception as error:  # pybind's own, where the library gives none
            raise BuildError(
                f"{self.title} {trt.__version__} does not start: {log.last() or last_line(error)}",
                "It starts where the driver and the GPU are ones that it supports; byocviz doctor "
                "says which are here.",
            ) from error

    def _configure(self, trt: Any, config: Any, options: Mapping[str, Any]) -> None:
        if options["workspace"]:
            config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, int(options["workspace"]))
        if options["tf32"]:
            config.set_flag(trt.BuilderFlag.TF32)
        else:
            config.clear_flag(trt.BuilderFlag.TF32)
        # Lets the engine's layers be read with what they compute.
        config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED

    def load(self, lowered: Lowered, plan: bytes | None, options: Mapping[str, Any]) -> Engine:
        from byocviz.building.runtimes.trt_engine import TrtEngine

        return TrtEngine(self, lowered, plan or b"", options)

    def target(self) -> Any:
        import tvm

        compiles = tvm.get_global_func("target.build.cuda", allow_missing=True) is not None
        if not compiles or not tvm.runtime.enabled("cuda") or not tvm.cuda(0).exist:
            return None
        return tvm.target.Target.from_device(tvm.cuda(0))

    def fingerprint(self, options: Mapping[str, Any]) -> dict[str, str]:
        return {
            self.package: str(import_module(self.package).__version__),
            "gpu": str(gpu() or "none"),
        }

    def built_for(self, options: Mapping[str, Any]) -> tuple[str, ...]:
        """The compute capabilities that engines are for, as ``SM89``; none: the GPU that they
        were built on."""
        return ()


def unusable(package: str, install: str) -> str | None:
    """Why the package cannot be imported, with the mend; None: it can."""
    try:
        import_module(package)
    except ModuleNotFoundError as error:
        if error.name == package:
            return f"It is not installed ({error}): {install}"
        return f"It is installed and lacks a part ({error}): {install}"
    except Exception as error:  # a library that is missing, or of another version
        return (
            f"It is installed and does not load ({last_line(error)}): {install} brings its "
            "libraries where NVIDIA's own package index can be reached."
        )
    return None


def _set_times(config: Any, times: bytes) -> None:
    """Have the times of kernels kept, from those given where they are of this GPU and version."""
    cache = config.create_timing_cache(times)
    if cache is None or not config.set_timing_cache(cache, False):  # False: no mismatch is taken
        config.set_timing_cache(config.create_timing_cache(b""), False)


def logger(trt: Any) -> Any:
    """What keeps the errors that a library reports, for the error's text; prints nothing.

    One a library: it hands all that it says to the first that it was given.
    """
    return _logger(trt.__name__)


@lru_cache(maxsize=4)
def _logger(package: str) -> Any:
    trt = import_module(package)

    class Log(trt.ILogger):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            trt.ILogger.__init__(self)
            self.lines: list[str] = []

        def log(self, severity: Any, text: str) -> None:
            if severity <= trt.ILogger.Severity.ERROR and len(self.lines) < 100:
                self.lines.append(text)

        def last(self) -> str:
            return self.lines[-1][:500] if self.lines else ""

    return Log()


_listening = threading.RLock()


@contextmanager
def listening(trt: Any) -> Iterator[Any]:
    """The logger, emptied, and nobody else's while this lasts."""
    with _listening:
        log = logger(trt)
        log.lines.clear()
        yield log


def _unbuilt(title: str, subgraph: Subgraph, said: str) -> BuildError:
    return BuildError(
        f"{title} builds no engine of the subgraph {subgraph.name}"
        f"{at_operator(subgraph, said)}: {said or 'it does not say why'}",
        "Switch off the rule of the operator that it names, so that it stays on TVM.",
        subgraph=subgraph.name,
    )


def _unparsed(title: str, subgraph: Subgraph, parser: Any, log: Any) -> BuildError:
    found = []
    for index in range(parser.num_errors):
        error = parser.get_error(index)
        node = str(error.node_name())
        where = named(subgraph, node) or node
        found.append(f"{where}: {error.desc()}" if where else str(error.desc()))
    said = "; ".join(dict.fromkeys(found)) or log.last() or "it does not say why"
    return BuildError(
        f"{title} does not take the subgraph {subgraph.name}: {said[:800]}",
        "Switch the operator's rule off, so that it stays on TVM.",
        subgraph=subgraph.name,
    )
