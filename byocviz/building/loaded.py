"""`load_build`: a build that was saved, made to run again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from byocviz.flow.arguments import needs_tvm
from byocviz.progress import progress as show_progress

if TYPE_CHECKING:
    from byocviz.building.built import Build
    from byocviz.building.dialect import Dialect
    from byocviz.building.engines import BuiltEngine
    from byocviz.building.lower import Lowered
    from byocviz.building.manifest import Manifest, SavedEngine
    from byocviz.building.runnable import BuiltModule
    from byocviz.recording import Recording


def load_build(folder: str | os.PathLike[str], *, progress: bool | None = None) -> Build:
    """A build that `Build.save` wrote. Load only what you trust: it holds native code.

    It runs, and can be timed and asked for detections; what needs the module itself (comparing
    with TVM alone) it cannot, for a saved build holds what runs and not what it was made from.
    Engines that the runtime cannot keep are made again from their ONNX models.

    Raises `BuildError` for a folder that holds no build, was changed or damaged, or was made for
    another machine; `RuntimeMissing` where its runtime cannot be used here.
    """
    needs_tvm("to run a build")
    from byocviz.building import manifest as kept
    from byocviz.building.built import Build, Plan
    from byocviz.building.dialect import dialect
    from byocviz.building.runtimes import Choice, get
    from byocviz.building.runtimes.base import usable
    from byocviz.building.runtimes.options import chosen
    from byocviz.building.saved import path_of
    from byocviz.recording import load

    place = path_of(folder)
    manifest, library = kept.read(place)
    with show_progress(f"Loading {place.name}", enabled=progress):
        recording = load(place / kept.RECORDING)
        _belongs(manifest, recording, place)
        language = dialect(recording.ir, "to run a build")
        runtime = get(manifest.runtime)
        usable(runtime)
        options = chosen(runtime, manifest.options)
        target = _target(manifest, language)
        signature = language.from_json((place / kept.SIGNATURE).read_bytes(), manifest.entry)
        lowered = {e.symbol: _lowered(e, place, n) for n, e in enumerate(manifest.engines)}
        plan = Plan(
            manifest.backend,
            Choice(runtime, manifest.stands_in_for, manifest.why),
            target,
            options,
        )
        built = _engines(manifest, place, plan, lowered)
        runnable = _runnable(
            place, language, manifest.entry, signature, library, target, lowered, built
        )
    info = recording.results.build
    # What it took to build is what it took then, not to load it.
    step = recording.step(manifest.step)
    return Build(recording, step, runnable, plan, progress=progress, info=info)


def _belongs(manifest: Manifest, recording: Recording, folder: Path) -> None:
    """Refuse a recording of another build."""
    from byocviz.building.manifest import damaged

    info = recording.results.build
    if info is None:
        raise damaged(folder, "its recording is of no build")
    symbols = [engine.symbol for engine in manifest.engines]
    for what, one, other in (
        ("engines", symbols, [engine.function for engine in info.engines]),
        ("entry", manifest.entry, recording.entry),
        ("backend", manifest.backend, recording.backend.name),
        ("runtime", manifest.runtime, info.runtime),
        ("step", manifest.step, info.step),
        ("date", manifest.made, info.made),
    ):
        if one != other:
            raise damaged(folder, f"its recording is of another build (another {what})")


def _runnable(
    folder: Path,
    language: Dialect,
    entry: str,
    signature: Any,
    library: Path,
    target: Any,
    lowered: dict[str, Lowered],
    built: dict[str, BuiltEngine],
) -> BuiltModule:
    """The parts, put together where they are of one build."""
    from byocviz.building.manifest import damaged
    from byocviz.errors import last_line

    module = _library(folder, library)
    try:
        runnable, fits = language.restored(
            entry, signature, module, target, lowered, built, library
        )
    except Exception as error:
        what = f"the library and the engines do not fit each other ({last_line(error)})"
        raise damaged(folder, what) from error
    if not fits:
        raise damaged(folder, "the library takes other parameters than the signature says")
    return runnable


def _target(manifest: Manifest, language: Dialect) -> Any:
    import json

    try:
        return language.target_of(json.loads(manifest.target))
    except (ValueError, RecursionError):
        return language.target_of(manifest.target)  # a name


def _library(folder: Path, library: Path) -> Any:
    import tvm

    from byocviz.building.errors import BuildError
    from byocviz.errors import last_line

    try:
        return tvm.runtime.load_module(str(library))
    except Exception as error:
        raise BuildError(
            f"TVM does not load the module of {folder}: {last_line(error)}",
            "It was compiled for another kind of machine, or by another TVM; build it again here.",
        ) from error


def _lowered(engine: SavedEngine, folder: Path, number: int) -> Lowered:
    import onnx

    from byocviz.building.errors import BuildError
    from byocviz.building.lower import Lowered, Port
    from byocviz.building.manifest import damaged
    from byocviz.errors import last_line

    path = folder / "engines" / f"{number}.onnx"
    try:
        model = onnx.load(path, load_external_data=False)
    except Exception as error:
        raise BuildError(
            f"{path} is no ONNX model: {last_line(error)}", "Build and save it again."
        ) from error

    def ports(saved: Any) -> list[Port]:
        return [Port(p.name, p.dtype, tuple(p.shape), p.parameter, tuple(p.path)) for p in saved]

    lowered = Lowered(
        engine.symbol,
        model,
        engine.opset,
        ports(engine.inputs),
        ports(engine.outputs),
        engine.tuple_output,
    )
    if (odd := _misfit(lowered)) is not None:
        raise damaged(folder, f"engine {number} is not as the manifest says ({odd})")
    return lowered


def _misfit(lowered: Lowered) -> str | None:
    """What the manifest says otherwise of an ONNX model than that does; None: nothing."""
    from byocviz.building.lower.graph import onnx_type

    model = lowered.model
    if [o.version for o in model.opset_import if o.domain == ""] != [lowered.opset]:
        return "its opset"
    for what, ports, infos in (
        ("inputs", lowered.inputs, model.graph.input),
        ("outputs", lowered.outputs, model.graph.output),
    ):
        try:
            said = [(p.name, onnx_type(p.dtype), list(p.shape)) for p in ports]
        except (KeyError, TypeError, ValueError):
            return f"its {what}"
        tensors = [(info.name, info.type.tensor_type) for info in infos]
        if said != [(n, t.elem_type, [d.dim_value for d in t.shape.dim]) for n, t in tensors]:
            return f"its {what}"
    if any(p.parameter < 0 for p in lowered.inputs):
        return "its inputs"
    return None


def _engines(
    manifest: Manifest, folder: Path, plan: Any, lowered: dict[str, Lowered]
) -> dict[str, BuiltEngine]:
    """The engines: those that were saved are loaded, the others built from their ONNX."""
    import time

    from byocviz.building.engines import BuiltEngine, build_engines
    from byocviz.building.manifest import damaged

    runtime = plan.choice.runtime
    built: dict[str, Any] = {}
    for number, engine in enumerate(manifest.engines):
        if engine.plan:
            if not runtime.serializes:
                raise damaged(folder, f"{runtime.title} has no serialised engines")
            start = time.perf_counter()
            data = (folder / "engines" / f"{number}.plan").read_bytes()
            loaded = runtime.load(lowered[engine.symbol], data, plan.options)
            seconds = time.perf_counter() - start
            built[engine.symbol] = BuiltEngine(loaded, seconds, True, len(data))
    left = {symbol: one for symbol, one in lowered.items() if symbol not in built}
    built |= build_engines(left, runtime, plan.options) if left else {}
    return {symbol: built[symbol] for symbol in lowered}
