"""The bundled SSD, all the way: partitioned, built, checked, timed, and what it finds."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from byocviz.errors import MissingPackage
from byocviz.progress import progress

if TYPE_CHECKING:
    from byocviz.recording import Recording, Step

CONV = "relax.nn.conv2d"
ROUNDS, WARMUP = 10, 2


@dataclass
class Demo:
    """What the demo found. ``figures`` are all read off its recordings."""

    recording: Recording
    path: Path
    page: Path
    """The recording as one HTML page."""
    picture: Path | None
    """Latency and detections in one figure; None where nothing was built, or matplotlib is not
    there to draw it."""
    figures: dict[str, Any] = field(default_factory=dict)

    def text(self) -> str:
        """The figures in sentences."""
        f = self.figures
        left = ", ".join(f"{n} x {name}" for name, n in f["operators_on_tvm"].items()) or "nothing"
        lines = [
            f"{f['operators_imported']} operators at import, {f['conv2d']} of them conv2d.",
            f"As imported, TVM's own table gives {f['subgraphs_as_imported']} subgraphs; "
            f"partition_for_tensorrt itself gives {f['subgraphs_partition_for_tensorrt']}.",
            f"Prepared and pruned: {f['subgraphs']} subgraph{'s' * (f['subgraphs'] != 1)}, "
            f"{f['conv2d_offloaded']} of {f['conv2d']} conv2d in it for TensorRT; on TVM: {left}.",
        ]
        if f["kept_apart_by"]:
            lines.append("What keeps the subgraphs apart:")
            lines += [f"  {text}" for text in f["kept_apart_by"]]
        return "\n".join(lines)


def demo(output: Path, *, verify: bool = False, build: bool = True, runtime: str = "auto") -> Demo:
    """Record the bundled SSD with TensorRT's table, build it, check and time it, find what is in
    the photos; save the recording, a page of it, and a figure.

    The page and the figure lie beside ``output``, with the suffixes ``.html`` and ``.png``.
    ``runtime`` is as for `byocviz.build`; where TensorRT cannot run, ONNX Runtime stands in for
    it, and everything shown says so. ``build=False`` stops after recording.
    """
    from byocviz.flow.record import record
    from byocviz.models import ssd
    from byocviz.render.sections import numbered

    module = ssd.load()
    with progress("byocviz demo") as shown:
        raw = record(module, prepare=False, prune=False, title="SSD as imported")
        recording = record(module, verify=verify, title="SSDLite MobileNetV2 (COCO)")
        if recording.failed is None:
            recording.blockers()  # they go into the file: it is read where no TVM is
        picture = None
        if build and recording.failed is None:
            picture = _build(recording, raw, runtime, output.with_suffix(".png"))
        shown.step("writing the recording and its page")
        path = recording.save(output)
        page = recording.to_html(path.with_suffix(".html"))
    last = recording.last
    figures = {
        "operators_imported": recording.step("import").profile.total,
        "conv2d": recording.step("import").profile.ops.get(CONV, 0),
        "subgraphs_as_imported": raw.last.profile.subgraphs,
        "subgraphs_partition_for_tensorrt": _partitioned(module),
        "subgraphs": last.profile.subgraphs,
        "conv2d_offloaded": sum(s.ops.get(CONV, 0) for s in last.subgraphs),
        "operators_on_tvm": _on_tvm(recording, last),
        "kept_apart_by": [numbered(last, s.text) for s in last.separations],
    }
    return Demo(recording, path, page, picture, figures)


def _build(recording: Recording, raw: Recording, runtime: str, picture: Path) -> Path | None:
    """Build, check, time beside the module as it was imported, detect, draw.

    Without matplotlib nothing is drawn: the rest is worth having.
    """
    import io

    from byocviz.building.build import build
    from byocviz.models import ssd
    from byocviz.recording.atomic import write

    built = build(recording, runtime=runtime)
    photo = ssd.preprocess(ssd.photos()["coffee"])
    if built.info.cannot_run:
        return None
    built.check(photo)
    built.latency(
        photo,
        repeat=ROUNDS,
        warmup=WARMUP,
        name="prepared and pruned",
        settings={"as imported": raw},
    )
    built.detect()
    try:
        figure = built.plot()
    except MissingPackage:
        return None
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png")
    return write(picture, drawn.getvalue())


def _on_tvm(recording: Recording, step: Step) -> dict[str, int]:
    names: dict[str, int] = {}
    for identity, place in step.places.items():
        operator = recording.ops[identity]
        if place.on == "tvm" and operator.kind == "operator":
            names[operator.name] = names.get(operator.name, 0) + 1
    return names


def _partitioned(module: Any) -> int:
    """Subgraphs (calls of external functions) that TVM's own entry point makes."""
    from tvm import relax
    from tvm.ir import GlobalVar
    from tvm.relax.backend.contrib.tensorrt import partition_for_tensorrt

    partitioned = partition_for_tensorrt(module)
    count = 0

    def visit(expr: Any) -> None:
        nonlocal count
        if isinstance(expr, relax.Call) and isinstance(expr.op, GlobalVar):
            attrs = partitioned[expr.op].attrs
            count += bool(attrs) and "Codegen" in attrs

    relax.analysis.post_order_visit(partitioned["main"], visit)
    return count
