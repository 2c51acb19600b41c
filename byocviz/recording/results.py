"""What building, running and timing add to a recording.

Times are in seconds, bytes are bytes. Text that is long (ONNX as text, an engine's layers) lies in
`RecordingData.texts`; here stand its keys. A figure that is not known is None, drawn as "?".
"""

from __future__ import annotations

import msgspec

NOISY = 1.5
"""A spread above this is said beside the median."""


class EngineInfo(msgspec.Struct, omit_defaults=True):
    """One subgraph, built for a runtime."""

    function: str
    """The external function: its symbol, which `Subgraph.function` names too."""
    op_ids: list[int] = []
    seconds: float = 0.0
    """What the runtime took to build it; where it was ``cached``, to load it."""
    cached: bool = False
    bytes: int | None = None
    """Of the serialised engine, where the runtime has such a thing."""
    facts: dict[str, str] = {}
    """What the runtime tells of it: version, device, precision, options."""
    code: str = ""
    """Key of its ONNX as text (large constants left out) in `RecordingData.texts`."""
    layers: str = ""
    """Key of the engine's own layers as text, where a GPU lets them be read."""


class ModuleNode(msgspec.Struct, omit_defaults=True):
    """One module of the runtime module tree, as TVM holds it, or an engine beside it."""

    kind: str
    """TVM's type key, as ``relax.VMExecutable``; ``engine`` for what byocviz keeps in Python."""
    name: str = ""
    detail: str = ""
    parent: int = -1
    """Index of the module that imports it, always smaller than its own; -1 for the root."""


class BuildInfo(msgspec.Struct, omit_defaults=True):
    """A partitioned module, built."""

    runtime: str
    """The runtime's name, as ``onnxruntime``."""
    title: str
    """The same as people write it, as ``ONNX Runtime``."""
    stands_in_for: str = ""
    """The title of the runtime that was meant, where this one stands in for it."""
    why: str = ""
    """Why it stands in."""
    codegen: str = "python"
    """``python`` for byocviz's, ``native`` for one that this TVM was built with."""
    target: str = ""
    """What TVM compiled the rest for."""
    step: str = ""
    """The step whose module was built."""
    cannot_run: str = ""
    """Why it does not run on the machine that built it; empty: it does."""
    engines: list[EngineInfo] = []
    lower_seconds: float = 0.0
    """From Relax to ONNX, all subgraphs."""
    tvm_seconds: float = 0.0
    """TVM's compilation of what is left."""
    tree: list[ModuleNode] = []
    made: str = ""
    """UTC, ISO 8601."""
    machine: dict[str, str] = {}
    """Processor, cores, GPU, and the versions of what was used."""


class Difference(msgspec.Struct, omit_defaults=True):
    """How far one tensor, or all outputs of a subgraph, lie from what TVM alone gives."""

    name: str
    kind: str = "output"
    """``output`` of the module, or ``subgraph`` by itself on the same inputs."""
    max_abs: float | None = None
    """Largest absolute difference."""
    max_rel: float | None = None
    """Largest difference relative to TVM's value, of the elements that TVM gives a value above
    ``atol``: below, the absolute one alone says something. None where there is none."""
    exceeds: bool = False
    """Whether some element differs by more than ``atol + rtol * |TVM's|``."""
    note: str = ""


class Check(msgspec.Struct, omit_defaults=True):
    """The build's results against those of TVM alone."""

    atol: float
    rtol: float
    inputs: str = ""
    """Which inputs, in words."""
    differences: list[Difference] = []
    first: str = ""
    """The first subgraph that exceeds the tolerance."""

    @property
    def ok(self) -> bool:
        """Whether everything lies within the tolerance."""
        return not any(one.exceeds for one in self.differences)

    def __repr__(self) -> str:
        beyond = sum(one.exceeds for one in self.differences)
        said = f"{beyond} of {len(self.differences)} beyond" if beyond else "all within"
        return f"<Check: {said} {self.atol:g} + {self.rtol:g} x |TVM's|>"


