"""`record`: the BYOC flow over one module, written down."""

from __future__ import annotations

import difflib
import importlib.util
import platform
import sys
import warnings
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from byocviz import backends
from byocviz.backends import Backend, Rule
from byocviz.errors import ArgumentError, ByocvizWarning, ModuleError, missing
from byocviz.models._load import weights
from byocviz.models._source import source_of
from byocviz.progress import progress as show_progress
from byocviz.recording import Recording
from byocviz.recording.schema import BackendInfo, PrunePolicy, RuleInfo
from byocviz.version import __version__

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
    try:
        import tvm
    except ImportError as error:
        raise missing("TVM with Relax (apache-tvm)", "relax", "to record a module") from error
    _arguments(rules, prepare, prune, lowerable, title)
    if title is None:
        title = Path(mod).stem if isinstance(mod, (str, Path)) else ""
    module = _module(mod, tvm)
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
        from tvm import relax

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

    _check(module, entry, relax)
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


def describe(
    recording: Recording,
    title: str,
    backend: Backend,
    rules: list[Rule],
    policy: PrunePolicy | None,
) -> None:
    """Write down what the recording was made of, when and with what."""
    stamp(recording, title)
    recording.backend = _backend_info(backend, rules, policy, recording)


def stamp(recording: Recording, title: str) -> None:
    """Say when and with what it was made."""
    import tvm

    recording.title = title
    recording.created = datetime.now(timezone.utc).isoformat(timespec="seconds")
    recording.made_with = {
        "byocviz": __version__,
        "tvm": str(tvm.__version__),
        "python": platform.python_version(),
        "platform": f"{sys.platform} {platform.machine()}",
    }


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


def is_relay(module: Any) -> bool:
    """Whether the module's functions are written in Relay, which TVM has up to 0.19."""
    try:
        from tvm import relay
    except ImportError:
        return False
    return any(isinstance(function, relay.Function) for function in module.functions.values())


def _arguments(rules: Any, prepare: Any, prune: Any, lowerable: Any, title: Any) -> None:
    """Refuse arguments of a kind that would silently mean something else."""
    if isinstance(rules, Mapping):
        fine = all(isinstance(n, str) and isinstance(on, bool) for n, on in rules.items())
    else:
        fine = rules is None or isinstance(rules, (str, list, tuple, set, frozenset))
        fine = fine and all(isinstance(name, str) for name in rules or ())
    if not fine:
        raise ArgumentError(
            f"rules is {rules!r}.",
            'Give names with True or False, as rules={"nn.softmax": False}, or a list of the names '
            "of those that are to be on.",
        )
    if not isinstance(prepare, bool) and not (
        isinstance(prepare, Mapping)
        and all(isinstance(n, str) and isinstance(on, bool) for n, on in prepare.items())
    ):
        raise ArgumentError(
            f"prepare is {prepare!r}.",
            'Give True, False, or names with True or False, as prepare={"clip": False}.',
        )
    if isinstance(prune, PrunePolicy):
        figures = {"min_ops": prune.min_ops, "min_macs": prune.min_macs}
        for name, figure in figures.items():
            if not isinstance(figure, int) or isinstance(figure, bool) or not 0 <= figure < 2**63:
                raise ArgumentError(
                    f"PrunePolicy.{name} is {figure!r}.", "Give a whole number, 0 or more."
                )
        if not isinstance(prune.require_macs, bool):
            raise ArgumentError(
                f"PrunePolicy.require_macs is {prune.require_macs!r}.", "Give True or False."
            )
    elif not isinstance(prune, bool):
        raise ArgumentError(f"prune is {prune!r}.", _policy_for(prune))
    if not isinstance(lowerable, bool):
        raise ArgumentError(f"lowerable is {lowerable!r}.", "Give True or False.")
    if title is not None and not isinstance(title, str):
        raise ArgumentError(f"title is {title!r}.", "Give a string.")


def _policy_for(given: Any) -> str:
    """What to give in place of what is no policy; of a dictionary, the same as one."""
    example, ending = "require_macs=True, min_ops=3", ""
    if isinstance(given, Mapping) and all(isinstance(name, str) for name in given):
        known = PrunePolicy.__struct_fields__
        near = {name: difflib.get_close_matches(name, known, n=1) for name in given}
        if given and all(near.values()):
            example = ", ".join(f"{near[name][0]}={value!r}" for name, value in given.items())
        ending = f" It takes {', '.join(known)}."
    return f"Give True, False, or byocviz.PrunePolicy({example}).{ending}"


def _module(mod: Any, tvm: Any) -> Any:
    if isinstance(mod, tvm.IRModule):
        return mod
    from byocviz import models

    return models.load(mod)


def _check(module: Any, entry: str, relax: Any) -> None:
    """Refuse what cannot be walked, with the mend."""
    functions = {v.name_hint: f for v, f in module.functions.items()}
    names = sorted(n for n, f in functions.items() if isinstance(f, relax.Function))
    if not names:
        raise ModuleError(
            f"The module has no Relax function; it has {len(functions)} others.",
            "byocviz records Relax modules: import the model by byocviz.models, or give the "
            "module from before it was lowered to TIR.",
        )
    if entry not in functions:
        raise ModuleError(
            f"The module has no function {entry!r}.",
            f"Its Relax functions: {', '.join(names)}. Name one: record(mod, entry={names[0]!r}).",
        )
    if entry not in names:
        raise ModuleError(
            f"The entry {entry!r} is a {type(functions[entry]).__name__}, not a Relax function.",
            f"Its Relax functions: {', '.join(names)}.",
        )


def _backend_info(
    backend: Backend, rules: list[Rule], policy: PrunePolicy | None, recording: Recording
) -> BackendInfo:
    from byocviz.flow.relax.reasons import names_in

    matches: Counter[str] = Counter()
    step = next((s for s in recording.steps if s.name == "composite"), None)
    if step is not None:
        for function in step.functions:
            if function.graph is not None:
                matches.update(n.label for n in function.graph.nodes if n.kind == "composite")
    infos: dict[str, RuleInfo] = {}
    for rule in rules:
        info = infos.setdefault(rule.name, RuleInfo(rule.name, enabled=rule.enabled))
        info.ops = sorted({*info.ops, *names_in(rule.fusion.pattern)})
        info.check = info.check or rule.fusion.check is not None
        info.matches = matches[rule.name]
    return BackendInfo(backend.name, list(infos.values()), policy or PrunePolicy(), told(backend))


def told(backend: Backend) -> dict[str, str]:
    """The backend's options, for people: whether its rules take only what lowers is one."""
    return {**backend.options, **({"rules take": "only what lowers"} if backend.lowers else {})}
