"""The record: plain data that every renderer reads and nothing here can run.

A `Recording` holds what one walk of the BYOC flow did to one module. It carries no weights and
no TVM object: shapes, dtypes and digests stand for tensors, and IR is text. Everything below is
a `msgspec.Struct`, so a file of it can be checked field by field before any of it is used.

Vocabulary is TVM's: an *operator* is a call of a TVM `Op`; a *composite function* is a matched
pattern; a *subgraph* is a call of a function with the attribute ``Codegen``.
"""

from __future__ import annotations

from typing import Any

import msgspec

from byocviz.recording.results import Results

SCHEMA = 1
"""Version of the file's structure. A reader refuses a file with a larger number."""

STEPS = ("import", "prepare", "composite", "annotate", "merge", "partition", "prune")
"""The steps of the flow, in order, by the same names for Relax and Relay."""


class Operator(msgspec.Struct, omit_defaults=True):
    """One call with an identity for life.

    ``kind`` is ``"operator"`` for a call of a TVM Op (``call_tir`` and ``call_dps_packed``
    included) and ``"call"`` for a call of a function of the module, a local function or a packed
    function; only the former count as operators.
    """

    id: int
    name: str
    """TVM's name, as ``relax.nn.conv2d``; for a call, the callee's name."""
    function: str = ""
    """The function of the module in which it stood when it was first seen."""
    kind: str = "operator"
    var: str = ""
    """The variable that it is bound to in the IR text."""
    source: str = ""
    """What the model's own file calls it, where the importer told."""
    callee: str = ""
    """For ``call_tir`` and ``call_dps_packed``: the name of the function that it calls."""
    attrs: dict[str, str] = {}
    arg_types: list[str] = []
    """One an argument, as ``float32[1, 3, 300, 300]``; ``const`` follows for a constant."""
    out_types: list[str] = []
    """One a result tensor."""
    macs: int | None = 0
    """Multiply-accumulates; None where they cannot be known (a symbolic shape, opaque code)."""
    param_count: int = 0
    """Elements of the constants (or bound parameters) that it reads."""
    param_bytes: int = 0
    created_by: str = ""
    """The rewrite of the prepare step that made it; empty for an imported operator."""
    replaced_by: list[int] = []
    """Ids of the operators that stand for this one after the prepare step."""
    fate: str = ""
    """``""`` while it lives; ``replaced``, ``folded`` (into a constant) or ``dead``."""
    fate_by: str = ""
    """The rewrite, or the step, that ended it."""


class Node(msgspec.Struct, array_like=True):
    """One box of a drawn function. Its index in `Graph.nodes` is its name there."""

    kind: str
    """``param``, ``const``, ``op``, ``call`` (of a function of the module), ``tuple``, ``get``
    (a tuple's element), ``if``, ``branch`` (box: then or else), ``function`` (box: a local
    function), ``composite`` (box), ``region`` (box), ``shape``, ``prim``, ``cast``
    (match_cast), ``output`` or ``other``."""
    label: str
    ops: list[int] = []
    """Operator ids. One where the node stands once; where equal subgraphs share one function,
    one a call site, in the order of `FunctionView.sites`."""
    parent: int = -1
    """The box in which it lies: an index in the same list, or -1."""
    type: str = ""
    callee: str = ""
    """For ``call`` nodes, ``call_tir`` operators and boxes: the function of the module."""
    subgraph: int = -1
    """For a ``region`` box or a ``call`` node: its index in `Step.subgraphs`."""
    owner: int = -1
    """For a ``branch`` box: its ``if`` node, which takes the condition in slot 0, the result of
    "then" in slot 1 and the result of "else" in slot 2."""


class Edge(msgspec.Struct, array_like=True):
    """A value that flows from one node to another."""

    src: int
    dst: int
    slot: int = 0
    """Which argument of ``dst``."""
    out: int = 0
    """Which result of ``src``."""


class Graph(msgspec.Struct):
    nodes: list[Node] = []
    edges: list[Edge] = []


class FunctionView(msgspec.Struct, omit_defaults=True):
    """A function of a step's module."""

    name: str
    kind: str = "function"
    """``entry``, ``function``, ``composite``, ``subgraph`` or ``prim`` (a TIR function)."""
    text: str = ""
    """Key of its IR text in `Recording.texts`."""
    graph: Graph | None = None
    """None where it is drawn in place, inside its caller's graph, or is a TIR function."""
    sites: list[int] = []
    """For a shared subgraph function drawn by itself: indices in `Step.subgraphs`."""


