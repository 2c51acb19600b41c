"""`byocviz.record` for a Relay module."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from byocviz.backends import Backend, relay_table
from byocviz.errors import ModuleError
from byocviz.flow.describe import composites, stamp, told
from byocviz.flow.relay.compat import attribute, functions_of
from byocviz.flow.relay.prepare import rewrite
from byocviz.flow.relay.reasons import names_in
from byocviz.flow.relay.walk import Walk
from byocviz.progress import progress as show_progress
from byocviz.recording import Recording
from byocviz.recording.schema import BackendInfo, PrunePolicy, RuleInfo


def record_relay(
    module: Any,
    backend: str | Backend,
    *,
    params: Any,
    entry: str,
    rules: Any,
    prepare: bool | Mapping[str, bool],
    prune: bool | PrunePolicy,
    lowerable: bool,
    verify: bool,
    inputs: Any,
    title: str,
    progress: bool | None,
) -> Recording:
    """Walk a Relay module through every step; the arguments are those of `byocviz.record`."""
    check_entry(module, entry)
    for name in prepare if isinstance(prepare, Mapping) else ():
        rewrite(name)  # raises where there is none
    chosen = relay_table.get(backend)
    switched = relay_table.rules(chosen, rules)
    if lowerable:
        chosen = relay_table.lowerable(chosen)
        switched = relay_table.rules(chosen, rules)
    own = not isinstance(prune, PrunePolicy)
    policy = prune if isinstance(prune, PrunePolicy) else chosen.prune if prune else None
    with show_progress(f"Recording {title}", enabled=progress) as shown:
        walk = Walk(
            module,
            chosen,
            switched,
            entry=entry,
            params=params,
            prepare=prepare,
            policy=policy,
            own_policy=own,
            tell=lambda text, done, total: shown.update(text, done, total),
        )
        recording = walk.run()
        stamp(recording, title)
        recording.backend = backend_info(chosen, switched, policy, recording)
        if verify:
            from byocviz.flow.relay.verify import verify_steps

            verify_steps(walk, params, inputs, shown.update)

    def blockers() -> Any:
        from byocviz.flow.relay.whatif import what_if

        with show_progress(f"What if, {recording.title}", enabled=progress) as shown:
            return what_if(walk, shown.update)

    recording._live = blockers
    recording.__dict__.update(modules=walk.modules, backend_used=chosen, params=params)
    return recording


def check_entry(module: Any, entry: str) -> None:
    """Raises `ModuleError` where the module has no function of that name."""
    functions = functions_of(module)
    if entry not in functions:
        raise ModuleError(
            f"The module has no function {entry!r}.",
            f"Its Relay functions: {', '.join(sorted(functions))}. Name one: "
            f"record(mod, entry={min(functions)!r}).",
        )
    for name in ("Compiler", "Composite"):
        if attribute(functions[entry], name):
            raise ModuleError(
                f"The entry {entry!r} has the attribute {name}, which makes it a part of another "
                "function's partition.",
                "Name the function that calls it (record(mod, entry=...)), or take it off.",
            )


def backend_info(
    backend: Backend,
    rules: list[relay_table.RelayRule],
    policy: PrunePolicy | None,
    recording: Recording,
) -> BackendInfo:
    """The backend with its rules, and how often each was used by a recording of Relay."""
    matches = composites(recording)
    taken: Counter[str] = Counter()
    for step in recording.steps:
        if step.name == "annotate":
            taken.update(
                recording.ops[i].name
                for i, place in step.places.items()
                if place.on == backend.name and not place.composite
            )
    infos: dict[str, RuleInfo] = {}
    for rule in rules:
        info = infos.setdefault(rule.name, RuleInfo(rule.name, enabled=rule.enabled))
        ops = names_in(rule.pattern) if rule.pattern is not None else {rule.op}
        info.ops = sorted({*info.ops, *ops})
        info.check = info.check or rule.check is not None
        if rule.pattern is not None:
            info.matches = matches[rule.name]
        elif rule.enabled:
            info.matches = taken[rule.op]
    return BackendInfo(backend.name, list(infos.values()), policy or PrunePolicy(), told(backend))
