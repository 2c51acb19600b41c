"""Why two subgraphs are not one."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence

from byocviz.flow.identity import Key, Wiring
from byocviz.recording.schema import Graph, Operator, Place, Separation, Subgraph

_MAX_UNRELATED = 24
"""With more subgraphs than this, pairs that no tensor connects are not listed: too many."""


def separations(
    subgraphs: Sequence[Subgraph],
    places: Mapping[int, Place],
    ops: Mapping[int, Operator],
    wiring: Wiring,
    blocks: Mapping[int, tuple[str, int]],
    graphs: Iterable[Graph],
) -> list[Separation]:
    """For each pair of subgraphs that meet, what keeps them apart.

    Two meet where the second reads the first's result, or only operators on TVM lie between. The
    path that is given is a shortest one. ``blocks`` tells the function and the binding block of
    each operator before any was regrouped; ``graphs`` are the step's, subgraphs drawn in place.
    """
    users = wiring.users()
    through = _carried(graphs, places)
    members = [{blocks.get(i, ("", -1)) for i in s.op_ids} for s in subgraphs]
    found: dict[tuple[int, int], Separation] = {}
    for a, subgraph in enumerate(subgraphs):
        direct, paths = _reach(a, subgraph, places, users)
        for b in sorted(direct | paths.keys()):
            pair = _Pair(a, b, subgraphs, ops)
            if subgraphs[a].backend != subgraphs[b].backend:
                found[a, b] = pair.backends()
            elif b in paths:
                found[a, b] = pair.path(paths[b], b in direct)
            elif members[a].isdisjoint(members[b]):
                found[a, b] = pair.blocks(members[a], members[b])
            elif carrier := through.get((a, b)):
                found[a, b] = pair.carried(carrier)
            else:
                found[a, b] = pair.detour(_detour(a, b, places, users), places)
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


def _detour(
    a: int,
    b: int,
    places: Mapping[int, Place],
    users: Mapping[Key, list[tuple[Key, int]]],
) -> list[int]:
    """A shortest way from ``a`` to ``b`` that leaves ``a``, over TVM or other subgraphs."""
    came: dict[Key, Key] = {}
    queue: deque[Key] = deque()
    for identity, place in places.items():
        if place.subgraph != a:
            continue
        for user, _ in users.get(identity, ()):
            if _subgraph(user, places) not in (a, b) and user not in came:
                came[user] = None
                queue.append(user)
    while queue:
        key = queue.popleft()
        for user, _ in users.get(key, ()):
            where = _subgraph(user, places)
            if where == b:
                return _trail(key, came)
            if where != a and user not in came:
                came[user] = key
                queue.append(user)
    return []


def _carried(graphs: Iterable[Graph], places: Mapping[int, Place]) -> dict[tuple[int, int], str]:
    """Pairs of subgraphs between which every value goes through a tuple or a match_cast."""
    found: dict[tuple[int, int], str] = {}
    plain: set[tuple[int, int]] = set()
    for graph in graphs:
        nodes = graph.nodes
        where = [places[n.ops[0]].subgraph if n.ops and n.ops[0] in places else -1 for n in nodes]
        carries: dict[int, dict[int, str]] = defaultdict(dict)
        for edge in sorted(graph.edges, key=lambda e: e.dst):
            kind = nodes[edge.dst].kind
            from_ = carries.get(edge.src, {})
            if where[edge.src] >= 0:
                from_ = {where[edge.src]: ""}
            if kind in ("tuple", "get", "cast"):
                word = {"tuple": "a tuple", "cast": "a match_cast", "get": ""}[kind]
                for subgraph, before in from_.items():
                    carries[edge.dst].setdefault(subgraph, before or word)
            elif where[edge.dst] >= 0:
                for subgraph, word in from_.items():
                    pair = subgraph, where[edge.dst]
                    if word:
                        found.setdefault(pair, word)
                    else:
                        plain.add(pair)
    return {pair: word for pair, word in found.items() if pair not in plain}


class _Pair:
    """Two subgraphs that meet, and the sentence for each cause that keeps them apart."""

    def __init__(
        self, a: int, b: int, subgraphs: Sequence[Subgraph], ops: Mapping[int, Operator]
    ) -> None:
        self.a, self.b = a, b
        self.subgraphs = subgraphs
        self.first, self.second = subgraphs[a], subgraphs[b]
        self.names = f"{self.first.name} and {self.second.name}"
        self.ops = ops

    def backends(self) -> Separation:
        text = f"{self.names} run on two backends: {self.first.backend} and {self.second.backend}."
        return Separation(self.a, self.b, "backend", text)

    def path(self, path: list[int], direct: bool) -> Separation:
        between = _names(path, self.ops)
        if not path:
            text = f"Between {self.names} lies only what a branch returns."
            return Separation(self.a, self.b, "block", text)
        if direct:
            text = (
                f"{self.second.name} reads {self.first.name} both at once and through {between} "
                "on TVM: joined, they would have to run before and after it."
            )
            return Separation(self.a, self.b, "cycle", text, path)
        text = f"Between {self.names} lies, on TVM: {between}."
        return Separation(self.a, self.b, "path", text, path)

    def blocks(self, first: set[tuple[str, int]], second: set[tuple[str, int]]) -> Separation:
        functions = {f for f, _ in first} | {f for f, _ in second}
        if len(functions) > 1:
            text = f"{self.names} stand in several functions: {', '.join(sorted(functions))}."
        else:
            text = (
                f"{self.names} lie in two binding blocks or branches of {functions.pop()}; what "
                "lies between runs apart from both."
            )
        return Separation(self.a, self.b, "block", text)

    def carried(self, carrier: str) -> Separation:
        text = (
            f"What {self.second.name} reads of {self.first.name} passes through {carrier}, and "
            "MergeCompositeFunctions joins only composite functions that read each other directly."
        )
        return Separation(self.a, self.b, "unjoined", text)

    def detour(self, way: list[int], places: Mapping[int, Place]) -> Separation:
        if not way:
            text = (
                f"{self.second.name} reads {self.first.name} with nothing between, yet TVM's pass "
                "did not join them: it decides in the order of the calls and does not come back."
            )
            return Separation(self.a, self.b, "unjoined", text)
        others = dict.fromkeys(places[i].subgraph for i in way if places[i].subgraph >= 0)
        on_tvm = [i for i in way if places[i].subgraph < 0]
        stations = [self.subgraphs[i].name for i in others]
        if on_tvm:
            stations.append(f"{_names(on_tvm, self.ops)} on TVM")
        text = (
            f"{self.second.name} reads {self.first.name} both at once and through "
            f"{' and '.join(stations)}: joined, they would have to run before and after it."
        )
        return Separation(self.a, self.b, "cycle", text, on_tvm)


def _unrelated(a: int, b: int, subgraphs: Sequence[Subgraph]) -> Separation:
    return Separation(
        a,
        b,
        "unjoined",
        f"No tensor flows between {subgraphs[a].name} and {subgraphs[b].name}; TVM's pass joins "
        "a region only with one that feeds it.",
    )
