"""Walks a Relay module through the steps and writes down each."""

from __future__ import annotations

import hashlib
import re
import traceback
from collections.abc import Mapping
from typing import Any

import tvm
from tvm import relay

from byocviz.backends import Backend
from byocviz.backends.relay_table import RelayRule
from byocviz.errors import ModuleError
from byocviz.flow.identity import Ids, Wiring, by_tag, lineage, resolve
from byocviz.flow.placing import Sheet
from byocviz.flow.reading import Reading
from byocviz.flow.relay.capture import Printer, capture, name_variables
from byocviz.flow.relay.checks import Verdicts, where
from byocviz.flow.relay.compat import attribute, functions_of, key_of, plain, typed
from byocviz.flow.relay.cycles import RegionCycle
from byocviz.flow.relay.diagnosed import diagnosed
from byocviz.flow.relay.operators import Operators
from byocviz.flow.relay.prepare import bound
from byocviz.flow.relay.reader import read_module
from byocviz.flow.relay.reasons import explain
from byocviz.flow.relay.refused import mend_pruned
from byocviz.flow.relay.scopes import Bodies
from byocviz.flow.relay.steps import RUN, State
from byocviz.flow.relay.tag import Tagger
from byocviz.flow.separation import separations
from byocviz.flow.stepping import Stepping, Tell
from byocviz.recording import Recording
from byocviz.recording.schema import PrunePolicy, Reason, Rewrite, Step, StepError, Weights


