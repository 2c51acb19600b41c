"""The runtime module tree: what TVM's runtime holds, and the engines beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from byocviz.recording.results import ModuleNode


def tree(executable: Any, engines: Mapping[str, str]) -> list[ModuleNode]:
    """The modules of a compiled executable, each after the one that imports it.

    ``engines`` are what stands beside TVM's modules in this process, by symbol: the title of the
    runtime that runs each. They hang under the executable, which calls them by that symbol.
    """
    nodes: list[ModuleNode] = []

    def add(module: Any, parent: int) -> None:
        here = len(nodes)
        nodes.append(ModuleNode(str(module.kind), parent=parent))
        for imported in module.imports:
            add(imported, here)

    add(getattr(executable, "mod", executable), -1)
    nodes += [ModuleNode("engine", symbol, title, 0) for symbol, title in engines.items()]
    return nodes
