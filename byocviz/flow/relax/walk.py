"""Walks a Relax module through the steps and writes down each."""

from __future__ import annotations

import hashlib
import traceback
from collections.abc import Mapping
from typing import Any

import tvm
from tvm import relax

from byocviz.backends import Backend, Rule, by_name
from byocviz.backends.lowerable import convertible
from byocviz.errors import ByocvizError, ModuleError, last_line
from byocviz.flow.identity import Ids, Wiring, by_tag, lineage, resolve
from byocviz.flow.pruning import mend_pruned
from byocviz.flow.reading import Reading
from byocviz.flow.relax.capture import Sheet, capture
from byocviz.flow.relax.compat import attribute, is_tensor_constant, plain, tensor_of
from byocviz.flow.relax.operators import Operators, call_name
from byocviz.flow.relax.reader import read_module
from byocviz.flow.relax.reasons import Refusals, explain
from byocviz.flow.relax.steps import WALK, State
from byocviz.flow.relax.steps.prune import pruned
from byocviz.flow.relax.tag import Tagger
from byocviz.flow.separation import separations
from byocviz.flow.stepping import Stepping, Tell
from byocviz.recording import Recording
from byocviz.recording.schema import (
    PrunePolicy,
    Reason,
    Rewrite,
    Step,
    StepError,
    Weights,
)

WELL_FORMED = (
    "relax.analysis.well_formed(mod) shows where; most often a variable is used outside of where "
    "it is bound."
)


class Walk(Stepping):
    """One recording of one Relax module, as it is made."""

    def __init__(
        self,
        module: tvm.IRModule,
        backend: Backend,
        rules: list[Rule],
        *,
        entry: str,
        params: Mapping[str, Any] | None,
        prepare: bool | Mapping[str, bool],
        policy: PrunePolicy | None,
        tell: Tell,
    ) -> None:
        self.given = module
        self.boxed = frozenset(
            plain(var.name_hint)
            for var, function in module.functions.items()
            if attribute(function, "Composite") or attribute(function, "Codegen")
        )
        self.entry = entry
        self.tell = tell
        self.tagger = Tagger()
        self.modules: dict[str, tvm.IRModule] = {}
        """Each step's module, by the step's name."""
        self.wiring = Wiring()
        self.readings: list[Reading] = []
        self.ids: Ids = {}
        self.drawn: tvm.IRModule | None = None
        """The module that ``readings`` and ``ids`` are of."""
        self.reasons: dict[int, Reason] = {}
        self.state = State(
            module,
            entry,
            backend,
            rules,
            params,
            rewrites=dict(prepare) if isinstance(prepare, Mapping) else {},
            prepare=bool(prepare) if not isinstance(prepare, Mapping) else True,
            policy=policy,
            before_rewrite=lambda name: tell(f"prepare: {name}", 1, len(WALK)),
            after_rewrite=self._after_rewrite,
        )
        self.data = Recording(ir="relax", entry=entry)
        self.sheet = Sheet(entry, self.data.ops, {}, self.data.texts)

    # -- the steps

    def _failed(self, error: Exception) -> StepError:
        return _failure(error, self.state.refusals)

    def _step(self, name: str, step: Step) -> None:
        if name == "import":
            self._begin()
        outcome = next(part for part in WALK if name == part.NAME).run(self.state)
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
                module, self.entry, outlined=True, uncalled=self.boxed
            )
        capture(step, module, self.sheet, self.readings, self.ids, outline)
        if name != "annotate":
            self.state.module = module
        self.state.subgraphs = step.subgraphs
        self._explain(name, step)
        step.changed = self._changed(step)

    def _begin(self) -> None:
        """Tag the module and write down every operator of it."""
        if flaw := _flaw(self.given):
            raise ModuleError(f"The module is not well formed: {flaw}", WELL_FORMED)
        state = self.state
        # First each nested call gets a variable of its own, as the passes would give it one.
        state.module = relax.transform.Normalize()(state.module)
        state.module = self.tagger.tag(state.module, entry=self.entry, anew=True)
        self.operators = Operators(
            state.module, _weights(state.module, self.entry), self.tagger.sources
        )
        self.sheet.read = self.operators.read
        self.data.weights = _digest(state.module)
        self._read(state.module)
        self._describe(())

    def _read(self, module: tvm.IRModule) -> None:
        self.readings = read_module(module, self.entry)
        self.ids = by_tag(self.readings, self.tagger.new)

    def _name(self, reading: Reading, node: int) -> str:
        call = reading.calls[node]
        name = call_name(call)
        return f"{name} {reading.graph.nodes[node].callee}" if name == "relax.call_tir" else name

    def _after_rewrite(self, module: tvm.IRModule, rewrite: Rewrite) -> tvm.IRModule:
        """Find what became of each operator, and give the new ones their ids."""
        before = self.wiring
        rewrite.before = self._alive(before)
        if module is self.state.module:
            rewrite.after = rewrite.before
            return module
        module = self.tagger.tag(module, entry=self.entry)
        self.operators.module = module
        self._read(module)
        self._describe(self.data.ops, rewrite.name)
        gone, _ = lineage(before, self.wiring)
        self._ended(gone, rewrite.name)
        rewrite.after = self._alive(self.wiring)
        return module

    def _refresh(self) -> None:
        """Bound parameters and folded constants are read by operators that stay."""
        if self.state.module is self.modules["import"]:
            return
        self.operators.weights = _weights(self.state.module, self.entry)
        self.operators.refresh(self.data.ops, self.readings, self.ids)

    def _regrouped(self, module: tvm.IRModule, step: str) -> None:
        """Identity after a pass that only regroups."""
        self.readings = read_module(module, self.entry, uncalled=self.boxed)
        self.ids, lost = resolve(self.readings, self.wiring, self._name)
        self._made_by(step)
        if step == "annotate":
            return  # a side view: what it drops is still there for merge
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
            rules = self.state.rules
            self.reasons = explain(
                self.state.prepared,
                self.state.enabled,
                left,
                refusals=self.state.refusals,
                disabled=[rule.fusion for rule in rules if not rule.enabled],
                owners={i: p.composite for i, p in step.places.items() if p.composite},
                order=[rule.fusion for rule in rules],
                convertible=convertible if self.state.backend.lowers else None,
                backend=by_name(self.state.backend),
            )
        step.reasons = {i: self.reasons[i] for i in left if i in self.reasons}
        if name == "merge":
            self._merged = step
        if name == "prune" and self.state.policy is not None:
            self._pruned(step, left)
        if name in ("merge", "partition", "prune"):
            if name == "partition":
                step.separations = self._merged.separations
            else:
                step.separations = separations(
                    step.subgraphs,
                    step.places,
                    self.data.ops,
                    self.wiring,
                    self.blocks,
                    [reading.graph for reading in self.readings],
                )

    def _pruned(self, step: Step, left: set[int]) -> None:
        assert self.state.policy is not None
        for subgraph in self._merged.subgraphs:
            cause = pruned(subgraph, self.state.policy, self.state.backend.name)
            if not cause:
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
        """Whether the step's module differs from that of the step which it goes on from."""
        names = [s.name for s in self.data.steps]
        index = names.index(step.name)
        if index == 0:
            return False
        source = {"annotate": "prepare", "merge": "composite"}.get(step.name, names[index - 1])
        before = next(s for s in self.data.steps if s.name == source)
        return [(f.name, f.text) for f in step.functions] != [
            (f.name, f.text) for f in before.functions
        ]


