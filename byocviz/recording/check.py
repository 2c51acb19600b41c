"""Whether a recording's parts fit together.

Types are msgspec's work; here is what types cannot say: that every index, id and key names
something, and that boxes do not lie in themselves. A renderer may then index without looking.
Vocabulary (kinds, codes) is not checked: a reader shows a word that it does not know as it is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterable, Iterator
from typing import Any, get_args

import msgspec

from byocviz.errors import RecordingError
from byocviz.recording.results import Results
from byocviz.recording.schema import Graph, Profile, RecordingData, Step

MAX_EXTRA_DEPTH = 32
_IMAGE = re.compile(r"data:image/(?:jpeg|png);base64,[A-Za-z0-9+/]{4,}={0,2}")


class _Fault(Exception):
    """``where`` and ``what``, joined by the caller with the file's name."""


def check(recording: RecordingData, name: str = "") -> None:
    """Raises `RecordingError` that says where a recording contradicts itself.

    ``name`` is the file it came from; empty for one about to be written.
    """
    try:
        _check_ops(recording)
        _check_steps(recording)
        _check_results(recording)
        _check_extra(recording.extra)
    except _Fault as fault:
        if name:
            raise RecordingError(
                f"{name} is damaged: {fault}.", "Fetch the file again, or record again."
            ) from None
        raise RecordingError(
            f"Recording {recording.title!r} contradicts itself: {fault}.",
            "It would not load again. If byocviz made it, this is a bug worth an issue.",
        ) from None


def misfit(recording: RecordingData) -> str:
    """Which field is not of its type in the schema, or holds what MessagePack cannot, and why;
    empty where none is found. Encodes piece by piece: only for when something failed."""
    try:
        return _misfit(recording, type(recording), "")
    except (RecursionError, MemoryError):
        return ""


def _misfit(value: Any, kind: Any, where: str) -> str:
    try:
        msgspec.msgpack.decode(msgspec.msgpack.encode(value), type=kind)
        return ""
    except (TypeError, ValueError, OverflowError) as error:
        cause = str(error).partition(" - at `")[0]
    parts: Iterable[tuple[Any, Any, str]] = ()
    inner = get_args(kind)
    if type(None) in inner:  # "X | None", of which None would have fitted
        inner = get_args(inner[0])
    if isinstance(value, msgspec.Struct):
        parts = (
            (getattr(value, field.name), field.type, f"{where}.{field.name}".lstrip("."))
            for field in msgspec.structs.fields(type(value))
        )
    elif isinstance(value, dict):
        held = inner[1] if len(inner) == 2 else Any
        parts = ((one, held, f"{where}[{key!r:.80}]") for key, one in value.items())
    elif isinstance(value, (list, tuple)):
        held = inner[0] if inner else Any
        parts = ((one, held, f"{where}[{number}]") for number, one in enumerate(value))
    for part in parts:
        found = _misfit(*part)
        if found:
            return found
    return f"{where}: {cause}" if where else cause


def _known(ids: Iterable[int], known: Container[int], where: str) -> None:
    for one in ids:
        if one not in known:
            raise _Fault(f"{where} names operator {one}, which it does not hold")


def _index(value: int, size: int, where: str, *, least: int = -1) -> None:
    if not least <= value < size:
        raise _Fault(f"{where} is {value}, of {size}")


def _not_negative(where: str, **figures: int | None) -> None:
    for name, figure in figures.items():
        if figure is not None and figure < 0:
            raise _Fault(f"{where} has {name} {figure}")


def _check_ops(recording: RecordingData) -> None:
    ops = recording.ops
    for key, op in ops.items():
        where = f"operator {key}"
        if op.id != key or key < 0:
            raise _Fault(f"{where} calls itself {op.id}")
        _not_negative(where, macs=op.macs, param_count=op.param_count, param_bytes=op.param_bytes)
        _known(op.replaced_by, ops, f"{where} (replaced_by)")


