"""Which bars the latency comparison of a build has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from byocviz.building.check import Capture
from byocviz.building.latency import Candidate, measure
from byocviz.building.variants import Run, calling, engine_inputs
from byocviz.errors import ArgumentError, ByocvizError, StepMissing
from byocviz.progress import progress as show_progress
from byocviz.recording import Recording
from byocviz.recording.compare import boundary_bytes
from byocviz.recording.printable import printable
from byocviz.recording.results import Latency, Variant

if TYPE_CHECKING:
    from byocviz.building.built import Build

Setting = Mapping[str, Any]


def compare_latency(
    build: Build,
    inputs: Mapping[str, Any],
    repeat: int,
    warmup: int,
    settings: Mapping[str, Setting | Recording | Build],
    name: str,
) -> Latency:
    """See `Build.latency`. ``inputs`` are checked, by name."""
    for label in (name, *settings):
        if not isinstance(label, str) or printable(label, limit=200) != label:
            raise ArgumentError(
                f"A setting is called {label!r:.200}.", "Give a short text that can be printed."
            )
    title = f"Latency of {build.recording.title}"
    with show_progress(title, enabled=build.progress) as shown:
        builds = {name: build}
        for number, (label, setting) in enumerate(settings.items()):
            shown.update(f"building {label!r}", number, len(settings))
            if label in builds:
                raise ArgumentError(
                    f"Two settings are called {label!r}.",
                    "Give each a name of its own; name= is that of this build.",
                )
            builds[label] = _built(build, label, setting)
        shown.update("TVM compiles the module alone", 0, None)
        candidates = [_tvm(build, inputs)]
        candidates += [_byoc(one, inputs, label) for label, one in builds.items()]
        candidates += _runtime(build, inputs)
        return measure(
            candidates,
            repeat,
            warmup,
            tell=lambda done, total: shown.update("measuring", done, total),
        )


def _built(build: Build, label: str, setting: Setting | Recording | Build) -> Build:
    """One more partition of the same module, built in the same way."""
    from byocviz.building.build import build as make
    from byocviz.building.built import Build
    from byocviz.flow.record import record

    if isinstance(setting, (Build, Recording)):
        recording = setting.recording if isinstance(setting, Build) else setting
        mine = build.recording.module("import")
        if not build.runnable.same(mine, recording.module("import")):
            raise ArgumentError(
                f"The setting {label!r} is of another module.",
                "Give a recording of the same module, or the keywords of byocviz.record.",
            )
        if isinstance(setting, Build):
            return setting
    elif isinstance(setting, Mapping):
        try:
            live = build.recording.__dict__
            recording = record(
                build.recording.module("import"),
                live["backend_used"],
                params=live["params"],
                entry=build.recording.entry,
                progress=False,
                **{"title": label, **setting},
            )
        except TypeError as error:
            raise ArgumentError(
                f"The setting {label!r} is not one that record takes: {error}",
                'Give its keywords, as {"prepare": False, "prune": False}.',
            ) from error
    else:
        raise ArgumentError(
            f"The setting {label!r} is a {type(setting).__name__}.",
            "Give the keywords of byocviz.record, a Recording, or a Build.",
        )
    plan = build.plan
    return make(
        recording,
        runtime=plan.choice.runtime if plan.choice else "auto",
        target=plan.target,
        options=plan.options,
        codegen=plan.codegen,
        time_limit=plan.time_limit,
        isolate=plan.isolate,
        cache=plan.cache or False,
        progress=False,
    )


def _tvm(build: Build, inputs: Mapping[str, Any]) -> Candidate:
    variant = Variant("TVM alone", "tvm", subgraphs=0, boundary_bytes=0, coverage_ops=0.0)
    variant.note = "compiled by TVM's default pipeline, untuned"
    try:
        alone = build.alone()
        taken = {name: inputs[name] for name in alone.names}
        return Candidate(variant, alone.prepare(taken), first=lambda: alone.first.seconds)
    except (ByocvizError, StepMissing) as error:
        variant.cannot = error.message[:300]
        return Candidate(variant)


def _byoc(build: Build, inputs: Mapping[str, Any], setting: str) -> Candidate:
    step, runnable = build.step, build.runnable
    placed = runnable.place({name: inputs[name] for name in runnable.names})
    variant = Variant(
        f"TVM + {build.plan.title}",
        "byoc",
        setting,
        subgraphs=len(step.subgraphs),
        boundary_bytes=boundary_bytes(step),
        coverage_ops=step.profile.coverage_ops,
    )
    if build.info.cannot_run:
        variant.cannot = build.info.cannot_run[:300]
        return Candidate(variant)
    watch = runnable.stopwatch
    return Candidate(
        variant,
        lambda: build.timed(placed),
        watch.over if runnable.built else None,
        lambda: build.first_seconds,
    )


def _runtime(build: Build, inputs: Mapping[str, Any]) -> list[Candidate]:
    """The runtime alone on the whole model; where it cannot, also on the part that it takes."""
    plan = build.plan
    if plan.choice is None:
        return []  # a native codegen's runtime cannot be called by itself
    variant = Variant(f"{plan.title} alone", "runtime", subgraphs=1, coverage_ops=1.0)
    if build.info.cannot_run:
        variant.cannot = build.info.cannot_run[:300]
        return [Candidate(variant)]
    whole = build.whole()
    if whole.engine is not None:
        variant.note = whole.what
        values = [inputs[name] for name in whole.names]
        run = calling(whole.engine, build.runnable.device, engine_inputs(whole.engine, values))
        return [Candidate(variant, whole.first.watched(run), first=lambda: whole.first.seconds)]
    variant.cannot, variant.note = whole.cannot, whole.detail[:300]
    variant.subgraphs = variant.coverage_ops = None
    return [Candidate(variant), *_part(build, inputs)]


def _part(build: Build, inputs: Mapping[str, Any]) -> list[Candidate]:
    """All engines of the build one after the other, each on what it got in one run."""
    runs = part_runs(build, inputs)
    if not runs:
        return []
    profile = build.step.profile
    variant = Variant(
        f"{build.plan.title} alone on its part",
        "part",
        subgraphs=len(build.step.subgraphs),
        coverage_ops=profile.coverage_ops,
        note=f"{profile.offloaded_ops:,} of {profile.total:,} operators; not the whole model",
    )
    # Its engines ran before, in the module: there is no first run to tell of.
    return [Candidate(variant, lambda: [run() for run in runs], first=lambda: None)]


def part_runs(build: Build, inputs: Mapping[str, Any]) -> list[Run]:
    """A run of each engine by itself, once a call that one run of the module makes of it."""
    runnable = build.runnable
    captured = {symbol: Capture(engine) for symbol, engine in build.engines.items()}
    vm = build.machine_with(captured)
    placed = runnable.place({name: inputs[name] for name in runnable.names})
    build.warm(placed)
    runnable.call(placed, vm)
    return [
        calling(capture.engine, runnable.device, given)
        for capture in captured.values()
        for given, _ in capture.calls
    ]