def _failure(error: Exception, refusals: Refusals | None = None) -> StepError:
    if isinstance(error, ByocvizError):
        return StepError(type(error).__name__, error.message, error.mend)
    trace = "".join(traceback.format_exception(error))[-8000:]
    fault = refusals.fault() if refusals is not None else None
    if fault is not None:
        return StepError(type(error).__name__, *fault, trace)
    return StepError(
        type(error).__name__,
        last_line(error, 1000),
        "The steps before it are recorded. The trace says where in TVM it was raised.",
        trace,
    )


def _flaw(module: tvm.IRModule) -> str:
    """What TVM finds wrong with a module, or ""; types are not checked, which is slow."""
    try:
        fine = relax.analysis.well_formed(relax.transform.Normalize()(module), False)
    except Exception as error:
        return last_line(error, 1000)
    return "TVM does not say why." if fine is False else ""


def _weights(module: tvm.IRModule, entry: str) -> set[Any]:
    """Parameters of the entry after the inputs that its attribute ``num_input`` counts."""
    function = module[entry]
    count = attribute(function, "num_input")
    return set(function.params[int(count) :]) if isinstance(count, int) else set()


def _digest(module: tvm.IRModule) -> Weights:
    weights = Weights()
    digest = hashlib.sha256()
    seen: set[Any] = set()

    def visit(expr: Any) -> None:
        if is_tensor_constant(expr) and expr not in seen:
            seen.add(expr)
            array = tensor_of(expr).numpy()
            digest.update(f"{array.dtype}{array.shape}".encode())
            digest.update(array.tobytes())
            weights.tensors += 1
            weights.elements += array.size
            weights.bytes += array.nbytes

    for var in sorted(module.get_global_vars(), key=lambda v: v.name_hint):
        function = module[var]
        if isinstance(function, relax.Function):
            relax.analysis.post_order_visit(function, visit)
    weights.digest = digest.hexdigest()
    return weights
