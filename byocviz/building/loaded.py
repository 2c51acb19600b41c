"""`load_build`: a build that was saved, made to run again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from byocviz.errors import missing
from byocviz.progress import progress as show_progress

if TYPE_CHECKING:
    from byocviz.building.built import Build
    from byocviz.building.saved import Manifest


def load_build(folder: str | os.PathLike[str], *, progress: bool | None = None) -> Build:
    """A build that `Build.save` wrote. Load only what you trust: it holds native code.

    It runs, and can be timed and asked for detections; what needs the module itself (comparing
    with TVM alone) it cannot, for a saved build holds what runs and not what it was made from.
    Engines that the runtime cannot keep are made again from their ONNX models.

    Raises `BuildError` for a folder that holds no build, was changed or damaged, or was made for
    another machine; `RuntimeMissing` where its runtime cannot be used here.
    """
    try:
        import tvm  # noqa: F401
        from tvm import relax  # noqa: F401
    except ImportError as error:
        raise missing("TVM with Relax (apache-tvm)", "relax", "to run a build") from error
    from byocviz.building import saved
    from byocviz.building.built import Build, Plan
    from byocviz.building.codegen import Offloaded
    from byocviz.building.compiled import device_of
    from byocviz.building.module import Runnable
    from byocviz.building.runtimes import Choice, get
    from byocviz.building.signature import from_json
    from byocviz.recording import load

    place = Path(folder)
    manifest = saved.read(place)
    with show_progress(f"Loading {place.name}", enabled=progress):
        recording = load(place / saved.RECORDING)
        runtime = get(manifest.runtime)
        target = _target(manifest)
        signature = (place / saved.SIGNATURE).read_text(encoding="utf-8")
        module = from_json(signature, manifest.entry)
        lowered = {e.symbol: _lowered(e, place, n) for n, e in enumerate(manifest.engines)}
        plan = Plan(
            manifest.backend,
            Choice(runtime, manifest.stands_in_for, manifest.why),
            target,
            manifest.options,
        )
        built = _engines(manifest, place, plan, lowered)
        runnable = Runnable(
            manifest.entry,
            Offloaded(module),
            _library(place),
            target,
            device_of(target),
            lowered,
            built,
            library=(place / saved.LIBRARY).resolve(),
        )
    info = recording.results.build
    build = Build(recording, recording.step(manifest.step), runnable, plan, progress=progress)
    if info is not None:
        # What it took to build is what it took then, not to load it.
        build.info = recording.results.build = info
    return build


def _target(manifest: Manifest) -> Any:
    import json

    from byocviz.building.compiled import target_of

    try:
        return target_of(json.loads(manifest.target))
    except ValueError:
        return target_of(manifest.target)  # a name


def _library(folder: Path) -> Any:
    import tvm

    from byocviz.building.errors import BuildError, last_line
    from byocviz.building.saved import LIBRARY

    try:
        return tvm.runtime.load_module(str((folder / LIBRARY).resolve()))
    except Exception as error:
        raise BuildError(
            f"TVM does not load the module of {folder}: {last_line(error)}",
            "It was compiled for another kind of machine, or by another TVM; build it again here.",
        ) from error


def _lowered(engine: Any, folder: Path, number: int) -> Any:
    import onnx

    from byocviz.building.errors import BuildError, last_line
    from byocviz.building.lower import Lowered, Port

    path = folder / "engines" / f"{number}.onnx"
    try:
        model = onnx.load(path, load_external_data=False)
    except Exception as error:
        raise BuildError(
            f"{path} is no ONNX model: {last_line(error)}", "Build and save it again."
        ) from error

    def ports(saved: Any) -> list[Port]:
        return [Port(p.name, p.dtype, tuple(p.shape), p.parameter, tuple(p.path)) for p in saved]

    return Lowered(
        engine.symbol,
        model,
        engine.opset,
        ports(engine.inputs),
        ports(engine.outputs),
        engine.tuple_output,
    )


def _engines(manifest: Manifest, folder: Path, plan: Any, lowered: dict[str, Any]) -> Any:
    """The engines: those that were saved are loaded, the others built from their ONNX."""
    import time

    from byocviz.building.engines import BuiltEngine, build_engines

    runtime = plan.choice.runtime
    built: dict[str, Any] = {}
    for number, engine in enumerate(manifest.engines):
        if engine.plan:
            start = time.perf_counter()
            data = (folder / "engines" / f"{number}.plan").read_bytes()
            loaded = runtime.load(lowered[engine.symbol], data, plan.options)
            seconds = time.perf_counter() - start
            built[engine.symbol] = BuiltEngine(loaded, seconds, True, len(data))
    left = {symbol: one for symbol, one in lowered.items() if symbol not in built}
    built |= build_engines(left, runtime, plan.options) if left else {}
    return {symbol: built[symbol] for symbol in lowered}
