"""Identity on graphs made up for it: regrouped in any order, with tags lost as TVM loses them."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from byocviz.flow.identity import Ids, Key, Wiring, by_tag, lineage, resolve
from byocviz.flow.reading import Origin, Reading

NAMES = ("relu", "add", "conv")


class Dag:
    """Calls 0..n-1, each reading earlier ones or parameters (None)."""

    def __init__(self, names: list[str], inputs: list[list[Origin]], results: list[int]) -> None:
        self.names, self.inputs, self.results = names, inputs, results

    def wiring(self) -> Wiring:
        wiring = Wiring()
        for identity, name in enumerate(self.names):
            wiring.names[identity] = name
            wiring.inputs[identity] = list(self.inputs[identity])
        wiring.results["main"] = list(self.results)
        return wiring

    def values(self) -> list[object]:
        """What each call computes: equal for calls that compute the same."""
        found: list[object] = []
        known: dict[object, int] = {}
        for name, inputs in zip(self.names, self.inputs, strict=True):
            key = name, tuple(None if i is None else found[i] for i in inputs)
            found.append(known.setdefault(key, len(known)))
        return found

    def reading(self, order: list[int], tags: list[int]) -> tuple[Reading, dict[int, int]]:
        """The same calls as nodes in another order; which call each node is."""
        reading = Reading("main")
        node_of = {call: node for node, call in enumerate(order)}
        for node, call in enumerate(order):
            reading.calls[node] = self.names[call]
            reading.tags[node] = tags[call]
            reading.inputs[node] = [None if i is None else node_of[i] for i in self.inputs[call]]
        reading.results = [node_of[r] for r in self.results]
        return reading, dict(enumerate(order))


@st.composite
def dags(draw: st.DrawFn) -> tuple[Dag, list[int], list[int]]:
    count = draw(st.integers(1, 14))
    names = draw(st.lists(st.sampled_from(NAMES), min_size=count, max_size=count))
    inputs: list[list[Origin]] = []
    for index in range(count):
        earlier = st.one_of(st.none(), st.integers(0, index - 1)) if index else st.none()
        inputs.append(draw(st.lists(earlier, min_size=1, max_size=2)))
    results = draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=3))
    # Equal functions: calls of one name may come to carry one of their tags.
    tags = list(range(count))
    for index in range(count):
        if draw(st.booleans()):
            alike = [i for i in range(count) if names[i] == names[index]]
            tags[index] = draw(st.sampled_from(alike))
    # Any order in which makers come before users.
    order: list[int] = []
    open_ = set(range(count))
    while open_:
        ready = sorted(i for i in open_ if not open_.intersection(inputs[i]))
        order.append(draw(st.sampled_from(ready)))
        open_.discard(order[-1])
    return Dag(names, inputs, results), order, tags


@given(dags())
def test_each_call_gets_an_id_that_computes_the_same(
    case: tuple[Dag, list[int], list[int]],
) -> None:
    dag, order, tags = case
    reading, call_of = dag.reading(order, tags)
    ids, lost = resolve([reading], dag.wiring(), lambda r, n: r.calls[n])
    assert not lost
    assert sorted(ids.values()) == list(range(len(dag.names)))
    values = dag.values()
    live = reached(dag)
    for (_, node), identity in ids.items():
        assert dag.names[identity] == dag.names[call_of[node]]
        if call_of[node] in live:
            assert values[identity] == values[call_of[node]]


def reached(dag: Dag) -> set[int]:
    found: set[int] = set()
    stack = list(dag.results)
    while stack:
        call = stack.pop()
        if call not in found:
            found.add(call)
            stack += [i for i in dag.inputs[call] if i is not None]
    return found


@given(dags())
def test_with_its_own_tags_each_call_keeps_its_id(case: tuple[Dag, list[int], list[int]]) -> None:
    dag, order, _ = case
    live = reached(dag)
    dag.results = [r for r in range(len(dag.names)) if r in live]  # nothing is alike to a result
    reading, call_of = dag.reading(order, list(range(len(dag.names))))
    ids, _ = resolve([reading], dag.wiring(), lambda r, n: r.calls[n])
    assert {node: identity for (_, node), identity in ids.items()} == call_of


def test_a_call_read_twice_gets_a_new_id() -> None:
    reading = Reading("main")
    reading.calls = {0: "relu", 1: "relu"}
    reading.tags = {0: 3, 1: 3}
    assert by_tag([reading], iter([7]).__next__) == {("main", 0): 3, ("main", 1): 7}


def wiring(inputs: dict[int, list[Key]], results: list[Key]) -> Wiring:
    made = Wiring()
    made.inputs = dict(inputs)
    made.names = dict.fromkeys(inputs, "op")  # type: ignore[assignment]
    made.results = {"main": results}
    return made


def test_what_replaced_a_chain() -> None:
    before = wiring({0: [None], 1: [0], 2: [1], 3: [2], 4: [3]}, [4])
    after = wiring({0: [None], 9: [0], 4: [9]}, [4])
    gone, made = lineage(before, after)
    assert made == {9}
    assert gone == {i: ("replaced", [9]) for i in (1, 2, 3)}


def test_what_replaced_a_result_and_the_new_calls_above_it() -> None:
    before = wiring({0: [None], 1: [0]}, [1])
    after = wiring({0: [None], 7: [0], 8: [7, 0]}, [8])
    assert lineage(before, after)[0] == {1: ("replaced", [7, 8])}


def test_folded_dead_and_taken_by_an_older_one() -> None:
    before = wiring({0: [None], 1: [None], 2: [0, 1], 3: [None], 5: [0], 6: [5]}, [2, 6])
    after = wiring({0: [None], 2: [0, None], 6: [0]}, [2, 6])
    gone, made = lineage(before, after)
    assert not made
    assert gone == {1: ("folded", []), 3: ("dead", []), 5: ("replaced", [0])}


def test_nothing_gone() -> None:
    same = wiring({0: [None], 1: [0]}, [1])
    assert lineage(same, same) == ({}, set())


def test_an_if_is_known_by_its_place() -> None:
    def branch(node_ids: dict[int, str], swap: bool) -> Reading:
        reading = Reading("main")
        a, b, choice, last = (1, 0, 2, 3) if swap else (0, 1, 2, 3)
        reading.calls = {a: "relu", b: "relu", last: "add"}
        reading.tags = {a: 0, b: 0, last: 5}
        reading.ifs = [choice]
        reading.inputs = {a: [None], b: [None], choice: [None, a, b], last: [choice]}
        reading.results = [last]
        return reading

    known = Wiring()
    known.names = {0: "relu", 1: "relu", 5: "add"}
    known.inputs = {0: [None], 1: [None], ("main", 0): [None, 0, 1], 5: [("main", 0)]}
    known.results = {"main": [5]}

    def name(reading: Reading, node: int) -> Any:
        return reading.calls[node]

    expected: Ids = {("main", 0): 0, ("main", 1): 1, ("main", 3): 5}
    assert resolve([branch({}, False)], known, name)[0] == expected
    swapped: Ids = {("main", 1): 0, ("main", 0): 1, ("main", 3): 5}
    assert resolve([branch({}, True)], known, name)[0] == swapped
