"""Sums over operators: by name, multiply-accumulates, parameters, bytes over the boundary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from byocviz.recording.schema import Operator, Profile, Subgraph

Parameters = Mapping[int, list[tuple[Any, int, int]]]
"""By operator id: (what the tensor is, elements, bytes) of each constant or weight it reads."""


def total(values: Iterable[int | None]) -> int | None:
    """The sum; None where one of the values is unknown."""
    result = 0
    for value in values:
        if value is None:
            return None
        result += value
    return result


def parameters(ids: Iterable[int], read: Parameters) -> tuple[int, int]:
    """Elements and bytes of the tensors that these operators read, each tensor once."""
    tensors = {tensor: (n, size) for i in ids for tensor, n, size in read.get(i, ())}
    return sum(n for n, _ in tensors.values()), sum(size for _, size in tensors.values())


def operators_by_name(ids: Iterable[int], ops: Mapping[int, Operator]) -> dict[str, int]:
    names = Counter(ops[i].name for i in ids if ops[i].kind == "operator")
    return dict(sorted(names.items(), key=lambda item: (-item[1], item[0])))


def profile(
    ids: Iterable[int],
    ops: Mapping[int, Operator],
    read: Parameters,
    subgraphs: Iterable[Subgraph] = (),
) -> Profile:
    """The profile of the operators ``ids``, of which ``subgraphs`` run on a backend."""
    ids = list(ids)
    by_name = operators_by_name(ids, ops)
    count, size = parameters(ids, read)
    subgraphs = list(subgraphs)
    return Profile(
        by_name,
        sum(by_name.values()),
        total(ops[i].macs for i in ids),
        count,
        size,
        total(s.bytes_in for s in subgraphs),
        total(s.bytes_out for s in subgraphs),
        sum(sum(s.ops.values()) for s in subgraphs),
        total(s.macs for s in subgraphs),
        len(subgraphs),
    )
