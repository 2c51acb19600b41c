"""`Build`: a module that was built, with what people ask of it."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from byocviz.building.cache import EngineCache
from byocviz.building.engines import BuiltEngine, build_engines
from byocviz.building.lower.lowered import Lowered
from byocviz.building.report import report
from byocviz.building.runnable import BuiltModule
from byocviz.building.runtimes import Choice, Engine
from byocviz.building.variants import Alone, Whole
from byocviz.errors import ArgumentError, ModuleError
from byocviz.recording import Recording
from byocviz.recording.results import BuildInfo, Check, Latency, Photo, Results
from byocviz.recording.schema import Step

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Inputs = Mapping[str, Any] | Sequence[Any] | Any
"""By parameter name or in order; for a module of one tensor also that tensor itself."""


@dataclass(frozen=True)
class Plan:
    """How a module was built, so that another can be in the same way."""

    backend: str
    choice: Choice | None
    """None with a native codegen."""
    target: Any = None
    options: Mapping[str, Any] = field(default_factory=dict)
    codegen: str = "python"
    time_limit: float | None = 600.0
    isolate: bool = True
    cache: EngineCache | None = None

    @property
    def title(self) -> str:
        """The runtime, as people write it."""
        return self.choice.runtime.title if self.choice else f"{self.backend} (native)"

    def engine(self, lowered: Lowered) -> BuiltEngine:
        """An engine of one more function. Raises what `build_engines` raises."""
        assert self.choice is not None
        built = build_engines(
            {lowered.name: lowered},
            self.choice.runtime,
            self.options,
            time_limit=self.time_limit,
            isolate=self.isolate,
            cache=self.cache,
        )
        return built[lowered.name]


class Build:
    """A partitioned module that runs. Made by `byocviz.build`; runs in one thread at a time.

    What is asked of it goes into ``recording.results`` as well.
    """

    def __init__(
        self,
        recording: Recording,
        step: Step,
        runnable: BuiltModule,
        plan: Plan,
        *,
        progress: bool | None = None,
        info: BuildInfo | None = None,
    ) -> None:
        """``info`` is what a build that was saved said of itself; by default it is found out."""
        self.recording = recording
        self.step = step
        self.runnable = runnable
        self.plan = plan
        self.progress = progress
        self.first_seconds: float | None = None
        """The very first run, once there was one."""
        self._lock = threading.RLock()
        self._alone: Alone | None = None
        self._whole: Whole | None = None
        found, self._texts = report(step, runnable, plan)
        self.info = info or found
        self.results()

    def results(self) -> Results:
        """The recording's results, which are this build's from now on.

        Another build of the same recording may have put its own there: figures of two builds
        never stand side by side as if they were of one.
        """
        recording = self.recording
        if recording.results.build is not self.info:
            for key in [k for k in recording.texts if k.startswith(("onnx:", "layers:"))]:
                del recording.texts[key]
            recording.texts.update(self._texts)
            recording.results = Results(build=self.info)
        return recording.results

    # -- running

    @property
    def inputs(self) -> str:
        """What `run` takes: ``image float32[1, 3, 300, 300]``."""
        return self.runnable.signature()

    def run(self, inputs: Inputs) -> list[np.ndarray]:
        """The outputs in order, as arrays; nested tuples are taken apart.

        ``inputs`` are by parameter name or in order; for a module of one tensor also that tensor.
        Raises `ModuleError` where one is missing, unknown, or of another shape or dtype, and
        `EngineError` where an engine fails.
        """
        with self._lock:
            return self.runnable.arrays(self.timed(self.runnable.place(inputs)))

    def timed(self, placed: Sequence[Any]) -> Any:
        """One run, waited for; the first of all is timed."""
        start = time.perf_counter()
        result = self.runnable.call(placed)
        if self.first_seconds is None:
            self.first_seconds = time.perf_counter() - start
            # Some things an engine knows only once it ran.
            for one in self.info.engines:
                one.facts = self.engines[one.function].describe()
        return result

    def alone(self) -> Alone:
        """The module as it was imported, compiled by TVM alone for the same target; made once.

        Raises `BuildError` where TVM does not compile it.
        """
        with self._lock:
            if self._alone is None:
                self._alone = self.runnable.alone(self.imported())
            return self._alone

    def whole(self) -> Whole:
        """The runtime alone on the whole model, or what it cannot; made once. It is given the
        model file that was recorded, else the module, prepared as the recording says. Not for a
        native codegen."""
        from byocviz.building.original import whole

        with self._lock:
            if self._whole is None:
                self._whole = whole(self)
            return self._whole

    def imported(self) -> Any:
        """The module of the import step, the weights that were given to `record` bound."""
        params = self.recording.__dict__.get("params")
        return self.runnable.imported(self.recording.module("import"), params)

    def named(self, inputs: Inputs | None, seed: int = 0) -> dict[str, Any]:
        """Checked inputs by name; None: from the seed."""
        entry, names = self.recording.entry, self.runnable.names
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ModuleError(
                f"Several parameters of {entry!r} are named {', '.join(map(repr, twice))}; what "
                "compares with TVM alone goes by name.",
                "Rename one; run() takes them in order.",
            )
        if inputs is None:
            return self.runnable.seeded(seed)
        return dict(zip(names, self.runnable.checked(inputs), strict=True))

    # -- questions

    def check(
        self, inputs: Inputs | None = None, *, atol: float | None = None, rtol: float | None = None
    ) -> Check:
        """Compare with TVM alone on the CPU: each output, and each subgraph by itself.

        A subgraph is given the very inputs that its engine got in this run, and compiled by TVM
        for the CPU. ``inputs`` are as for `run`; None: seeded ones. The tolerance is
        ``atol + rtol * |TVM's|``, by default 1e-4 and 1e-3, and 1e-2 for both where the runtime
        was allowed float16; tensors of float16 and bfloat16 may differ by 16 units in the last
        place of their largest value, and integers not at all.

        Raises as `run` does, and `BuildError` where TVM alone does not compile the module.
        """
        from byocviz.building.reference import compare_build

        low = bool(self.plan.options.get("fp16"))
        with self._lock:
            result = compare_build(
                self,
                self.named(inputs),
                atol=_tolerance("atol", atol, 1e-2 if low else 1e-4),
                rtol=_tolerance("rtol", rtol, 1e-2 if low else 1e-3),
                words="seeded with 0" if inputs is None else "as given",
            )
        self.results().check = result
        return result

    def latency(
        self,
        inputs: Inputs | None = None,
        *,
        repeat: int = 20,
        warmup: int = 3,
        settings: Mapping[str, Mapping[str, Any] | Recording | Build] | None = None,
        name: str = "",
    ) -> Latency:
        """Time TVM alone, TVM with the runtime, and the runtime alone, in turn.

        The runtime alone gets the model file that was recorded, where there is one, else the whole
        module as one ONNX model. Where it does not take that, its bar says what it cannot, and one
        more is timed: the runtime on the part that it takes. ``settings`` are more partitions of
        the same module to be timed beside this one, by the name that the chart shows: what `record`
        takes (``{"as imported": {"prepare": False, "prune": False}}``), a `Recording` of it or a
        `Build`. ``name`` is what this one is called beside them. Inputs are put on the device
        before the clock runs, and the device is waited for. ``warmup`` and ``repeat`` are rounds;
        the first run is in no statistic.

        Raises as `run` and `build` do.
        """
        from byocviz.building.comparison import compare_latency

        whole = all(isinstance(n, int) and not isinstance(n, bool) for n in (repeat, warmup))
        if not whole or repeat < 1 or warmup < 0:
            raise ArgumentError(
                f"repeat is {repeat!r} and warmup {warmup!r}.",
                "Give at least one round to be timed, and none or more to warm up.",
            )
        if settings is not None and not isinstance(settings, Mapping):
            raise ArgumentError(
                f"settings is a {type(settings).__name__}.",
                'Give what record takes by name, as {"as imported": {"prepare": False}}.',
            )
        with self._lock:
            result = compare_latency(
                self, self.named(inputs), repeat, warmup, dict(settings or {}), name
            )
        self.results().latency = result
        return result

    def detect(
        self,
        photos: Mapping[str, Any] | str | os.PathLike[str] | Any = None,
        *,
        preprocess: Any = None,
        postprocess: Any = None,
    ) -> list[Photo]:
        """What each variant finds in photos, TVM alone first.

        ``photos`` are paths or Pillow images by name, or one of them; by default those of the
        bundled SSD. ``preprocess(image)`` gives the model's inputs, ``postprocess(outputs, size)``
        a list of `byocviz.models.ssd.Detection`; by default the bundled SSD's.

        Raises `ModelError` for a file that is no image, and for outputs that are not an SSD's.
        """
        from byocviz.building.detect import detect

        with self._lock:
            found = detect(self, photos, preprocess, postprocess)
        self.results().photos = found
        return found

    def plot(self, **look: Any) -> Figure:
        """Latency and detections in one figure; see `byocviz.plots.demo`."""
        from byocviz.render import plots

        return plots.demo(self.recording, **look)

    # -- keeping

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write what runs into a folder; `byocviz.load_build` runs it in another process.

        Raises `BuildError` where it cannot be written, or TVM finds no compiler to link with.
        """
        from byocviz.building.saved import save

        return save(self, folder)

    # -- looking

    @property
    def engines(self) -> dict[str, Engine]:
        """By the subgraph's symbol."""
        return self.runnable.engines

    def warm(self, placed: Sequence[Any]) -> None:
        """Have the very first run be one that is timed, before engines run for something else."""
        if self.first_seconds is None:
            self.timed(placed)

    def machine_with(self, functions: Mapping[str, Any]) -> Any:
        """Another virtual machine of the same code, in which these stand for the engines."""
        return self.runnable.with_engines(functions)

    def summary(self) -> str:
        """The recording's whole story, results included, as plain text."""
        return self.recording.summary()

    def __rich__(self) -> Any:
        return self.recording.__rich__()

    def __repr__(self) -> str:
        stands = f", stands in for {self.info.stands_in_for}" if self.info.stands_in_for else ""
        cannot = ", cannot run here" if self.info.cannot_run else ""
        return (
            f"<Build {self.recording.title!r}, engines={len(self.runnable.built)}, "
            f"runtime={self.plan.title!r}{stands}{cannot}>"
        )


__all__ = ["Build", "Plan"]


def _tolerance(name: str, given: float | None, default: float) -> float:
    if given is None:
        return default
    number = isinstance(given, (int, float)) and not isinstance(given, bool)
    if not number or not math.isfinite(given) or given < 0:
        raise ArgumentError(f"{name} is {given!r}.", "Give a number of 0 or more.")
    return float(given)
