"""`build`: a partitioned module, made to run."""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from byocviz.backends import Backend
from byocviz.building.errors import BuildError
from byocviz.building.names import CODEGENS
from byocviz.errors import ArgumentError, ByocvizWarning, StepMissing
from byocviz.flow.arguments import needs_tvm
from byocviz.progress import progress as show_progress
from byocviz.recording import STEPS, Recording
from byocviz.recording.printable import printable

if TYPE_CHECKING:
    import tvm

    from byocviz.building.built import Build
    from byocviz.building.cache import EngineCache
    from byocviz.building.isolate import Cancel
    from byocviz.building.runtimes import Choice, Runtime


def build(
    x: Recording | tvm.IRModule | str | Path | Any,
    backend: str | Backend | None = None,
    *,
    runtime: str | Runtime = "auto",
    target: Any = None,
    options: Mapping[str, Any] | None = None,
    codegen: str = "python",
    step: str | None = None,
    time_limit: float | None = 600.0,
    isolate: bool = True,
    cache: bool | str | Path | EngineCache = True,
    cancel: Cancel | None = None,
    progress: bool | None = None,
) -> Build:
    """Build a partitioned module: its subgraphs for a runtime, the rest with TVM.

    ``x`` is a `Recording` that was made in this process, or what `byocviz.record` takes, which is
    recorded first for ``backend`` (by default TensorRT). Results go into the recording.

    ``runtime`` executes the subgraphs: ``"tensorrt"``, ``"tensorrt-rtx"``, ``"onnxruntime"``, or
    ``"auto"``: TensorRT where it and a GPU are there, else ONNX Runtime, which then stands in for
    it and is said to. ``options`` are the runtime's own: see
    ``byocviz.building.runtimes.get(name).options``; with ``"auto"``, those of the runtime that was
    meant (``{"fp16": True}``) are left out, with a `ByocvizWarning`, where another stands in.
    ``target`` is what TVM compiles the rest for: a name, a dictionary or a `tvm.target.Target`; by
    default the CPU, and the GPU where the runtime works there and TVM can.
    ``codegen="native"`` takes the codegen that this TVM was built with in place of byocviz's;
    ``options`` are then its own. ``step`` is the step whose module is built: by default the last;
    of a recording with a failed step it must be named.

    Engines are built in a child process (``isolate``), so that a native library that crashes or
    takes longer than ``time_limit`` seconds an engine ends with an error, not with this process;
    TVM itself compiles in this process. Engines that take long are kept on disk between processes
    (``cache``: True, False, a folder or an `EngineCache`). ``cancel.cancel()``, from another
    thread, ends the build. ``progress`` shows on stderr what goes on; False: nothing is shown.

    Raises `StepMissing` for a recording that was loaded (a file holds no modules) or whose step
    failed; `RuntimeMissing` for a runtime that cannot be used here; `LoweringError` where a
    subgraph has no equal in ONNX (``byocviz.record(mod, lowerable=True)`` makes only such that
    have); `BuildError` where the runtime or TVM refuses; `BuildCancelled`; and what
    `byocviz.record` raises; `ArgumentError` for an option or another argument that cannot be,
    before anything is recorded.
    """
    needs_tvm("to build a module")
    from byocviz.building import runtimes
    from byocviz.building.built import Build, Plan
    from byocviz.building.cache import EngineCache
    from byocviz.building.dialect import dialect
    from byocviz.building.engines import must_be_sound
    from byocviz.building.runtimes.base import usable
    from byocviz.building.runtimes.options import mapping
    from byocviz.flow.record import record

    if isinstance(cache, (str, os.PathLike)):
        cache = EngineCache(_folder(cache))
    elif cache is True:
        cache = EngineCache()
    must_be_sound(time_limit, None, isolate, cache or None, cancel)
    if isinstance(x, Recording):
        if backend is not None and x.backend.name != getattr(backend, "name", backend):
            raise ArgumentError(
                f"The recording was made for the backend {x.backend.name!r}, not {backend!r}.",
                "Leave backend out, or record the module for the other backend.",
            )
        recording = x
    else:
        name = getattr(backend, "name", backend) or "tensorrt"
        possible(target, codegen, step)
        if codegen != "native" and isinstance(name, str):
            usable(runtimes.chosen_for(runtime, name, options)[0].runtime)
        recording = record(x, backend or "tensorrt", progress=progress)
    failed = recording.failed
    if step is None and failed is not None and failed.error is not None:
        last = f"build(recording, step={recording.last.name!r}) builds what came before it."
        raise StepMissing(
            f"Recording {recording.title!r} cannot be built.{recording._why_short()}",
            f"{failed.error.mend} {last}".strip(),
        )
    wanted = recording.step(step or recording.last.name)
    module = recording.module(wanted.name)
    with show_progress(f"Building {recording.title}", enabled=progress) as shown:
        choice = None
        given = mapping(options)
        if codegen != "native":
            choice, given = runtimes.chosen_for(runtime, recording.backend.name, options)
            choice = _without(choice, mapping(options).keys() - given.keys())
            if target is None and recording.ir != "relay":  # a Relay build is of the CPU
                target = choice.runtime.target()
        operators = {s.function: s.op_ids for s in reversed(wanted.subgraphs)}
        plan = Plan(
            backend=recording.backend.name,
            choice=choice,
            target=target,
            options=given,
            codegen=codegen,
            time_limit=time_limit,
            isolate=isolate,
            cache=cache or None,
        )
        runnable = dialect(recording.ir, "to build a module").build(
            module,
            plan.backend,
            choice.runtime if choice else "onnxruntime",
            target,
            entry=recording.entry,
            options=plan.options,
            codegen=codegen,
            operators=operators,
            time_limit=time_limit,
            isolate=isolate,
            cache=plan.cache,
            cancel=cancel,
            tell=shown.update,
        )
    return Build(recording, wanted, runnable, plan, progress=progress)


def _without(choice: Choice, left_out: Collection[str]) -> Choice:
    """The choice, which says what of the options is left out; so does a warning."""
    if not left_out:
        return choice
    names = ", ".join(sorted(map(printable, left_out)))
    said = (
        f"Left out, since {choice.runtime.title} has no such option: {names} (options of "
        f"{choice.stands_in_for})."
    )
    warnings.warn(
        f"{choice.runtime.title} stands in for {choice.stands_in_for}. {said}",
        ByocvizWarning,
        stacklevel=3,
    )
    return replace(choice, why=f"{choice.why} {said}".strip())


def possible(target: Any = None, codegen: str = "python", step: str | None = None) -> None:
    """Refuse what cannot be built here whatever the model, before anything is done for it.

    Raises `BuildError` for a target or a codegen, `StepMissing` for a step that there is never.
    """
    if codegen not in CODEGENS:
        raise BuildError(
            f"There is no codegen {codegen!r}.", "Say 'python' for byocviz's or 'native' for TVM's."
        )
    if step is not None and step not in STEPS:
        raise StepMissing(f"There is no step {step!r}.", f"The steps: {', '.join(STEPS)}.")
    if target is None:
        return
    try:
        from byocviz.building.compiled import target_of
    except ImportError:  # no Relax, or that of the TVM that has Relay
        from byocviz.building.relay.compiled import target_of
    target_of(target)


def _folder(path: str | os.PathLike[str]) -> Path:
    try:
        return Path(path)
    except TypeError as error:  # one of bytes
        raise ArgumentError(
            f"cache is of the type {type(path).__name__}, which gives no path as text.",
            "Give True or False, the path of a folder, or a byocviz.building.cache.EngineCache.",
        ) from error
