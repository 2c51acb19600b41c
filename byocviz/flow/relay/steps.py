"""The steps of the flow on Relay: what each calls, and what that is in TVM."""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import tvm
from tvm import relay

from byocviz.backends import Backend, relay_table
from byocviz.backends.relay_table import RelayRule
from byocviz.errors import ByocvizError
from byocviz.flow.pruning import named, pruned
from byocviz.flow.relay import cycles
from byocviz.flow.relay.checks import Verdicts, logged
from byocviz.flow.relay.compat import functions_of, typed
from byocviz.flow.relay.prepare import REWRITES, switched_on
from byocviz.recording.schema import PrunePolicy, Rewrite, Subgraph

STEPS = ("import", "prepare", "composite", "annotate", "merge", "partition", "prune")


@dataclass
class State:
    """One walk. ``module`` is the module of the last step that ran."""

    module: tvm.IRModule
    entry: str
    backend: Backend
    rules: list[RelayRule]
    params: Mapping[str, Any] | None
    prepare: bool | Mapping[str, bool]
    policy: PrunePolicy | None
    """None: nothing is pruned."""
    own_policy: bool
    """Whether ``policy`` is the backend's own rather than one that was given."""
    before_rewrite: Callable[[str], None]
    after_rewrite: Callable[[tvm.IRModule, Rewrite], tvm.IRModule]
    present: Callable[[], Container[str]]
    """The names of the module's operators, as it is now."""
    unbound: int = 0
    """Parameters that are weights without values."""
    subgraphs: list[Subgraph] = field(default_factory=list)
    """Of the step before."""
    verdicts: Verdicts = field(default_factory=Verdicts)
    why_pruned: dict[str, str] = field(default_factory=dict)
    """What sent a subgraph back to TVM, by its function."""
    tvm_seconds: float = 0.0

    @contextmanager
    def in_tvm(self) -> Iterator[None]:
        """Count what runs inside as TVM's time."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.tvm_seconds += time.perf_counter() - start

    @property
    def tensorrt(self) -> bool:
        return self.backend.name == "tensorrt" and bool(self.backend.options)

    def target(self) -> Any:
        """What TVM's TensorRT rules ask for their options."""
        if not self.tensorrt:
            return nullcontext()
        return relay_table.tensorrt_target(**self.backend.options)

    @property
    def off(self) -> list[str]:
        return sorted({rule.name for rule in self.rules if not rule.enabled})

    def within_target(self, call: str) -> str:
        """A call as text, within the target where it needs one."""
        if not self.tensorrt:
            return call
        options = ", ".join(f"{name}={value!r}" for name, value in self.backend.options.items())
        return (
            "from byocviz.backends import relay_table\n"
            f"with relay_table.tensorrt_target({options}):\n    " + call.replace("\n", "\n    ")
        )


@dataclass
class Outcome:
    """What a step gives."""

    module: tvm.IRModule
    call: str
    origin: str = "tvm"
    note: str = ""
    outlined: bool = False
    """Draw external functions by themselves rather than in place."""
    rewrites: list[Rewrite] = field(default_factory=list)


_INFER = "mod = relay.transform.InferType()(mod)"


def import_(state: State) -> Outcome:
    return Outcome(
        state.module,
        f"# mod: the module that was given to byocviz.record\nfrom tvm import relay\n{_INFER}",
        "byocviz",
        "The module as it was given, its types inferred."
        + (
            f" {state.unbound} of its parameters are weights of convolutions or dense layers and "
            "have no values: those that its importer returned are given by record(mod, params=...)."
            if state.unbound
            else ""
        ),
    )


def prepare(state: State) -> Outcome:
    rewrites, calls = [], []
    for spec in REWRITES:
        on = switched_on(spec, state.backend.name, state.prepare, state.params)
        call = spec.call.replace("{entry!r}", repr(state.entry))
        rewrite = Rewrite(spec.name, spec.text, call=call, origin="tvm", enabled=on)
        rewrites.append(rewrite)
        if not on:
            continue
        state.before_rewrite(spec.name)
        start = time.perf_counter()
        try:
            with state.in_tvm():
                module = spec.run(state.module, state.entry, state.params)
        except ByocvizError:
            raise
        except Exception as error:
            # One rewrite that fails must not cost the recording: the module stays as it was.
            rewrite.left = {f"failed: {type(error).__name__}: {str(error)[-300:]}": 1}
            continue
        rewrite.seconds = time.perf_counter() - start
        state.module = state.after_rewrite(module, rewrite)
        if rewrite.count:
            calls.append(rewrite.call)
    if not any(rewrite.enabled for rewrite in rewrites):
        return Outcome(
            state.module,
            "# switched off",
            "byocviz",
            "Switched off: the module goes on as it came.",
            rewrites=rewrites,
        )
    return Outcome(
        state.module,
        "\n".join(calls) or "# found nothing to rewrite",
        "tvm",
        "What TVM's partition_for_tensorrt runs before MergeComposite"
        + ("." if state.tensorrt else ", but for what is TensorRT's alone."),
        rewrites=rewrites,
    )


def composite(state: State) -> Outcome:
    checks = [rule.check for rule in state.rules]
    with logged(checks) as lines, state.target():
        patterns = state.verdicts.patterns(state.rules, state.present(), lines)
        with state.in_tvm():
            module = typed(relay.transform.MergeComposite(patterns)(state.module))
    table = _table(state)
    call = state.within_target(f"mod = relay.transform.MergeComposite(patterns)(mod)\n{_INFER}")
    return Outcome(
        module,
        f"from tvm import relay\n{table}\n{call}",
        note="Each match of a pattern becomes a composite function (attribute Composite), called "
        "where it stood.",
    )