def _check_steps(recording: RecordingData) -> None:
    seen: set[str] = set()
    for step in recording.steps:
        if not step.name or step.name in seen:
            raise _Fault(f"step {step.name!r} has no name or stands twice")
        seen.add(step.name)
        _check_step(step, recording)


def _check_step(step: Step, recording: RecordingData) -> None:
    ops, where, count = recording.ops, f"step {step.name!r}", len(step.subgraphs)
    graphs: dict[str, int] = {}
    for view in step.functions:
        here = f"{where}, function {view.name!r}"
        if view.name in graphs:
            raise _Fault(f"{here} stands twice")
        if view.text and view.text not in recording.texts:
            raise _Fault(f"{here} names text {view.text!r}, which it does not hold")
        for site in view.sites:
            _index(site, count, f"{here}, a site", least=0)
        graphs[view.name] = len(view.graph.nodes) if view.graph else 0
        if view.graph is not None:
            _check_graph(view.graph, ops, count, here)
    _known(step.places, ops, f"{where} (places)")
    for key, place in step.places.items():
        if place.graph not in graphs:
            raise _Fault(f"{where}, operator {key} is drawn in {place.graph!r}, not a function")
        _index(place.node, graphs[place.graph], f"{where}, operator {key}, its node", least=0)
        _index(place.subgraph, count, f"{where}, operator {key}, its subgraph")
    _check_subgraphs(step, ops, where)
    _known(step.reasons, ops, f"{where} (reasons)")
    for number, apart in enumerate(step.separations):
        here = f"{where}, separation {number}"
        _index(apart.a, count, f"{here}, a", least=0)
        _index(apart.b, count, f"{here}, b", least=0)
        _known(apart.path, ops, here)
    _check_profile(step.profile, where)
    for name, profile in step.function_profiles.items():
        _check_profile(profile, f"{where}, profile of {name!r}")
    for rewrite in step.rewrites:
        _not_negative(
            f"{where}, rewrite {rewrite.name!r}",
            count=rewrite.count,
            before=rewrite.before,
            after=rewrite.after,
        )


def _check_subgraphs(step: Step, ops: Container[int], where: str) -> None:
    names: set[str] = set()
    for sub in step.subgraphs:
        here = f"{where}, subgraph {sub.name!r}"
        if sub.name in names:
            raise _Fault(f"{here} stands twice")
        names.add(sub.name)
        _known(sub.op_ids, ops, here)
        _not_negative(
            here,
            macs=sub.macs,
            param_count=sub.param_count,
            param_bytes=sub.param_bytes,
            bytes_in=sub.bytes_in,
            bytes_out=sub.bytes_out,
        )
        for tensor in (*sub.inputs, *sub.outputs):
            _not_negative(f"{here}, tensor {tensor.name!r}", bytes=tensor.bytes)
            if tensor.op != -1:
                _known((tensor.op,), ops, f"{here}, tensor {tensor.name!r}")


def _check_profile(profile: Profile, where: str) -> None:
    _not_negative(
        where,
        total=profile.total,
        macs=profile.macs,
        param_count=profile.param_count,
        param_bytes=profile.param_bytes,
        bytes_in=profile.bytes_in,
        bytes_out=profile.bytes_out,
        offloaded_ops=profile.offloaded_ops,
        offloaded_macs=profile.offloaded_macs,
        subgraphs=profile.subgraphs,
    )
    for name, count in profile.ops.items():
        if count < 0:
            raise _Fault(f"{where} counts {count} of {name!r}")