class Place(msgspec.Struct, array_like=True):
    """Where an operator stands at one step."""

    function: str
    """The function of the module whose body holds the call."""
    graph: str
    """The function whose graph draws it."""
    node: int
    """The node of that graph."""
    on: str = "tvm"
    """``tvm``, or the backend's name once it is annotated for it."""
    composite: str = ""
    """The rule whose composite function it belongs to."""
    subgraph: int = -1
    """Index in `Step.subgraphs`."""


class Tensor(msgspec.Struct, array_like=True):
    """A tensor at a subgraph's boundary. ``bytes`` is None where a dimension is symbolic."""

    name: str
    type: str
    bytes: int | None
    op: int = -1
    """Id of the operator that makes it; -1 for a parameter of the function."""


class Profile(msgspec.Struct, omit_defaults=True):
    """What a module, a function or a subgraph consists of.

    Figures that a symbolic dimension or opaque code leaves unknown are None, drawn as "?".
    """

    ops: dict[str, int] = {}
    """Operators by name, most frequent first."""
    total: int = 0
    """Operators in all."""
    macs: int | None = 0
    """Multiply-accumulates of one run of each operator (a loop's body counts once)."""
    param_count: int = 0
    param_bytes: int = 0
    bytes_in: int | None = 0
    """Bytes that enter: into the subgraph; for a module or function, into all its subgraphs."""
    bytes_out: int | None = 0
    offloaded_ops: int = 0
    offloaded_macs: int | None = 0
    subgraphs: int = 0

    @property
    def coverage_ops(self) -> float:
        """Share of operators on the backend, 0 to 1."""
        return self.offloaded_ops / self.total if self.total else 0.0

    @property
    def coverage_macs(self) -> float | None:
        """Share of multiply-accumulates on the backend, 0 to 1; None where it is unknown."""
        if self.macs is None or self.offloaded_macs is None or not self.macs:
            return None
        return self.offloaded_macs / self.macs


class Subgraph(msgspec.Struct, omit_defaults=True):
    """One call of an external function. Equal subgraphs can share one ``function``."""

    name: str
    """Unique within the step: the function's name, with ``#2``, ``#3`` ... where it is shared."""
    backend: str
    function: str
    caller: str = ""
    """The function of the module that calls it."""
    op_ids: list[int] = []
    ops: dict[str, int] = {}
    composites: dict[str, int] = {}
    """Composite functions inside, by rule."""
    macs: int | None = 0
    param_count: int = 0
    param_bytes: int = 0
    bytes_in: int | None = 0
    bytes_out: int | None = 0
    inputs: list[Tensor] = []
    outputs: list[Tensor] = []


class Reason(msgspec.Struct, omit_defaults=True):
    """Why an operator stays on TVM."""

    code: str
    """``no-rule``, ``other-form``, ``check-refused``, ``not-in-dataflow``, ``already-lowered``,
    ``no-tensor``, ``rule-off``, ``pruned``, ``not-lowerable`` (a rule matches, and the match has
    no equal in ONNX: recorded with ``lowerable``, or for ``onnxruntime``), ``no-kernel`` (it
    has, and the runtime cannot run it) or ``held-back`` (a rule matches, and the explorer was
    asked to offload nothing from an operator on that it is or depends on). A backend's own check
    may give another."""
    text: str
    mend: str
    rule: str = ""
    """The rule that came nearest, where there is one."""
    evidence: dict[str, str] = {}


class Separation(msgspec.Struct, omit_defaults=True):
    """Why two subgraphs are not one."""

    a: int
    b: int
    """Indices in `Step.subgraphs`."""
    code: str
    """``path`` (operators on TVM lie between), ``cycle`` (joining them would need its own
    result), ``block`` (another dataflow block, branch or function), ``backend`` (they run on two)
    or ``unjoined`` (no tensor flows between them, or the pass did not join them)."""
    text: str
    path: list[int] = []
    """Ids of the operators on TVM from one to the other."""