def _table(state: State) -> str:
    """Python text that makes ``patterns`` as this walk uses them."""
    lines = [
        state.backend.table
        or "# backend: the byocviz.Backend that was given"
        + (", .lowerable()\n" if state.backend.lowers else "\n")
        + "from byocviz.backends import relay_table\npatterns = relay_table.table(backend)"
    ]
    if state.off:
        lines.append(f"off = {set(state.off)!r}")
        lines.append("patterns = [p for p in patterns if p[0] not in off]")
    return "\n".join(lines)


def annotate(state: State) -> Outcome:
    name = state.backend.name
    own = [rule for rule in state.rules if rule.pattern is None]
    with logged(rule.check for rule in own) as lines:
        checks = state.verdicts.operators(own, lines)
        with relay_table.operator_rules(name, checks), state.target(), state.in_tvm():
            module = typed(relay.transform.AnnotateTarget(name)(state.module))
    call = f"mod = relay.transform.AnnotateTarget({name!r})(mod)\n{_INFER}"
    off = [rule.name for rule in own if not rule.enabled]
    if off or (own and (state.backend.lowers or not state.backend.source.startswith("tvm"))):
        known = state.backend.source == "byocviz" or state.backend.source.startswith("tvm")
        source = f"relay_table.get({name!r})" if known else "backend"
        source += ".lowerable()" if state.backend.lowers else ""
        made = f"relay_table.operator_checks({source}{f', {set(off)!r}' if off else ''})"
        call = (
            "from byocviz.backends import relay_table\n"
            f"with relay_table.operator_rules({name!r}, {made}):\n    "
            + call.replace("\n", "\n    ")
        )
    return Outcome(
        module,
        f"from tvm import relay\n{call}",
        note="Calls of composite functions, and operators that an operator rule takes, are put "
        f"between compiler_begin and compiler_end for {name}; all else is marked default.",
    )


def merge(state: State) -> Outcome:
    with state.in_tvm():
        module = typed(relay.transform.MergeCompilerRegions()(state.module))
    return Outcome(
        module,
        f"from tvm import relay\nmod = relay.transform.MergeCompilerRegions()(mod)\n{_INFER}",
        note="Regions of one compiler that feed each other become one, where no cycle comes of it.",
    )


def partition(state: State) -> Outcome:
    cycles.check(state.module, state.rules)
    with state.in_tvm():
        module = relay.transform.PartitionGraph()(state.module)  # it infers types at its end
    return Outcome(
        module,
        "from tvm import relay\nmod = relay.transform.PartitionGraph()(mod)",
        note="Each region becomes a function of its own, with the attribute Compiler.",
        outlined=True,
    )


def prune(state: State) -> Outcome:
    policy = state.policy
    if policy is None:
        return Outcome(state.module, "# switched off", "byocviz", "Switched off.", outlined=True)
    if state.tensorrt and state.own_policy:
        return _prune_tensorrt(state)
    going = []
    for subgraph in state.subgraphs:
        cause = pruned(subgraph, policy, state.backend.name)
        if cause:
            going.append(subgraph.function)
            state.why_pruned[subgraph.function] = cause
    going = sorted(set(going))
    module = state.module
    if going:
        with state.in_tvm():
            module = _inline(module, going)
    said = named(policy)
    return Outcome(
        module,
        "from tvm import relay\n"
        f"going = [mod.get_global_var(name) for name in {going!r}]\n"
        f"mod = relay.transform.InlineCompilerFunctionsBoundTo(going)(mod)\n{_INFER}",
        "byocviz",
        f"Subgraphs without at least {said} go back to TVM." if said else "No threshold set.",
        outlined=True,
    )


def _inline(module: tvm.IRModule, names: list[str]) -> tvm.IRModule:
    going = [module.get_global_var(name) for name in names]
    return typed(relay.transform.InlineCompilerFunctionsBoundTo(going)(module))


def _prune_tensorrt(state: State) -> Outcome:
    """TVM's own ``prune_tensorrt_subgraphs``."""
    from tvm.relay.op.contrib import tensorrt

    before = functions_of(state.module)
    with logged([tensorrt.prune_tensorrt_subgraphs]) as lines, state.target():
        with state.in_tvm():
            module = typed(tensorrt.prune_tensorrt_subgraphs(state.module))
        for name in before.keys() - functions_of(module).keys():
            lines.clear()
            tensorrt.is_valid_subgraph(before[name].params, before[name].body)
            state.why_pruned[name] = "; ".join(lines).replace("tensorrt: ", "")
    call = state.within_target(f"mod = prune_tensorrt_subgraphs(mod)\n{_INFER}")
    return Outcome(
        module,
        "from tvm import relay\n"
        f"from tvm.relay.op.contrib.tensorrt import prune_tensorrt_subgraphs\n{call}",
        note="TVM's own: a subgraph goes back where TensorRT cannot take it as a whole"
        + (
            ", or nothing in it is compute-intensive (remove_no_mac_subgraphs: a convolution, a "
            "matrix product or a reduction)."
            if state.backend.options.get("remove_no_mac_subgraphs") == "True"
            else "."
        ),
        outlined=True,
    )


RUN: dict[str, Callable[[State], Outcome]] = {
    "import": import_,
    "prepare": prepare,
    "composite": composite,
    "annotate": annotate,
    "merge": merge,
    "partition": partition,
    "prune": prune,
}
"""By step, in order."""
