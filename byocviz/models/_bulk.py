"""The weights of an ONNX model, out of the way while its arithmetic is folded.

onnxslim compares the whole graph, weights and all, after every change; of a network of 90 MB that
is most of what loading takes.
"""

from __future__ import annotations

from typing import Any

from byocviz.models._graph import branches, reads_within

_LEAST = 1 << 12
"""Bytes. Smaller ones may be shapes, or what onnxslim looks for: a multiplication by one."""


class Weights:
    """The large initializers of ``model`` that no folding needs, by name.

    In ``graph``, a copy of the model's that is changed, they become inputs. One that is an output,
    or is read within a branch, stays where it is. Who makes another graph of it sets `graph`.
    """

    def __init__(self, model: Any, graph: Any) -> None:
        fixed = {value.name for value in (*graph.output, *graph.input)}
        for node in graph.node:
            for branch in branches(node):
                fixed.update(reads_within(branch))
        self.graph = graph
        self._held = {
            tensor.name: tensor
            for tensor in model.graph.initializer
            if tensor.ByteSize() >= _LEAST and tensor.name not in fixed
        }
        for name in self._folded():
            del self._held[name]
        self._take()

    def give_folded(self) -> bool:
        """Put those back that folding needs by now; whether there were any."""
        wanted = self._folded()
        self._give(wanted)
        return bool(wanted)

    def give_all(self) -> None:
        """Put all back that are still read."""
        self._give(list(self._held))

    def _folded(self) -> list[str]:
        """Those that are read by a node that reads nothing but constants."""
        constant = {tensor.name for tensor in self.graph.initializer} | set(self._held)
        found: dict[str, None] = {}
        for node in self.graph.node:
            given = [name for name in node.input if name]
            if all(name in constant for name in given) and not any(branches(node)):
                constant.update(node.output)
                found.update(dict.fromkeys(name for name in given if name in self._held))
        return list(found)

    def _take(self) -> None:
        for name, tensor in self._held.items():
            value = self.graph.input.add(name=name)
            value.type.tensor_type.elem_type = tensor.data_type
            value.type.tensor_type.shape.SetInParent()  # a rank of 0 is a shape too
            for size in tensor.dims:
                value.type.tensor_type.shape.dim.add(dim_value=size)
        if self._held:
            _keep(self.graph.initializer, lambda tensor: tensor.name not in self._held)

    def _give(self, names: list[str]) -> None:
        if not names:
            return
        read = {name for node in self.graph.node for name in node.input}
        self.graph.initializer.extend(self._held.pop(name) for name in names if name in read)
        gone = set(names)
        _keep(self.graph.input, lambda value: value.name not in gone)


def _keep(field: Any, wanted: Any) -> None:
    """Leave those in a repeated field for which ``wanted`` holds."""
    kept = []
    for one in field:
        if wanted(one):
            copy = type(one)()
            copy.CopyFrom(one)
            kept.append(copy)
    del field[:]
    field.extend(kept)
