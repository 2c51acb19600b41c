"""`record`: the BYOC flow over one module, written down."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from byocviz import backends
from byocviz.backends import Backend
from byocviz.errors import ByocvizWarning, ModuleError, missing
from byocviz.flow.arguments import check_arguments, check_entry, is_relay, module_of, needs_tvm
from byocviz.flow.describe import describe
from byocviz.models._load import weights
from byocviz.models._source import source_of
from byocviz.progress import progress as show_progress
from byocviz.recording import Recording
from byocviz.recording.schema import PrunePolicy

if TYPE_CHECKING:
    import tvm


def record(
    mod: tvm.IRModule | str | Path | Any,
    backend: str | Backend = "tensorrt",
    *,
    params: Mapping[str, Any] | None = None,
    entry: str = "main",
    rules: Mapping[str, bool] | Collection[str] | None = None,
    prepare: bool | Mapping[str, bool] = True,
    prune: bool | PrunePolicy = True,
    lowerable: bool = False,
    verify: bool = False,
    inputs: Mapping[str, Any] | Sequence[Any] | None = None,
    title: str | None = None,
    progress: bool | None = None,
) -> Recording:
    """Walk a module through every step of the BYOC flow and write down each.

    ``mod`` is an IRModule, of Relax or (where the TVM at hand has it) of Relay, or what
    `byocviz.models.load` takes (an ONNX file, say). It is not changed. ``backend`` is a name or a
    `Backend`; on Relay its rules are those of `byocviz.backends.relay_table`.

    ``params`` are weights to bind, by parameter name; a module whose weights are unbound is taken
    as it is. ``rules`` switches rules of the backend: a mapping of names to True or False, or the
    names of those that are to be on. ``prepare`` switches all rewrites of the prepare step, or
    some by name. ``prune`` is True for the backend's own policy, False, or a `PrunePolicy` that
    stands in its place.

    ``lowerable`` lets a rule take a match only if byocviz can lower it to ONNX with the same
    meaning (`Backend.lowerable`): every subgraph that is shown can be built. False shows the
    backend's own table as it is.

    ``verify`` compiles each step's module for the CPU and runs all on the same ``inputs`` (by
    parameter name or in order; where none are given, seeded ones, and with all seeded boolean
    scalars once True and once False); the largest absolute difference to the imported module
    becomes `Step.max_difference`. What cannot be compiled or run is said in `Step.verify_error`.
    It runs in this process: a module that crashes natively, as an integer division by zero does,
    takes the process with it. ``progress`` shows on stderr what goes on, once
    it takes longer than a second; False: nothing is shown.

    A step that raises inside TVM is recorded with its error, as `Recording.failed`, and the steps
    before it stay; a `ByocvizWarning` says so.

    Raises `ModuleError` for what is no module, a missing entry or inputs that do not fit,
    `BackendError` for an unknown backend or rule, `StepMissing` for an unknown rewrite,
    `ModelError` for a model that cannot be imported.
    """
    needs_tvm("to record a module")
    check_arguments(rules, prepare, prune, lowerable, title)
    if title is None:
        title = Path(mod).stem if isinstance(mod, (str, Path)) else ""
    module = module_of(mod)
    params = weights(mod) if params is None else params
    if is_relay(module):
        from byocviz.flow.relay.record import record_relay

        recording = record_relay(
            module,
            backend,
            params=params,
            entry=entry,
            rules=rules,
            prepare=prepare,
            prune=prune,
            lowerable=lowerable,
            verify=verify,
            inputs=inputs,
            title=title or entry,
            progress=progress,
        )
        _warn_failed(recording)
        return recording
    try:
        from byocviz.flow.relax.prepare import rewrite
        from byocviz.flow.relax.walk import Walk
    except ImportError as error:
        if importlib.util.find_spec("tvm.relay") is not None:
            # A TVM without Relax makes no module of it: there is nothing to install.
            raise ModuleError(
                f"The module has no Relay function; it has {len(module.functions)} others.",
                "Give the module as relay.frontend or tvm.IRModule.from_expr makes it.",
            ) from error
        raise missing("TVM with Relax (apache-tvm)", "relax", "to record a module") from error

    check_entry(module, entry)
    for name in prepare if isinstance(prepare, Mapping) else ():
        rewrite(name)  # raises where there is none
    chosen = backends.get(backend)
    if lowerable:
        chosen = chosen.lowerable()
    switched = chosen.rules(rules)
    policy = prune if isinstance(prune, PrunePolicy) else chosen.prune if prune else None
    with show_progress(f"Recording {title or entry}", enabled=progress) as shown:
        walk = Walk(
            module,
            chosen,
            switched,
            entry=entry,
            params=params,
            prepare=prepare,
            policy=policy,
            tell=lambda text, done, total: shown.update(text, done, total),
        )
        recording = walk.run()
        describe(recording, title or entry, chosen, switched, policy)
        if verify:
            from byocviz.flow.relax.verify_steps import verify_steps

            verify_steps(walk, params, inputs, shown.update)

    hang_on(recording, walk, chosen, params, progress)
    recording.__dict__["source"] = source_of(module)
    _warn_failed(recording)
    return recording


def _warn_failed(recording: Recording) -> None:
    """Say that a step failed: what is asked of the last one would look like an answer."""
    if recording.failed is not None:
        warnings.warn(
            f"Recording {recording.title!r} is not whole.{recording._why_short()} See "
            "`recording.failed`; `recording.last` is the step before it.",
            ByocvizWarning,
            stacklevel=3,  # of whoever called `record`
        )


def hang_on(
    recording: Recording, walk: Any, backend: Backend, params: Any, progress: bool | None
) -> None:
    """Give the recording what it needs of this process, for the blockers and for building; a
    file holds none of it."""

    def blockers() -> Any:
        from byocviz.flow.relax.whatif import what_if

        with show_progress(f"What if, {recording.title}", enabled=progress) as shown:
            return what_if(walk, shown.update)

    recording._live = blockers
    recording.__dict__.update(modules=walk.modules, backend_used=backend, params=params)