class Walk(Stepping):
    """One recording of one Relay module, as it is made."""

    def __init__(
        self,
        module: tvm.IRModule,
        backend: Backend,
        rules: list[RelayRule],
        *,
        entry: str,
        params: Mapping[str, Any] | None,
        prepare: bool | Mapping[str, bool],
        policy: PrunePolicy | None,
        own_policy: bool,
        tell: Tell,
    ) -> None:
        self.boxed = frozenset(
            name
            for name, function in functions_of(module).items()
            if attribute(function, "Composite") or attribute(function, "Compiler")
        )
        self.entry = entry
        self.tell = tell
        self.bodies = Bodies()
        self.tagger = Tagger(self.bodies)
        self.modules: dict[str, tvm.IRModule] = {}
        """Each step's module, by the step's name."""
        self.wiring = Wiring()
        self.readings: list[Reading] = []
        self.ids: Ids = {}
        self.blocks: dict[int, tuple[str, int]] = {}
        self.drawn: tvm.IRModule | None = None
        """The module that ``readings`` and ``ids`` are of."""
        self.reasons: dict[int, Reason] = {}
        self.state = State(
            module,
            entry,
            backend,
            rules,
            params,
            prepare,
            policy,
            own_policy,
            before_rewrite=lambda name: tell(f"prepare: {name}", 1, len(RUN)),
            after_rewrite=self._after_rewrite,
            present=lambda: set(self.wiring.names.values()),
        )
        self.data = Recording(ir="relay", entry=entry)
        self.sheet = Sheet(entry, self.data.ops, {}, self.data.texts)
        self.printer = Printer(self.data.texts)

    # -- the steps

    def _failed(self, error: Exception) -> StepError:
        if self.state.verdicts.interrupt is not None:
            raise self.state.verdicts.interrupt
        return _failure(error, self.state.verdicts)

    def _step(self, name: str, step: Step) -> None:
        if name == "import":
            self._begin()
        outcome = RUN[name](self.state)
        step.call, step.origin, step.note = outcome.call, outcome.origin, outcome.note
        step.rewrites = outcome.rewrites
        module = outcome.module
        self.modules[name] = module
        if name == "prepare":
            self._refresh()
        elif name != "import" and module is not self.drawn:
            self._regrouped(module, name)
        self.drawn = module
        outline = None
        if outcome.outlined:
            outline = lambda: read_module(  # noqa: E731
                module, self.entry, outlined=True, uncalled=self.boxed, bodies=self.bodies
            )
        capture(
            step,
            module,
            self.sheet,
            self.readings,
            self.ids,
            self.printer,
            self.bodies.types,
            outline,
        )
        self.state.module = module
        self.state.subgraphs = step.subgraphs
        self._explain(name, step)
        step.changed = self._changed(step)

    def _begin(self) -> None:
        """Tag the module and write down every operator of it."""
        state = self.state
        with diagnosed() as said:
            try:
                state.module = typed(state.module)
            except Exception as error:
                if not said:
                    raise
                raise ModuleError(
                    f"TVM cannot infer the module's types: {said[0]}",
                    "Mend the module: relay.transform.InferType()(mod) says where. Parameters, and "
                    "the results of functions that others call, need types of their own.",
                ) from error
        state.module = self.tagger.tag(state.module, entry=self.entry, anew=True)
        bound_module = bound(state.module, self.entry, state.params)
        names = set(state.params or ())
        weights = {
            key_of(param)
            for param in state.module[self.entry].params
            if plain(param.name_hint) in names
        }
        self.operators = Operators(weights, self.tagger.sources, self.bodies.types)
        self.sheet.read = self.operators.read
        self._read(state.module)
        name_variables(self.readings, state.module, self.printer)
        self._describe(())
        state.unbound = self._unbound()
        # The weights are the model's, whatever the prepare step makes of them.
        self.data.weights = _digest(bound_module)

    def _unbound(self) -> int:
        """How many of the entry's parameters are the kernel of a convolution, or the like."""
        if self.state.params:
            return 0
        entry = next(reading for reading in self.readings if reading.name == self.entry)
        calls = (call for node, call in entry.calls.items() if entry.names[node] in _WEIGHTED)
        found = {key_of(call.args[1]) for call in calls if isinstance(call.args[1], relay.Var)}
        params = self.bodies.params(self.state.module[self.entry])
        return sum(param.key in found for param in params)

    def _read(self, module: tvm.IRModule) -> None:
        self.readings = read_module(module, self.entry, bodies=self.bodies)
        self.ids = by_tag(self.readings, self.tagger.new)

    def _name(self, reading: Reading, node: int) -> str:
        return reading.names[node]

    def _after_rewrite(self, module: tvm.IRModule, rewrite: Rewrite) -> tvm.IRModule:
        """Find what became of each operator, give the new ones their ids, count the places."""
        before = self.wiring
        was = self.state.module
        rewrite.before = self._alive(before)
        if module.same_as(was) or tvm.ir.structural_equal(module, was, map_free_vars=True):
            rewrite.after = rewrite.before
            return was
        with self.state.in_tvm():
            module = typed(module)
        module = self.tagger.tag(module, entry=self.entry)
        self._read(module)
        name_variables(self.readings, module, self.printer)
        self._describe(self.data.ops, rewrite.name)
        gone, made = lineage(before, self.wiring)
        self._ended(gone, rewrite.name)
        rewrite.after = self._alive(self.wiring)
        rewrite.count = self._places(rewrite.name, gone, made, before)
        return module

    def _places(self, name: str, gone: Any, made: set[int], before: Wiring) -> int:
        """How many places a rewrite changed: calls that went or came, or were fed otherwise."""
        if name == "bind-parameters":
            return sum(
                1
                for param in self.state.module[self.entry].params
                if plain(param.name_hint) in (self.state.params or {})
            )
        now = self.wiring
        fed = sum(before.inputs.get(i) != now.inputs.get(i) for i in now.names.keys() - made)
        return max(len(gone) + len(made), fed, 1)

    def _refresh(self) -> None:
        """Bound parameters and folded constants are read by operators that stay."""
        if self.state.module is not self.modules["import"]:
            self.operators.refresh(self.data.ops, self.readings, self.ids)

    def _regrouped(self, module: tvm.IRModule, step: str) -> None:
        """Identity after a pass that only regroups."""
        self.readings = read_module(module, self.entry, uncalled=self.boxed, bodies=self.bodies)
        self.ids, lost = resolve(self.readings, self.wiring, self._name)
        self._made_by(step)
        self._lost(lost, step)

    # -- what is said of a step

    def _explain(self, name: str, step: Step) -> None:
        if name in ("import", "prepare"):
            return
        left = {
            i
            for i, p in step.places.items()
            if p.on == "tvm" and not p.composite and self.data.ops[i].kind == "operator"
        }
        if name == "composite":
            owners = {i: p.composite for i, p in step.places.items() if p.composite}
            state = self.state
            with state.target():
                self.reasons = explain(
                    self.modules["prepare"],
                    state.backend,
                    state.rules,
                    left,
                    state.verdicts,
                    owners,
                )
        step.reasons = {i: self.reasons[i] for i in left if i in self.reasons}
        for identity in left - step.reasons.keys():
            step.reasons[identity] = Reason(
                "not-annotated",
                f"A rule takes it, yet TVM's {name} step left it out of every region.",
                "Look at the module of the step before: recording.module('annotate').",
            )
        if name == "merge":
            self._merged = step
        if name == "partition":
            self._partitioned = step
        if name == "prune" and self.state.policy is not None:
            self._pruned(step, left)
        if name in ("merge", "partition", "prune"):
            step.separations = separations(
                step.subgraphs, step.places, self.data.ops, self.wiring, self.blocks, ()
            )

    def _pruned(self, step: Step, left: set[int]) -> None:
        for subgraph in self._partitioned.subgraphs:
            cause = self.state.why_pruned.get(subgraph.function)
            if cause is None:
                continue
            for identity in subgraph.op_ids:
                if identity in left:
                    step.reasons[identity] = Reason(
                        "pruned",
                        f"Its subgraph {subgraph.name} went back to TVM: {cause}.",
                        mend_pruned(cause),
                        evidence={"subgraph": subgraph.name, "figure": cause},
                    )

    def _changed(self, step: Step) -> bool:
        """Whether the step's module differs from that of the step before."""
        index = len(self.data.steps) - 1
        if index == 0:
            return False
        before = self.data.steps[index - 1]
        return [(f.name, f.text) for f in step.functions] != [
            (f.name, f.text) for f in before.functions
        ]


