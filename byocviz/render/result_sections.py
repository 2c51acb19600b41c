"""What building, checking and timing found, as sections of the text summary."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from byocviz.recording import Recording
from byocviz.recording.printable import printable
from byocviz.recording.results import BuildInfo, Difference, Latency, Photo, Variant
from byocviz.recording.tables import subgraph_number
from byocviz.render import figures
from byocviz.render.fitted import Column, Fitted
from byocviz.render.pieces import indented, middle, more, plain_table, safe
from byocviz.render.prose import lines

BAR = 24
"""Characters of the longest bar."""


def names_of(recording: Recording) -> dict[str, str]:
    """What each external function of the built step is called for people: ``S3``, by its first
    call's place; the symbols that TVM makes can have thousands of characters."""
    build = recording.results.build
    step = next((s for s in recording.steps if build and s.name == build.step), None)
    names: dict[str, str] = {}
    for index, sub in enumerate(step.subgraphs if step else ()):
        names.setdefault(sub.function, subgraph_number(index))
    return names


def built(recording: Recording, top: int) -> RenderableType | None:
    """Runtime, engines with what they took, and what stands in for what."""
    info = recording.results.build
    if info is None:
        return None
    words = f"{info.title}, from step {info.step!r}, {info.codegen} codegen"
    parts: list[RenderableType] = [indented(printable(words, limit=200))]
    if info.stands_in_for:
        parts.append(indented(stand_in(info)))
    if info.cannot_run:
        parts.append(indented(printable(f"It cannot run here: {info.cannot_run}", limit=400)))
    parts.append(
        indented(
            f"lowering to ONNX {figures.seconds(info.lower_seconds)}, engines "
            f"{figures.seconds(sum(e.seconds for e in info.engines))}, TVM "
            f"{figures.seconds(info.tvm_seconds)}"
        )
    )
    if not info.engines:
        parts.append(indented("no engines: nothing is offloaded"))
        return Group(*parts)
    names = names_of(recording)
    table = plain_table(
        [("engine", "left"), ("operators", "right"), ("seconds", "right"), ("bytes", "right"),
         ("", "left")]
    )  # fmt: skip
    for engine in info.engines[:top]:
        table.add_row(
            safe(names.get(engine.function) or middle(engine.function, 40)),
            figures.count(len(engine.op_ids)),
            figures.seconds(engine.seconds),
            figures.data(engine.bytes) if engine.bytes is not None else "",
            "from the cache" if engine.cached else "",
        )
    return Group(*parts, table, *more(len(info.engines) - top, "engine"))


def stand_in(info: BuildInfo) -> str:
    """The sentence that every picture of such a build says."""
    said = f"{info.title} stands in for {info.stands_in_for}"
    return printable(f"{said}: {info.why}" if info.why else f"{said}.", limit=400)


def checked(recording: Recording, top: int) -> RenderableType | None:
    """Differences to TVM alone, those that exceed the tolerance first."""
    check = recording.results.check
    if check is None:
        return None
    names = names_of(recording)
    beyond = [d for d in check.differences if d.exceeds]
    said = f"tolerance {check.atol:g} + {check.rtol:g} x |TVM's|, inputs {check.inputs}: "
    if beyond:
        said += f"{len(beyond)} of {len(check.differences)} exceed it"
        if check.first:
            said += f"; the first subgraph is {names.get(check.first) or middle(check.first, 60)}"
    else:
        said += "all within it"
        silent = sum(d.max_abs is None for d in check.differences)
        said += f", but for {silent} not called with these inputs" if silent else ""
    columns = [("", "left"), ("absolute", "right"), ("relative", "right"), ("", "left")]
    table = plain_table(columns)
    shown = sorted(check.differences, key=lambda d: not d.exceeds)
    for one in shown[:top]:
        table.add_row(
            safe(names.get(one.name) or middle(one.name, 40)),
            figures.difference(one.max_abs),
            figures.difference(one.max_rel) if one.max_rel is not None else "",
            _verdict(one),
        )
    return Group(indented(printable(said, limit=400)), table, *more(len(shown) - top, "tensor"))


def _verdict(one: Difference) -> Text:
    words = ["EXCEEDS"] * one.exceeds + [one.note] * bool(one.note)
    return safe(printable(": ".join(words), limit=120))


