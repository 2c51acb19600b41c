"""What a recording says of itself: when, of what and with what it was made."""

from __future__ import annotations

import platform
import sys
from collections import Counter
from datetime import datetime, timezone

from byocviz.backends import Backend, Rule
from byocviz.recording import Recording
from byocviz.recording.schema import BackendInfo, PrunePolicy, RuleInfo
from byocviz.version import __version__


def describe(
    recording: Recording,
    title: str,
    backend: Backend,
    rules: list[Rule],
    policy: PrunePolicy | None,
) -> None:
    """Write down what the recording was made of, when and with what."""
    stamp(recording, title)
    recording.backend = backend_info(backend, rules, policy, recording)


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


def backend_info(
    backend: Backend, rules: list[Rule], policy: PrunePolicy | None, recording: Recording
) -> BackendInfo:
    """The backend with its rules, and how often each was used by a recording of Relax."""
    from byocviz.flow.relax.reasons import names_in

    matches = composites(recording)
    infos: dict[str, RuleInfo] = {}
    for rule in rules:
        info = infos.setdefault(rule.name, RuleInfo(rule.name, enabled=rule.enabled))
        info.ops = sorted({*info.ops, *names_in(rule.fusion.pattern)})
        info.check = info.check or rule.fusion.check is not None
        info.matches = matches[rule.name]
    return BackendInfo(backend.name, list(infos.values()), policy or PrunePolicy(), told(backend))


def composites(recording: Recording) -> Counter[str]:
    """How often each rule's pattern was found, by its name."""
    return Counter(
        node.label
        for step in recording.steps
        if step.name == "composite"
        for function in step.functions
        if function.graph is not None
        for node in function.graph.nodes
        if node.kind == "composite"
    )


def told(backend: Backend) -> dict[str, str]:
    """The backend's options, for people: whether its rules take only what lowers is one."""
    return {**backend.options, **({"rules take": "only what lowers"} if backend.lowers else {})}