_WEIGHTED = {
    "nn.conv1d",
    "nn.conv2d",
    "nn.conv3d",
    "nn.conv2d_transpose",
    "nn.dense",
}


def _failure(error: Exception, verdicts: Verdicts) -> StepError:
    trace = "".join(traceback.format_exception(error))[-8000:]
    fault = verdicts.fault()
    if fault is not None:
        place = where(fault.rule.check)
        return StepError(
            type(error).__name__,
            f"The check of {fault.rule.name}"
            + (f" ({place})" if place else "")
            + f" raised {fault.error}.",
            "Mend the check: it must return True or False for every match of the pattern. Until "
            f"then record(..., rules={{{fault.rule.name!r}: False}}) leaves the rule out.",
            trace,
        )
    text = str(error)
    return StepError(
        type(error).__name__,
        gist(text) or type(error).__name__,
        f"{error.mend} The steps before it are recorded."
        if isinstance(error, RegionCycle)
        else next((mend for said, mend in _MENDS if said in text), "")
        + "The steps before it are recorded. The trace says where in TVM it was raised.",
        trace,
    )


def gist(text: str) -> str:
    """What TVM says in an error's text, under its trace."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    trace = [index for index, line in enumerate(lines) if _TRACED.fullmatch(line)]
    said = " ".join(lines[trace[-1] + 1 :]) if trace else ""
    return (said.replace(_NO_MAPS, "").strip() or " ".join(lines[-1:]))[:1000]


_TRACED = re.compile(r'File ".*\.(cc|h)", line \d+')
_NO_MAPS = (
    "TVMError: The source maps are not populated for this module. Please use "
    "`tvm.relay.transform.AnnotateSpans` to attach source maps for error reporting. "
)
"""What TVM adds to what its type inference finds: the calls' spans hold byocviz's numbers."""


_MENDS = (
    (
        "contains free variables",
        "TVM's PartitionGraph loses values that are bound by let or by a match: record the module "
        "after relay.transform.ToGraphNormalForm, where nothing needs the let. ",
    ),
    ("candidates are:", "TVM's MergeComposite needs a function named main: rename the entry. "),
    (
        "bytes-like object or a real number",
        "TVM's rules for TensorRT need sizes: give every dimension one before recording, or a "
        "prune policy of your own (prune=byocviz.PrunePolicy(...)). ",
    ),
    (
        "ty=ref(",
        "TVM's AnnotateTarget puts borders round references too, and those are of no tensor: take "
        "them out before recording. ",
    ),
)
"""What TVM 0.19's passes say of modules that they do not take, and what to do about it."""


def _digest(module: tvm.IRModule) -> Weights:
    weights = Weights()
    digest = hashlib.sha256()
    seen: dict[int, Any] = {}

    def visit(expr: Any) -> None:
        if isinstance(expr, relay.Constant) and key_of(expr) not in seen:
            seen[key_of(expr)] = expr
            array = expr.data.numpy()
            digest.update(f"{array.dtype}{array.shape}".encode())
            digest.update(array.tobytes())
            weights.tensors += 1
            weights.elements += array.size
            weights.bytes += array.nbytes

    for _, function in sorted(functions_of(module).items()):
        relay.analysis.post_order_visit(function, visit)
    weights.digest = digest.hexdigest()
    return weights