def timed(recording: Recording) -> RenderableType | None:
    """The latency comparison: a bar a variant, the median with p10 and p90."""
    latency = recording.results.latency
    if latency is None:
        return None
    cannot = [
        indented(f"{_named(v)} cannot: {printable(v.cannot or '?', limit=200)}", 2)
        for v in latency.variants
        if not v.median
    ]
    info = recording.results.build
    parts: list[RenderableType] = [_latencies(latency), *cannot, indented(conditions(latency))]
    if any(variant.noisy for variant in latency.variants):
        parts.append(
            indented(
                "Noisy: p90 lies far above p10, so the median and its ratios say little. Time it "
                "again when the machine is quiet."
            )
        )
    if info is not None and info.stands_in_for:
        parts.append(indented(stand_in(info)))
    return Group(*parts)


def _named(variant: Variant) -> str:
    name = f"{variant.name} ({variant.setting})" if variant.setting else variant.name
    return printable(name, limit=60)


def _latencies(latency: Latency) -> Fitted:
    """One row a variant; where the width is short bars go first, then the lesser figures."""
    variants = latency.variants
    base = next((v.median for v in variants if v.kind == "tvm" and v.median), None)
    names = [_named(variant) for variant in variants]
    times = [(v.median, v.p10, v.p90, v.first) if v.median else (None,) * 4 for v in variants]
    shown = [[figures.seconds(t) if v.median else "" for t in row]
             for v, row in zip(variants, times, strict=True)]  # fmt: skip
    median, p10, p90, first = ([row[i] for row in shown] for i in range(4))
    columns = [
        Column("name", "left", names, named=False),
        Column("median", "right",
               [m if v.median else "cannot" for m, v in zip(median, variants, strict=True)]),
        Column("p10", "right", p10),
        Column("p90", "right", p90),
        Column("first", "right", first),
        Column("subgraphs", "right",
               ["" if v.subgraphs is None else figures.count(v.subgraphs) for v in variants]),
        Column("boundary", "right",
               ["" if v.boundary_bytes is None else figures.data(v.boundary_bytes)
                for v in variants]),
        Column("bar", "left", _bars(variants, BAR), named=False),
        Column("ratio", "left", [_ratio(v, base) for v in variants], named=False),
    ]  # fmt: skip
    return Fitted(
        columns,
        [
            ("bar", _bars(variants, BAR // 2)),
            ("name", ["\n".join(lines(name, 22)) for name in names]),
            ("bar", _bars(variants, BAR // 4)),
            ["bar"],
            ["first"],
            ["boundary"],
            ["p10", "p90"],
            ["subgraphs"],
            ("name", ["\n".join(lines(name, 12)) for name in names]),
            ["ratio"],
        ],
    )


def _bars(variants: Sequence[Variant], longest: int) -> list[str]:
    most = max((v.median for v in variants if v.median), default=0.0)
    return ["#" * max(1, round(v.median / most * longest)) if v.median else "" for v in variants]


def _ratio(variant: Variant, base: float | None) -> str:
    said = []
    if base and variant.median and variant.kind != "tvm":
        said.append(f"{base / variant.median:.1f} x as fast")
    return " ".join(said + ["(noisy)"] * variant.noisy)


def conditions(latency: Latency) -> str:
    """How and on what it was measured, in a line."""
    facts = latency.machine
    where = ", ".join(f"{facts[k]}" for k in ("processor", "gpu") if facts.get(k))
    cores = f" ({facts['cores']} cores)" if facts.get("cores") else ""
    said = (
        f"{figures.plural(latency.repeat, 'round')} in turn after {latency.warmup} to warm up, the "
        f"first run apart; {where or 'machine not known'}{cores}; {latency.made[:10]}"
    )
    return printable(said, limit=400)


def detected(recording: Recording, top: int) -> RenderableType | None:
    """What was found in each photo, and how far the variants agree."""
    photos = recording.results.photos
    if not photos:
        return None
    parts: list[RenderableType] = []
    for photo in photos[:top]:
        for number, one in enumerate(photo.detected[:top]):
            found = ", ".join(f"{f.label} {f.score:.3f}" for f in one.found[:8]) or "nothing"
            head = f"{photo.name}: " if number == 0 else " " * (len(photo.name) + 2)
            parts.append(indented(printable(f"{head}{one.variant}: {found}", limit=300)))
        parts.append(indented(printable(agreement(photo), limit=200), by=4))
    return Group(*parts, *more(len(photos) - top, "photo"))


def agreement(photo: Photo) -> str:
    """Whether the variants find the same, in a sentence."""
    others = photo.detected[1:]
    odd = [one.variant for one in others if one.max_score is None]
    if odd:
        return f"not the same: {', '.join(odd)}"
    if not others:
        return "one variant"
    score = max(one.max_score or 0.0 for one in others)
    box = max(one.max_box or 0.0 for one in others)
    return f"the same: scores within {score:.1e}, boxes within {box:.1e} pixels"
