"""Turns a step's module into what the recording keeps of it."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import tvm
from tvm import relax

from byocviz.flow.identity import Ids
from byocviz.flow.profile import operators_by_name, parameters, profile, total
from byocviz.flow.reading import Reading, Site, Value
from byocviz.flow.relax.compat import attribute, is_tensor_constant, plain
from byocviz.flow.relax.macs import tensor_bytes, type_text
from byocviz.recording.schema import FunctionView, Operator, Place, Step, Subgraph, Tensor

_NAME = re.compile(r"^( *)def main\(", re.MULTILINE)


@dataclass
class Sheet:
    """What all steps of one recording share."""

    entry: str
    ops: dict[int, Operator]
    read: dict[int, list[tuple[Any, int, int]]]
    texts: dict[str, str]
    printed: dict[Any, str] | None = field(default_factory=dict)
    """Key of the text of a function object that was printed before; None: print nothing."""


def capture(
    step: Step,
    module: tvm.IRModule,
    sheet: Sheet,
    readings: list[Reading],
    ids: Ids,
    outline: Callable[[], list[Reading]] | None = None,
) -> None:
    """Fill in the step's functions, places, subgraphs and profiles.

    ``readings`` and ``ids`` are of the module with external functions drawn in place; with
    ``outline`` the step is drawn by what it returns: external functions by themselves.
    """
    sites = [(reading, site) for reading in readings for site in reading.sites]
    step.subgraphs = _subgraphs(sites, sheet, ids)
    drawn = readings if outline is None else outline()
    graphs = {reading.name: reading for reading in drawn}
    if outline is None:
        _place_in_place(step, readings, ids)
    else:
        _place_outlined(step, graphs, readings, ids)
    if outline is None:
        for index, (reading, site) in enumerate(sites):
            reading.graph.nodes[site.node].subgraph = index
    shared: dict[str, list[int]] = defaultdict(list)
    for index, subgraph in enumerate(step.subgraphs):
        shared[subgraph.function].append(index)
    for var, function in sorted(module.functions.items(), key=lambda f: _order(f, sheet.entry)):
        name = plain(var.name_hint)
        step.functions.append(
            FunctionView(
                name,
                _kind(name, function, sheet.entry),
                _print(name, function, sheet),
                graphs[name].graph if name in graphs else None,
                shared.get(name, []) if outline is not None else [],
            )
        )
    _profiles(step, sheet)


def _order(item: tuple[Any, Any], entry: str) -> tuple[int, str]:
    var, function = item
    kinds = ("entry", "function", "subgraph", "composite", "prim")
    return kinds.index(_kind(var.name_hint, function, entry)), var.name_hint


def _kind(name: str, function: Any, entry: str) -> str:
    if not isinstance(function, relax.Function):
        return "prim"
    if attribute(function, "Codegen"):
        return "subgraph"
    if attribute(function, "Composite"):
        return "composite"
    return "entry" if name == entry else "function"


def _print(name: str, function: Any, sheet: Sheet) -> str:
    """Key of the function's IR text; constants' values are left out of it."""
    if sheet.printed is None:
        return ""
    key = sheet.printed.get(function)
    if key is None:
        # show_meta would print weights, and crashes TVM 0.27.
        text = plain(function.script(show_meta=False))
        text = _NAME.sub(lambda found: f"{found[1]}def {name}(", text, count=1)
        text = text[text.index("\n@") + 1 :] if "\n@" in text else text
        key = hashlib.sha256(text.encode()).hexdigest()[:16]
        sheet.texts[key] = text
        sheet.printed[function] = key
    return key


def _place_in_place(step: Step, readings: list[Reading], ids: Ids) -> None:
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


def _place_outlined(
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


def _subgraphs(sites: list[tuple[Reading, Site]], sheet: Sheet, ids: Ids) -> list[Subgraph]:
    found = []
    used: dict[str, int] = defaultdict(int)
    for reading, site in sites:
        used[site.function] += 1
        number = used[site.function]
        members = [ids[reading.name, node] for node in site.nodes]
        operators = [i for i in members if sheet.ops[i].kind == "operator"]
        inputs = _inputs(reading, site, ids)
        outputs = _outputs(reading, site, ids)
        count, size = parameters(members, sheet.read)
        rules: dict[str, int] = defaultdict(int)
        for box in {reading.graph.nodes[node].parent for node in site.nodes}:
            if reading.graph.nodes[box].kind == "composite":
                rules[reading.graph.nodes[box].label] += 1
        found.append(
            Subgraph(
                site.function if number == 1 else f"{site.function}#{number}",
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
        )
    return found


def _origin(value: Value, reading: Reading, ids: Ids) -> int:
    if value.origin is None or value.origin not in reading.calls:
        return -1
    return ids[reading.name, value.origin]


def _inputs(reading: Reading, site: Site, ids: Ids) -> list[Tensor]:
    """The tensors that enter, each once: constants are the subgraph's own."""
    tensors: dict[tuple[int, int, int], Tensor] = {}
    for value in site.arguments:
        for leaf in value.leaves():
            if leaf.expr is None or is_tensor_constant(leaf.expr):
                continue
            for index, ty in enumerate(_flat(leaf.expr.ty)):
                if isinstance(ty, relax.TensorType):
                    tensors.setdefault(
                        (leaf.node, leaf.out, index),
                        Tensor(
                            plain(leaf.expr.name),
                            type_text(ty),
                            tensor_bytes(ty),
                            _origin(leaf, reading, ids),
                        ),
                    )
    return list(tensors.values())


def _outputs(reading: Reading, site: Site, ids: Ids) -> list[Tensor]:
    types = _flat(site.call.ty)
    leaves = list(site.result.leaves()) if site.result is not None else []
    if len(leaves) != len(types):
        leaves = [Value(-1, None)] * len(types)
    tensors = []
    for index, (ty, leaf) in enumerate(zip(types, leaves, strict=True)):
        name = reading.variables.get(leaf.origin, "") if leaf.origin is not None else ""
        tensors.append(
            Tensor(
                name or f"output {index}",
                type_text(ty),
                tensor_bytes(ty),
                _origin(leaf, reading, ids),
            )
        )
    return tensors


def _flat(ty: Any) -> list[Any]:
    if isinstance(ty, relax.TupleType):
        return [leaf for inner in ty.fields for leaf in _flat(inner)]
    return [ty]


def _profiles(step: Step, sheet: Sheet) -> None:
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