class Part(msgspec.Struct, omit_defaults=True):
    """Where a run's time goes: one subgraph, or ``TVM`` for everything between them."""

    name: str
    median: float


class Variant(msgspec.Struct, omit_defaults=True):
    """One bar of the latency comparison."""

    name: str
    """As people read it: ``TVM alone``, ``TVM + ONNX Runtime`` ..."""
    kind: str
    """``tvm``: TVM alone; ``byoc``: the partitioned module; ``runtime``: the runtime alone on the
    whole model; ``part``: the runtime alone on the part that it takes."""
    setting: str = ""
    """The partition setting, where several are compared."""
    seconds: list[float] = []
    """One run each, in order; the first run and those of the warm-up are not among them."""
    first: float | None = None
    median: float | None = None
    p10: float | None = None
    p90: float | None = None
    cannot: str = ""
    """Why it cannot be run, where it cannot; there are no times then."""
    subgraphs: int | None = None
    boundary_bytes: int | None = None
    """What crosses between TVM and the subgraphs in one run, both ways."""
    coverage_ops: float | None = None
    """Share of operators in the runtime, 0 to 1."""
    parts: list[Part] = []
    """Measured in runs of their own, so that the clock does not slow the others."""
    note: str = ""

    @property
    def noisy(self) -> bool:
        """Whether the middle four fifths of the runs lie so far apart that the median says
        little: p90 above `NOISY` times p10."""
        return bool(self.p10 and self.p90 and self.p90 > NOISY * self.p10)


class Latency(msgspec.Struct, omit_defaults=True):
    """Variants timed in turn, one run of each after the other, so that drift hits all alike; each
    follows an untimed run of its own, so that none finds another's data in the caches."""

    variants: list[Variant] = []
    repeat: int = 0
    warmup: int = 0
    made: str = ""
    machine: dict[str, str] = {}
    note: str = ""

    def __repr__(self) -> str:
        rows = [
            # Of several settings each has a variant of the same name.
            f"{one.name}{f' ({one.setting})' if one.setting else ''} "
            + (f"{one.median * 1e3:.3g} ms" if one.median else "cannot")
            for one in self.variants[:6]
        ]
        return f"<Latency: {', '.join(rows)}{', ...' * (len(self.variants) > 6)}>"


class Found(msgspec.Struct, array_like=True):
    """Something that the model found in a photo."""

    label: str
    score: float
    box: tuple[float, float, float, float]
    """Left, top, right, bottom, in pixels of the photo."""
    index: int = -1
    """Its class."""


class Detected(msgspec.Struct, omit_defaults=True):
    """What one variant found."""

    variant: str
    kind: str = ""
    found: list[Found] = []
    max_score: float | None = None
    """Largest difference of a score to the first variant's; None for the first one, and where
    they do not find the same things."""
    max_box: float | None = None
    """The same for a side of a box, in pixels."""
    note: str = ""


class Photo(msgspec.Struct, omit_defaults=True):
    name: str
    width: int
    height: int
    image: str = ""
    """A data URL of a JPEG or PNG, perhaps smaller than the photo (of the same proportions)."""
    detected: list[Detected] = []

    def __repr__(self) -> str:
        found = ", ".join(
            f"{one.label} {one.score:.3f}" for d in self.detected[:1] for one in d.found
        )
        return (
            f"<Photo {self.name!r}, {self.width} x {self.height}, "
            f"{len(self.detected)} variants: {found or 'nothing'}>"
        )


class Results(msgspec.Struct, omit_defaults=True):
    """All of it; each part is there once it was asked for."""

    build: BuildInfo | None = None
    check: Check | None = None
    latency: Latency | None = None
    photos: list[Photo] = []

    def __bool__(self) -> bool:
        return bool(self.build or self.check or self.latency or self.photos)
