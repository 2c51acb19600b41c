"""An operator's identity through the steps.

The passes from composite on only regroup calls: the module after a pass, with composite and
external functions read where they are called, is the same graph of calls as before it. A call's
number (its tag) survives in its span, but where a pass finds two functions equal it keeps one,
and the numbers of the other's calls are lost. So identity is found by walking both graphs back
from what the functions return: results correspond in order, and with each pair of calls their
arguments do. Where nothing leads to a call from a result, its number decides; where that is not
unique, any call alike in operator and arguments may stand for it, for they compute the same.

The prepare step does change calls. There the numbers decide, and what became of a call that is
gone is read off at its consumers: whatever feeds them now stands for it (`lineage`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable

from byocviz.flow.reading import Reading

Key = int | tuple[str, int] | None
"""An operator id, an If (its function and index there), or None for what no call makes."""

RESULT = "result of "
"""Marks, in `Wiring.users`, the key that stands for what a function returns."""

Ids = dict[tuple[str, int], int]
"""Operator id by (reading, node)."""


class Wiring:
    """Who feeds whom, by operator id: what identity is checked against."""

    def __init__(self) -> None:
        self.inputs: dict[Key, list[Key]] = {}
        self.results: dict[str, list[Key]] = {}
        self.names: dict[int, str] = {}

    @classmethod
    def of(cls, readings: Iterable[Reading], ids: Ids, name: Callable[[int], str]) -> Wiring:
        wiring = cls()
        for reading in readings:
            keys = node_keys(reading, ids)
            for node, inputs in reading.inputs.items():
                wiring.inputs[keys[node]] = [
                    None if origin is None else keys[origin] for origin in inputs
                ]
            wiring.results[reading.name] = [
                None if origin is None else keys[origin] for origin in reading.results
            ]
            for node in reading.calls:
                identity = ids[reading.name, node]
                wiring.names[identity] = name(identity)
        return wiring

    def users(self) -> dict[Key, list[tuple[Key, int]]]:
        """The consumers of each call with the argument's place; a result counts as one."""
        found: dict[Key, list[tuple[Key, int]]] = defaultdict(list)
        for consumers in (self.inputs, {(RESULT + f, -1): r for f, r in self.results.items()}):
            for user, inputs in consumers.items():
                for slot, key in enumerate(inputs):
                    if key is not None:
                        found[key].append((user, slot))
        return found

    def inputs_of(self, user: Key) -> list[Key]:
        """The arguments of a call or If, or what a function returns."""
        if isinstance(user, tuple) and user[0].startswith(RESULT):
            return self.results.get(user[0].removeprefix(RESULT), [])
        return self.inputs.get(user, [])


def node_keys(reading: Reading, ids: Ids) -> dict[int, Key]:
    """The key of each node of a reading that is a call or an If."""
    keys: dict[int, Key] = {node: ids[reading.name, node] for node in reading.calls}
    for index, node in enumerate(reading.ifs):
        keys[node] = (reading.name, index)
    return keys


def by_tag(readings: Iterable[Reading], new: Callable[[], int]) -> Ids:
    """Ids by tag; a call read at a second place (a shared function) gets a new one there."""
    ids: Ids = {}
    taken: set[int] = set()
    for reading in readings:
        for node, tag in reading.tags.items():
            identity = new() if tag in taken or tag < 0 else tag
            taken.add(identity)
            ids[reading.name, node] = identity
    return ids


