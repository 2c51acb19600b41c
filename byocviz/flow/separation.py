"""Why two subgraphs are not one."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence

from byocviz.flow.identity import Key, Wiring
from byocviz.recording.schema import Operator, Place, Separation, Subgraph

_MAX_UNRELATED = 24
"""With more subgraphs than this, pairs that no tensor connects are not listed: too many."""


def separations(
    subgraphs: Sequence[Subgraph],
    places: Mapping[int, Place],
    ops: Mapping[int, Operator],
    wiring: Wiring,
) -> list[Separation]:
    """For each pair of subgraphs that meet, what keeps them apart.

    Two meet where the second reads the first's result, or only operators on TVM lie between. The
    path that is given is a shortest one.
    """
    users = wiring.users()
    found: dict[tuple[int, int], Separation] = {}
    for a, subgraph in enumerate(subgraphs):
        direct, paths = _reach(a, subgraph, places, users)
        for b in sorted(direct | paths.keys()):
            found[a, b] = _why(a, b, b in direct, paths.get(b), subgraphs, ops)
    if len(subgraphs) <= _MAX_UNRELATED:
        related = _reachable(len(subgraphs), places, users)
        for a in range(len(subgraphs)):
            for b in range(a + 1, len(subgraphs)):
                if b not in related[a] and a not in related[b]:
                    found[a, b] = _unrelated(a, b, subgraphs)
    return [found[pair] for pair in sorted(found)]


def _reach(
    a: int,
    subgraph: Subgraph,
    places: Mapping[int, Place],
    users: Mapping[Key, list[tuple[Key, int]]],
) -> tuple[set[int], dict[int, list[int]]]:
    """The subgraphs that read ``a`` at once, and the shortest paths over TVM to others."""
    direct: set[int] = set()
    paths: dict[int, list[int]] = {}
    came: dict[Key, Key] = {}
    queue: deque[Key] = deque()
    for identity in subgraph.op_ids:
        for user, _ in users.get(identity, ()):
            where = _subgraph(user, places)
            if where == a:
                continue
            if where >= 0:
                direct.add(where)
            elif user not in came:
                came[user] = None
                queue.append(user)
    while queue:
        key = queue.popleft()
        for user, _ in users.get(key, ()):
            where = _subgraph(user, places)
            if where == a:
                continue
            if where >= 0:
                if where not in paths:
                    paths[where] = _trail(key, came)
            elif user not in came:
                came[user] = key
                queue.append(user)
    return direct, paths


def _subgraph(key: Key, places: Mapping[int, Place]) -> int:
    place = places.get(key) if isinstance(key, int) else None
    return place.subgraph if place is not None else -1


def _trail(key: Key, came: Mapping[Key, Key]) -> list[int]:
    trail: list[int] = []
    while key is not None:
        if isinstance(key, int):
            trail.append(key)
        key = came[key]
    return trail[::-1]


def _reachable(
    count: int, places: Mapping[int, Place], users: Mapping[Key, list[tuple[Key, int]]]
) -> list[set[int]]:
    """For each subgraph, those that its results reach by any way."""
    members: dict[int, list[int]] = defaultdict(list)
    for identity, place in places.items():
        members[place.subgraph].append(identity)
    reached = []
    for index in range(count):
        seen: set[Key] = set(members[index])
        queue: deque[Key] = deque(members[index])
        while queue:
            for user, _ in users.get(queue.popleft(), ()):
                if user not in seen:
                    seen.add(user)
                    queue.append(user)
        reached.append({_subgraph(key, places) for key in seen} - {index, -1})
    return reached


def _names(path: Sequence[int], ops: Mapping[int, Operator]) -> str:
    names = [ops[i].callee or ops[i].name.removeprefix("relax.") for i in path]
    if len(names) > 6:
        names = [*names[:3], f"… {len(names) - 5} more …", *names[-2:]]
    return " -> ".join(names)


def _why(
    a: int,
    b: int,
    direct: bool,
    path: list[int] | None,
    subgraphs: Sequence[Subgraph],
    ops: Mapping[int, Operator],
) -> Separation:
    first, second = subgraphs[a], subgraphs[b]
    names = f"{first.name} and {second.name}"
    if first.backend != second.backend:
        return Separation(
            a, b, "backend", f"{names} run on two backends: {first.backend}, {second.backend}."
        )
    if path:
        between = _names(path, ops)
        if direct:
            return Separation(
                a,
                b,
                "cycle",
                f"{second.name} reads {first.name} both at once and through {between} on TVM: "
                "joined, they would have to run before and after it.",
                path,
            )
        return Separation(a, b, "path", f"Between {names} lies, on TVM: {between}.", path)
    if first.caller != second.caller:
        text = f"{names} stand in two functions: {first.caller}, {second.caller}."
        return Separation(a, b, "block", text)
    if path is not None:
        return Separation(a, b, "block", f"{names} lie on two sides of a branch.")
    return Separation(
        a,
        b,
        "unjoined",
        f"{second.name} reads {first.name} with nothing between, and the pass did not join them: "
        "they lie in different blocks or branches, or joining them would close a loop through a "
        "third subgraph.",
    )


def _unrelated(a: int, b: int, subgraphs: Sequence[Subgraph]) -> Separation:
    return Separation(
        a,
        b,
        "unjoined",
        f"No tensor flows between {subgraphs[a].name} and {subgraphs[b].name}; TVM's pass joins "
        "a region only with one that feeds it.",
    )
