"""Relay, for the explorer. TVM has it up to 0.19."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from byocviz.backends import relay_table
from byocviz.explorer.dialects import Matched, answered
from byocviz.recording.schema import STEPS, PrunePolicy

if TYPE_CHECKING:
    from byocviz.backends import Backend
    from byocviz.explorer.settings import Resolved, Settings
    from byocviz.recording import Recording
    from byocviz.recording.schema import Subgraph


_log = logging.getLogger(__name__)


class Relay:
    """See `Dialect`."""

    ir = "relay"
    header = "import tvm\nfrom tvm import relay\nfrom tvm.relay.dataflow_pattern import *"
    begin = 'conv = is_op("nn.conv2d")(wildcard(), wildcard())\nis_op("nn.relu")(conv)\n'

    def check(self, module: Any, entry: str) -> None:
        from byocviz.flow.relay.record import check_entry

        check_entry(module, entry)

    def rewrites(self) -> Mapping[str, str]:
        from byocviz.flow.relay.prepare import REWRITES

        return {spec.name: spec.text for spec in REWRITES}

    def switched(self, settings: Settings, params: Any) -> dict[str, bool]:
        from byocviz.flow.relay.prepare import REWRITES, switched_on

        given = settings.backend
        name = given if isinstance(given, str) else given.name
        return {spec.name: switched_on(spec, name, settings.prepare, params) for spec in REWRITES}

    def backend(self, given: str | Backend) -> Backend:
        return relay_table.get(given)

    def lowerable(self, backend: Backend) -> Backend:
        return relay_table.lowerable(backend)

    def backends(self) -> list[str]:
        return relay_table.names()

    def rules(self, backend: Backend, switches: Mapping[str, bool] | None) -> list[Any]:
        return relay_table.rules(backend, switches)

    def pattern(self) -> type:
        from tvm.relay.dataflow_pattern import DFPattern

        return DFPattern  # type: ignore[no-any-return]

    def walk(self, given: Any, settings: Settings, resolved: Resolved, tell: Any) -> Any:
        from byocviz.flow.relay.walk import Walk

        return Walk(
            given.module,
            resolved.backend,
            resolved.rules,
            entry=given.entry,
            params=given.params,
            prepare=settings.prepare,
            policy=resolved.policy,
            own_policy=not isinstance(settings.prune, PrunePolicy),
            tell=tell,
        )

    def adopt(self, walk: Any, given: Any, settings: Settings, resolved: Resolved) -> None:
        state, at = walk.state, len(walk.data.steps) - STEPS.index("composite")
        state.policy = resolved.policy
        state.own_policy = not isinstance(settings.prune, PrunePolicy)
        state.prepare = settings.prepare
        if at <= 0:
            state.backend, state.rules = resolved.backend, resolved.rules
        if at == 0 and settings.held:
            state.rules = _held_back(resolved.rules, walk, settings.held)

    def describe(self, recording: Recording, title: str, resolved: Resolved) -> None:
        from byocviz.flow.describe import stamp
        from byocviz.flow.relay.record import backend_info

        stamp(recording, title)
        recording.backend = backend_info(
            resolved.backend, resolved.rules, resolved.policy, recording
        )

    def blockers(self, walk: Any) -> list[Any]:
        from byocviz.flow.relay.whatif import what_if
        from byocviz.progress import progress

        with progress(f"What if, {walk.data.title}") as shown:
            return what_if(walk, shown.update)

    def prunable(self, module: Any, subgraphs: list[Subgraph], backend: str) -> frozenset[str]:
        return frozenset(subgraph.function for subgraph in subgraphs)

    def try_rule(self, module: Any, backend: str, entry: tuple[Any, ...]) -> Matched:
        from tvm import relay

        from byocviz.flow.relay.checks import root_tag

        found = Matched([], [])
        name, pattern, *rest = entry
        own = rest[0] if rest else None

        def check(expr: Any) -> bool:
            said = own is None or answered(own(expr))
            if not said:
                found.refused.append([root_tag(expr)])
            return said

        typed = relay.transform.InferType()(module)
        made = relay.transform.MergeComposite([(name, pattern, check)])(typed)
        found.matches.extend(_composites(made, name))
        return found

    def native(self, backend: str) -> bool:
        import tvm

        return tvm.get_global_func(f"relay.ext.{backend}", allow_missing=True) is not None


def _composites(module: Any, name: str) -> list[list[int]]:
    """The numbers of the calls in each composite function of that name."""
    from tvm import relay

    from byocviz.flow.relay.compat import composite_of, functions_of, key_of, tag_of

    found: dict[int, list[int]] = {}

    def visit(expr: Any) -> None:
        if not isinstance(expr, relay.Call) or not isinstance(expr.op, relay.Function):
            return
        if composite_of(expr.op) == name:
            inside: list[int] = []
            relay.analysis.post_order_visit(
                expr.op.body,
                lambda one: inside.append(tag_of(one)) if isinstance(one, relay.Call) else None,
            )
            found[key_of(expr)] = sorted(tag for tag in inside if tag >= 0)

    for function in functions_of(module).values():
        relay.analysis.post_order_visit(function, visit)
    return list(found.values())


def _held_back(rules: list[Any], walk: Any, ids: Any) -> list[Any]:
    """The same rules, which take no match that ends in one of these operators or after one.

    That is all matches that hold one: what a match ends in depends on all the rest of it.
    """
    from byocviz.explorer.held import living
    from byocviz.explorer.hold import HELD, downstream
    from byocviz.flow.relay.checks import logged, root_tag

    stay = downstream(walk.wiring, living(walk.data.ops, ids))

    def guarded(check: Any) -> Any:
        def ask(expr: Any) -> bool:
            if root_tag(expr) in stay:
                _log.info("%s", HELD)
                return False
            if check is None:
                return True
            # Whoever listens listens to this module's log: what the check says goes there.
            with logged([check]) as said:
                answer = bool(check(expr))
            for line in said:
                _log.info("%s", line)
            return answer

        return ask

    return [replace(rule, check=guarded(rule.check)) for rule in rules]


RELAY = Relay()