def resolve(
    readings: list[Reading], wiring: Wiring, name: Callable[[Reading, int], str]
) -> tuple[Ids, set[int]]:
    """The id of each call of a regrouped module, and the ids that stand nowhere in it.

    ``name`` gives the operator that a node calls; it breaks ties among calls that no result
    depends on. Each id is given once.
    """
    ids: Ids = {}
    free = set(wiring.names)
    pending: list[tuple[Reading, int, Key]] = []

    def settle() -> None:
        while pending:
            reading, node, key = pending.pop()
            if node in reading.calls:
                if (
                    not isinstance(key, int)
                    or (reading.name, node) in ids
                    or key not in free
                    or wiring.names[key] != name(reading, node)
                ):
                    continue
                ids[reading.name, node] = key
                free.discard(key)
            elif (reading.name, node) in visited:
                continue
            else:
                visited.add((reading.name, node))
            here, there = reading.inputs[node], wiring.inputs.get(key, [])
            if len(here) == len(there):
                for origin, source in zip(here, there, strict=True):
                    if origin is not None and source is not None:
                        pending.append((reading, origin, source))

    visited: set[tuple[str, int]] = set()
    for reading in readings:
        for index, node in enumerate(reading.ifs):
            pending.append((reading, node, (reading.name, index)))
        results = wiring.results.get(reading.name, [])
        if len(results) == len(reading.results):
            for origin, source in zip(reading.results, results, strict=True):
                if origin is not None and source is not None:
                    pending.append((reading, origin, source))
    settle()

    tags = Counter(tag for reading in readings for tag in reading.tags.values())
    for reading in readings:
        # Users before makers: a user tells more surely who its makers are than their own tags do,
        # which are another's where the pass kept that one of two equal functions.
        for node, tag in reversed(reading.tags.items()):
            if (reading.name, node) not in ids and tags[tag] == 1 and tag in free:
                pending.append((reading, node, tag))
                settle()
    _match_alike(readings, wiring, name, ids, free, pending, settle)
    return ids, free


def _match_alike(
    readings: list[Reading],
    wiring: Wiring,
    name: Callable[[Reading, int], str],
    ids: Ids,
    free: set[int],
    pending: list[tuple[Reading, int, Key]],
    settle: Callable[[], None],
) -> None:
    """Give each call that is left an id of the same operator, of the same arguments if any."""
    open_nodes = [(r, n) for r in readings for n in r.calls if (r.name, n) not in ids]
    if not open_nodes:
        return
    # Two calls alike in operator and arguments compute the same: either id serves.
    alike: dict[tuple[str, tuple[Key, ...]], list[int]] = defaultdict(list)
    by_name: dict[str, list[int]] = defaultdict(list)
    for identity in sorted(free, reverse=True):
        operator = wiring.names[identity]
        alike[operator, tuple(wiring.inputs[identity])].append(identity)
        by_name[operator].append(identity)
    for reading, node in open_nodes:
        if (reading.name, node) in ids:
            continue
        operator = name(reading, node)
        known: tuple[Key, ...] = tuple(
            None if origin is None else ids.get((reading.name, origin))
            for origin in reading.inputs[node]
        )
        for choices in (alike.get((operator, known)), by_name.get(operator)):
            while choices and choices[-1] not in free:
                choices.pop()
            if choices:
                pending.append((reading, node, choices[-1]))
                settle()
                break


def lineage(before: Wiring, after: Wiring) -> tuple[dict[int, tuple[str, list[int]]], set[int]]:
    """What became of the calls that a rewrite removed, and which calls it made.

    Returns ``(gone, new)``: for each id that is gone its fate (``replaced``, ``folded``, or
    ``dead``) and the ids that stand for it, and the set of ids that were not there before.
    """
    alive, made = set(after.names), set(after.names) - set(before.names)
    gone = set(before.names) - alive
    if not gone:
        return {}, made
    users = before.users()
    fates: dict[int, tuple[str, list[int]]] = {}
    # What each gone call fed, seen from the nearest consumers that are still there.
    memo: dict[int, tuple[set[int], bool]] = {}

    def successors(key: int, trail: frozenset[int]) -> tuple[set[int], bool]:
        if key in memo:
            return memo[key]
        found: set[int] = set()
        constant = False
        for user, slot in users.get(key, ()):
            if isinstance(user, int) and user in gone:
                if user not in trail:
                    more, folded = successors(user, trail | {user})
                    found |= more
                    constant |= folded
                continue
            inputs = after.inputs_of(user)
            now = inputs[slot] if slot < len(inputs) else None
            if isinstance(now, int):
                found |= _made_above(now, after, made)
            else:
                constant = True
        memo[key] = found, constant
        return memo[key]

    for key in sorted(gone, reverse=True):  # consumers first: recursion stays shallow
        found, constant = successors(key, frozenset((key,)))
        fate = "replaced" if found else "folded" if constant else "dead"
        fates[key] = fate, sorted(found)
    return fates, made


def _made_above(key: int, after: Wiring, made: set[int]) -> set[int]:
    """The call itself, and the new calls that lead to it through new calls alone."""
    found = {key}
    if key not in made:
        return found
    stack = [key]
    while stack:
        for source in after.inputs.get(stack.pop(), ()):
            if isinstance(source, int) and source in made and source not in found:
                found.add(source)
                stack.append(source)
    return found