class Rewrite(msgspec.Struct, omit_defaults=True):
    """A named change of the prepare step."""

    name: str
    text: str
    """What it does, in a sentence."""
    count: int = 0
    """How many places it changed; 0 where it found nothing."""
    before: int = 0
    """Operators of the module before it."""
    after: int = 0
    call: str = ""
    """The TVM call, or byocviz's own, that runs when pasted."""
    origin: str = "byocviz"
    """``tvm`` for a pass of TVM's, ``byocviz`` for an equivalent of its own."""
    assumes: str = ""
    """What must hold for the result to be the same, where that is not proved."""
    seconds: float = 0.0
    enabled: bool = True
    left: dict[str, int] = {}
    """Places that look like it and were left, by the cause."""


class StepError(msgspec.Struct, omit_defaults=True):
    """What a step raised."""

    type: str
    message: str
    mend: str = ""
    trace: str = ""


class Step(msgspec.Struct, omit_defaults=True):
    name: str
    call: str = ""
    """The call that makes this step's module from the one before; runs when pasted where
    ``mod`` is that module."""
    origin: str = "tvm"
    """``tvm`` for a pass of TVM's, ``byocviz`` for an equivalent of its own."""
    note: str = ""
    functions: list[FunctionView] = []
    places: dict[int, Place] = {}
    subgraphs: list[Subgraph] = []
    profile: Profile = msgspec.field(default_factory=Profile)
    function_profiles: dict[str, Profile] = {}
    reasons: dict[int, Reason] = {}
    separations: list[Separation] = []
    rewrites: list[Rewrite] = []
    tvm_seconds: float = 0.0
    capture_seconds: float = 0.0
    changed: bool = True
    error: StepError | None = None
    max_difference: float | None = None
    """Largest absolute difference of an output to the imported module's, where verified."""
    verify_error: str = ""


class RuleInfo(msgspec.Struct, omit_defaults=True):
    name: str
    ops: list[str] = []
    """Operators that its pattern names."""
    enabled: bool = True
    check: bool = False
    """Whether a function of its own can refuse a match."""
    matches: int = 0
    """Composite functions that it made."""


class PrunePolicy(msgspec.Struct, omit_defaults=True):
    """Which subgraphs go back to TVM."""

    require_macs: bool = False
    """Without a multiply-accumulate it goes back (TensorRT's remove_no_mac_subgraphs)."""
    min_ops: int = 0
    min_macs: int = 0


class BackendInfo(msgspec.Struct, omit_defaults=True):
    name: str
    rules: list[RuleInfo] = []
    prune: PrunePolicy = msgspec.field(default_factory=PrunePolicy)
    options: dict[str, str] = {}


class Blocker(msgspec.Struct, omit_defaults=True):
    """What would change if a rule took every operator of one kind (found by partitioning again)."""

    op: str
    count: int
    """Operators of the kind that stand on TVM now."""
    subgraphs: int
    subgraphs_now: int
    coverage_ops: float
    coverage_ops_now: float
    coverage_macs: float | None
    coverage_macs_now: float | None
    boundary_bytes: int | None
    boundary_bytes_now: int | None
    error: str = ""

    @property
    def gain(self) -> int:
        """Subgraphs fewer than now."""
        return self.subgraphs_now - self.subgraphs


class Weights(msgspec.Struct, omit_defaults=True):
    """What a recording keeps of a model's constants: never the values."""

    tensors: int = 0
    elements: int = 0
    bytes: int = 0
    digest: str = ""
    """SHA-256 over name, dtype, shape and bytes of each, in order of appearance."""


class RecordingData(msgspec.Struct, omit_defaults=True):
    """The fields of a recording, as they lie in a file."""

    title: str = ""
    created: str = ""
    """UTC, ISO 8601."""
    made_with: dict[str, str] = {}
    """Versions: byocviz, python, tvm, platform ..."""
    ir: str = "relax"
    entry: str = "main"
    backend: BackendInfo = msgspec.field(default_factory=lambda: BackendInfo(""))
    weights: Weights = msgspec.field(default_factory=Weights)
    ops: dict[int, Operator] = {}
    steps: list[Step] = []
    texts: dict[str, str] = {}
    """IR text by key; equal texts are kept once."""
    what_if: list[Blocker] | None = None
    """None until `Recording.blockers` was asked where TVM is at hand."""
    results: Results = msgspec.field(default_factory=Results)
    """What building, running and timing added."""
    extra: dict[str, Any] = {}
    """Plain data of the person's own, by name; the viewer lists it."""
