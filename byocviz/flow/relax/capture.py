"""Turns a step's module into what the recording keeps of it."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import tvm
from tvm import relax

from byocviz.flow.identity import Ids
from byocviz.flow.placing import (
    Sheet,
    origin,
    place_in_place,
    place_outlined,
    profiles,
    subgraph_of,
)
from byocviz.flow.reading import Reading, Site, Value
from byocviz.flow.relax.compat import attribute, is_tensor_constant, plain
from byocviz.flow.relax.macs import tensor_bytes, type_text
from byocviz.recording.schema import FunctionView, Step, Subgraph, Tensor

__all__ = ["Sheet", "capture"]

_NAME = re.compile(r"^( *)def main\(", re.MULTILINE)


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
        place_in_place(step, readings, ids)
    else:
        place_outlined(step, graphs, readings, ids)
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
    profiles(step, sheet)


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


def _subgraphs(sites: list[tuple[Reading, Site]], sheet: Sheet, ids: Ids) -> list[Subgraph]:
    found = []
    used: dict[str, int] = defaultdict(int)
    for reading, site in sites:
        used[site.function] += 1
        number = used[site.function]
        members = [ids[reading.name, node] for node in site.nodes]
        inputs = _inputs(reading, site, ids)
        outputs = _outputs(reading, site, ids)
        name = site.function if number == 1 else f"{site.function}#{number}"
        found.append(subgraph_of(name, site, reading, members, inputs, outputs, sheet))
    return found


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
                            origin(leaf, reading, ids),
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
                origin(leaf, reading, ids),
            )
        )
    return tensors


def _flat(ty: Any) -> list[Any]:
    if isinstance(ty, relax.TupleType):
        return [leaf for inner in ty.fields for leaf in _flat(inner)]
    return [ty]
