"""Relax, for the explorer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from byocviz import backends
from byocviz.explorer.dialects import Matched, answered
from byocviz.recording.schema import STEPS, PrunePolicy

if TYPE_CHECKING:
    from byocviz.backends import Backend
    from byocviz.explorer.settings import Resolved, Settings
    from byocviz.recording import Recording
    from byocviz.recording.schema import Subgraph

_ALL = PrunePolicy(min_ops=2**62)
"""A policy that everything falls under."""


class Relax:
    """See `Dialect`."""

    ir = "relax"
    header = "import tvm\nfrom tvm import relax\nfrom tvm.relax.dpl import *"
    begin = (
        'conv = is_op("relax.nn.conv2d")(wildcard(), wildcard())\nis_op("relax.nn.relu")(conv)\n'
    )

    def check(self, module: Any, entry: str) -> None:
        from byocviz.flow.arguments import check_entry

        check_entry(module, entry)

    def rewrites(self) -> Mapping[str, str]:
        from byocviz.flow.relax.prepare import REWRITES

        return {spec.name: spec.text for spec in REWRITES}

    def switched(self, settings: Settings, params: Any) -> dict[str, bool]:
        given = settings.prepare if isinstance(settings.prepare, Mapping) else {}
        other = settings.prepare if isinstance(settings.prepare, bool) else True
        return {name: given.get(name, other) for name in self.rewrites()}

    def backend(self, given: str | Backend) -> Backend:
        return backends.get(given)

    def lowerable(self, backend: Backend) -> Backend:
        return backend.lowerable()

    def backends(self) -> list[str]:
        return backends.names()

    def rules(self, backend: Backend, switches: Mapping[str, bool] | None) -> list[Any]:
        return backend.rules(switches)

    def pattern(self) -> type:
        from tvm.relax import dpl

        return dpl.DFPattern  # type: ignore[no-any-return]

    def walk(self, given: Any, settings: Settings, resolved: Resolved, tell: Any) -> Any:
        from byocviz.flow.relax.walk import Walk

        return Walk(
            given.module,
            resolved.backend,
            resolved.rules,
            entry=given.entry,
            params=given.params,
            prepare=settings.prepare,
            policy=resolved.policy,
            tell=tell,
        )

    def adopt(self, walk: Any, given: Any, settings: Settings, resolved: Resolved) -> None:
        state, at = walk.state, len(walk.data.steps) - STEPS.index("composite")
        state.policy = resolved.policy
        state.prepare = bool(settings.prepare)
        state.rewrites = dict(settings.prepare) if isinstance(settings.prepare, Mapping) else {}
        if at <= 0:
            state.backend, state.rules = resolved.backend, resolved.rules
        if at == 0 and settings.held:
            from byocviz.explorer.held import with_held

            state.backend, state.rules = with_held(resolved, walk, settings.held, given.entry)

    def describe(self, recording: Recording, title: str, resolved: Resolved) -> None:
        from byocviz.flow.describe import describe

        describe(recording, title, resolved.backend, resolved.rules, resolved.policy)

    def blockers(self, walk: Any) -> list[Any]:
        from byocviz.flow.relax.whatif import what_if
        from byocviz.progress import progress

        with progress(f"What if, {walk.data.title}") as shown:
            return what_if(walk, shown.update)

    def prunable(self, module: Any, subgraphs: list[Subgraph], backend: str) -> frozenset[str]:
        from byocviz.flow.relax.steps.prune import to_prune

        return frozenset(to_prune(module, subgraphs, _ALL, backend))

    def try_rule(self, module: Any, backend: str, entry: tuple[Any, ...]) -> Matched:
        from tvm import relax

        from byocviz.flow.relax.tag import tag_of

        found = Matched([], [])
        name, pattern, *rest = entry
        own = rest[1] if len(rest) > 1 else None

        def check(context: Any) -> bool:
            calls = [v for v in context.matched_bindings.values() if isinstance(v, relax.Call)]
            said = own is None or answered(own(context))
            where = found.matches if said else found.refused
            where.append(sorted(tag for tag in map(tag_of, calls) if tag >= 0))
            return said

        fusion = relax.transform.FusionPattern(name, pattern, {}, check)
        relax.transform.FuseOpsByPattern([fusion])(module)
        return found

    def native(self, backend: str) -> bool:
        from byocviz.building.codegen import native

        return native(backend)


RELAX = Relax()
