"""Where operators stand at a step, and what its parts add up to, whichever IR it is written in."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

from byocviz.flow.identity import Ids
from byocviz.flow.profile import operators_by_name, parameters, profile, total
from byocviz.flow.reading import Reading, Site, Value
from byocviz.recording.schema import Operator, Place, Step, Subgraph, Tensor


@dataclass
class Sheet:
    """What all steps of one recording share."""

    entry: str
    ops: dict[int, Operator]
    read: dict[int, list[tuple[Any, int, int]]]
    texts: dict[str, str]
    printed: dict[Any, str] | None = field(default_factory=dict)
    """Key of the text of a function object that was printed before; None: print nothing."""


def subgraph_of(
    name: str,
    site: Site,
    reading: Reading,
    members: list[int],
    inputs: list[Tensor],
    outputs: list[Tensor],
    sheet: Sheet,
) -> Subgraph:
    """A call of an external function with its figures; ``members`` are its operators' ids."""
    operators = [i for i in members if sheet.ops[i].kind == "operator"]
    count, size = parameters(members, sheet.read)
    nodes = reading.graph.nodes
    boxes = {nodes[node].parent for node in site.nodes}
    rules = Counter(nodes[box].label for box in boxes if nodes[box].kind == "composite")
    return Subgraph(
        name,
        site.backend,
        site.function,
        site.caller,
        members,
        operators_by_name(operators, sheet.ops),
        dict(sorted(rules.items())),
        total(sheet.ops[i].macs for i in operators),
        count,
        size,
        total(t.bytes for t in inputs),
        total(t.bytes for t in outputs),
        inputs,
        outputs,
    )


def place_in_place(step: Step, readings: list[Reading], ids: Ids) -> None:
    """Place every call by the drawing with subgraphs inside their callers."""
    first_site = 0
    for reading in readings:
        nodes = reading.graph.nodes
        for node in reading.calls:
            identity = ids[reading.name, node]
            nodes[node].ops = [identity]
            site = reading.site_of.get(node, -1)
            backend = reading.sites[site].backend if site >= 0 else ""
            composite = reading.composites.get(node, "")
            step.places[identity] = Place(
                reading.homes[node],
                reading.name,
                node,
                backend or "tvm",
                composite,
                first_site + site if site >= 0 else -1,
            )
        first_site += len(reading.sites)


def place_outlined(
    step: Step, graphs: dict[str, Reading], readings: list[Reading], ids: Ids
) -> None:
    """Place by the outlined drawing; its nodes correspond to the readings' in order."""
    index = 0
    for reading in readings:
        drawn = graphs[reading.name]
        inside = [node for node in reading.calls if node not in reading.site_of]
        outside = [n for n in drawn.calls if n not in {s.node for s in drawn.sites}]
        for node, here in zip(inside, outside, strict=True):
            _put(step, drawn, here, ids[reading.name, node], "tvm", -1)
        for site, call in zip(reading.sites, drawn.sites, strict=True):
            drawn.graph.nodes[call.node].subgraph = index
            body = graphs[site.function]
            for node, here in zip(site.nodes, body.calls, strict=True):
                _put(step, body, here, ids[reading.name, node], site.backend, index)
            index += 1


def _put(step: Step, drawn: Reading, node: int, identity: int, on: str, subgraph: int) -> None:
    drawn.graph.nodes[node].ops.append(identity)
    composite = drawn.composites.get(node, "")
    step.places[identity] = Place(drawn.homes[node], drawn.name, node, on, composite, subgraph)


def origin(value: Value, reading: Reading, ids: Ids) -> int:
    """Id of the call that makes a value; -1 where none does."""
    if value.origin is None or value.origin not in reading.calls:
        return -1
    return ids[reading.name, value.origin]


def profiles(step: Step, sheet: Sheet) -> None:
    """The profile of the module, and of each function whose body holds operators."""
    step.profile = profile(step.places, sheet.ops, sheet.read, step.subgraphs)
    members: dict[str, list[int]] = defaultdict(list)
    for identity, place in step.places.items():
        members[place.function].append(identity)
    callers: dict[str, list[Subgraph]] = defaultdict(list)
    for subgraph in step.subgraphs:
        callers[subgraph.caller].append(subgraph)
    for function, ids in members.items():
        inside = callers.get(function, [])
        result = profile(ids, sheet.ops, sheet.read, inside)
        # What a function's subgraphs hold is in them: its own operators all run on TVM.
        result.offloaded_ops, result.offloaded_macs = 0, 0
        step.function_profiles[function] = result