def _check_graph(graph: Graph, ops: Container[int], subgraphs: int, where: str) -> None:
    size = len(graph.nodes)
    for number, node in enumerate(graph.nodes):
        here = f"{where}, node {number}"
        # Written out, not through _index: this loop is most of the work on a large recording.
        if not -1 <= node.parent < size:
            raise _Fault(f"{here}, its parent is {node.parent}, of {size}")
        if not -1 <= node.subgraph < subgraphs:
            raise _Fault(f"{here}, its subgraph is {node.subgraph}, of {subgraphs}")
        if not -1 <= node.owner < size:
            raise _Fault(f"{here}, its owner is {node.owner}, of {size}")
        if node.ops:
            _known(node.ops, ops, here)
    _check_boxes(graph, where)
    for number, edge in enumerate(graph.edges):
        if not (0 <= edge.src < size and 0 <= edge.dst < size):
            raise _Fault(f"{where}, edge {number} joins {edge.src} and {edge.dst}, of {size} nodes")
        if edge.slot < 0 or edge.out < 0:
            raise _Fault(f"{where}, edge {number} has slot {edge.slot} and result {edge.out}")


def _check_boxes(graph: Graph, where: str) -> None:
    """Every chain of parents ends; linear, each node is walked once."""
    settled = bytearray(len(graph.nodes))
    for number in range(len(graph.nodes)):
        chain = []
        current = number
        while current != -1 and not settled[current]:
            settled[current] = 2  # on the chain being walked
            chain.append(current)
            current = graph.nodes[current].parent
        if current != -1 and settled[current] == 2:
            raise _Fault(f"{where}, node {current} lies in itself")
        for one in chain:
            settled[one] = 1


def _check_results(recording: RecordingData) -> None:
    results = recording.results
    build = results.build
    if build is not None:
        for engine in build.engines:
            where = f"the engine of {engine.function!r}"
            unknown = next((i for i in engine.op_ids if i not in recording.ops), None)
            if unknown is not None:
                raise _Fault(f"{where} names operator {unknown}, which is not recorded")
            for key in (engine.code, engine.layers):
                if key and key not in recording.texts:
                    raise _Fault(f"{where} names text {key!r}, which is not recorded")
        for index, node in enumerate(build.tree):
            if not -1 <= node.parent < index:
                raise _Fault(f"module {index} of the tree has the parent {node.parent}")
    for number in _numbers(results):
        if number is not None and not 0 <= number < math.inf:
            raise _Fault(f"a time or difference of the results is {number}")
    for photo in results.photos:
        if photo.width < 1 or photo.height < 1:
            raise _Fault(f"photo {photo.name!r} is {photo.width} x {photo.height} pixels")
        if photo.image and not _IMAGE.fullmatch(photo.image):
            raise _Fault(f"photo {photo.name!r} is no JPEG or PNG as a data URL")


def _numbers(results: Results) -> Iterator[float | None]:
    """Times and differences, none of which can be negative or without end."""
    if results.build is not None:
        yield results.build.lower_seconds
        yield results.build.tvm_seconds
        yield from (engine.seconds for engine in results.build.engines)
    for variant in results.latency.variants if results.latency else ():
        yield from (variant.first, variant.median, variant.p10, variant.p90, *variant.seconds)
        yield from (part.median for part in variant.parts)
    for one in results.check.differences if results.check else ():
        yield from (one.max_abs, one.max_rel)


def _check_extra(extra: dict[str, Any]) -> None:
    """Plain data of bounded depth; a walk without recursion, for foreign depth may be any."""
    todo: list[tuple[Any, int]] = [(extra, 0)]
    while todo:
        value, depth = todo.pop()
        if depth > MAX_EXTRA_DEPTH:
            raise _Fault(f"extra is nested deeper than {MAX_EXTRA_DEPTH}")
        if isinstance(value, dict):
            for key in value:
                if not isinstance(key, str):
                    raise _Fault(f"extra has a key {key!r} that is no string")
        for inner in value.values() if isinstance(value, dict) else value:
            # Leaves here, not through the list: there can be millions.
            if isinstance(inner, (dict, list, tuple)):
                todo.append((inner, depth + 1))
            elif inner is not None and not isinstance(inner, (str, int, float)):
                raise _Fault(f"extra holds a {type(inner).__name__}, not plain data")
