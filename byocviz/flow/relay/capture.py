"""Turns a step's module into what the recording keeps of it."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import tvm
from tvm import relay

from byocviz.flow.identity import Ids
from byocviz.flow.placing import (
    Sheet,
    origin,
    place_in_place,
    place_outlined,
    profiles,
    subgraph_of,
)
from byocviz.flow.profile import total
from byocviz.flow.reading import Reading, Site
from byocviz.flow.relay.compat import attribute, functions_of, key_of
from byocviz.flow.relay.text import function_text
from byocviz.flow.relay.types import Types
from byocviz.recording.schema import FunctionView, Step, Subgraph, Tensor


class Printer:
    """Prints functions, each object once."""

    def __init__(self, texts: dict[str, str]) -> None:
        self.texts = texts
        self.known: dict[int, tuple[str, dict[int, str]]] = {}
        self._held: list[Any] = []

    def print(self, name: str, function: Any) -> tuple[str, dict[int, str]]:
        """Key of the function's text, and the variable of each call by its number."""
        key = key_of(function)
        found = self.known.get(key)
        if found is None:
            text, variables = function_text(name, function)
            digest = hashlib.sha256(text.encode()).hexdigest()[:16]
            self.texts[digest] = text
            found = self.known[key] = digest, variables
            self._held.append(function)
        return found


def name_variables(
    readings: list[Reading], module: tvm.IRModule, printer: Printer
) -> dict[str, str]:
    """Give each call the variable of the text; returns the texts' keys by function."""
    keys: dict[str, str] = {}
    variables: dict[str, dict[int, str]] = {}
    for name, function in functions_of(module).items():
        keys[name], variables[name] = printer.print(name, function)
    for reading in readings:
        for node, tag in reading.tags.items():
            var = variables.get(reading.homes[node], {}).get(tag, "")
            reading.variables[node] = reading.graph.nodes[node].label = var
    return keys


def capture(
    step: Step,
    module: tvm.IRModule,
    sheet: Sheet,
    readings: list[Reading],
    ids: Ids,
    printer: Printer | None,
    types: Types,
    outline: Callable[[], list[Reading]] | None = None,
) -> None:
    """Fill in the step's functions, places, subgraphs and profiles.

    ``readings`` and ``ids`` are of the module with external functions drawn in place; with
    ``outline`` the step is drawn by what it returns: external functions by themselves.
    """
    keys = name_variables(readings, module, printer) if printer is not None else {}
    sites = [(reading, site) for reading in readings for site in reading.sites]
    used: Counter[str] = Counter()
    for reading, site in sites:
        used[site.function] += 1
        number = used[site.function]
        name = site.function if number == 1 else f"{site.function}#{number}"
        step.subgraphs.append(_subgraph(reading, site, sheet, ids, name, types))
    drawn = readings if outline is None else outline()
    if printer is not None and outline is not None:
        name_variables(drawn, module, printer)
    graphs = {reading.name: reading for reading in drawn}
    if outline is None:
        place_in_place(step, readings, ids)
        for index, (reading, site) in enumerate(sites):
            reading.graph.nodes[site.node].subgraph = index
    else:
        place_outlined(step, graphs, readings, ids)
    shared: dict[str, list[int]] = defaultdict(list)
    for index, subgraph in enumerate(step.subgraphs):
        shared[subgraph.function].append(index)
    functions = functions_of(module)
    for name in sorted(functions, key=lambda n: _order(n, functions[n], sheet.entry)):
        step.functions.append(
            FunctionView(
                name,
                _kind(name, functions[name], sheet.entry),
                keys.get(name, ""),
                graphs[name].graph if name in graphs else None,
                shared.get(name, []) if outline is not None else [],
            )
        )
    profiles(step, sheet)
    for name, found in step.function_profiles.items():
        # A region is no function yet: its operators are still those of the function it lies in.
        regions = [s for s in step.subgraphs if s.caller == name and s.function not in functions]
        found.offloaded_ops = sum(sum(s.ops.values()) for s in regions)
        found.offloaded_macs = total(s.macs for s in regions)


def _order(name: str, function: Any, entry: str) -> tuple[int, str]:
    kinds = ("entry", "function", "subgraph", "composite")
    return kinds.index(_kind(name, function, entry)), name


def _kind(name: str, function: Any, entry: str) -> str:
    if attribute(function, "Compiler"):
        return "subgraph"
    if attribute(function, "Composite"):
        return "composite"
    return "entry" if name == entry else "function"


def _subgraph(
    reading: Reading, site: Site, sheet: Sheet, ids: Ids, name: str, types: Types
) -> Subgraph:
    members = [ids[reading.name, node] for node in site.nodes]
    inputs, outputs = _inputs(reading, site, ids, types), _outputs(reading, site, ids, types)
    return subgraph_of(name, site, reading, members, inputs, outputs, sheet)


def _inputs(reading: Reading, site: Site, ids: Ids, types: Types) -> list[Tensor]:
    """The tensors that enter, each once: constants are the subgraph's own."""
    tensors: dict[tuple[int, int], Tensor] = {}
    for value in site.arguments:
        for leaf in value.leaves():
            ty = getattr(leaf, "ty", None)
            if isinstance(leaf.expr, relay.Constant) or not isinstance(ty, relay.TensorType):
                continue
            name = getattr(leaf, "name", "") or _made_by(leaf, reading)
            tensors.setdefault(
                _source(leaf),
                Tensor(
                    name or f"input {len(tensors)}",
                    types.text(ty),
                    types.size(ty)[1],
                    origin(leaf, reading, ids),
                ),
            )
    return list(tensors.values())


def _outputs(reading: Reading, site: Site, ids: Ids, types: Types) -> list[Tensor]:
    tensors: dict[tuple[int, int], Tensor] = {}
    for leaf in site.result.leaves() if site.result is not None else ():
        ty = getattr(leaf, "ty", None)
        name = _made_by(leaf, reading)
        tensors.setdefault(
            _source(leaf),
            Tensor(
                name or f"output {len(tensors)}",
                types.text(ty),
                types.size(ty)[1],
                origin(leaf, reading, ids),
            ),
        )
    return list(tensors.values())


def _made_by(leaf: Any, reading: Reading) -> str:
    """The variable of what makes a value, or the operator where the text gives it none."""
    if leaf.origin is None:
        return ""
    if variable := reading.variables.get(leaf.origin, ""):
        return variable
    return reading.names.get(leaf.origin, "if")


def _source(leaf: Any) -> tuple[int, int]:
    """What tells one tensor from another: a tuple may hold one twice."""
    return getattr(leaf, "source", None) or (leaf.node, leaf.out)
