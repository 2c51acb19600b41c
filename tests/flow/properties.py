"""What must hold of every recording, whatever the module and its dialect."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection

from byocviz.recording import Recording, Step
from byocviz.recording.schema import Graph

ORDER = ("import", "prepare", "composite", "annotate", "merge", "partition", "prune")

Producers = Callable[[Graph], dict[int, list[int]]]
"""The nodes that feed each node, tuples and elements looked through, in order of slots."""
Past = Callable[[str], Collection[str]]


def good_steps(recording: Recording) -> list[Step]:
    return [step for step in recording.steps if step.error is None]


def alive(recording: Recording, step: Step) -> set[int]:
    """Ids that have not met their end by this step, by the operators' own account."""
    rewrites = [r.name for s in recording.steps for r in s.rewrites]
    past = set(ORDER[: ORDER.index(step.name) + 1])
    found = set()
    for identity, operator in recording.ops.items():
        ended = operator.fate_by in past or (operator.fate_by in rewrites and "prepare" in past)
        made = operator.created_by
        if made and (made if made in ORDER else "prepare") not in past:
            continue
        if not (operator.fate and ended):
            found.add(identity)
    return found


def check_identity(recording: Recording, called: Callable[[str, str], bool]) -> None:
    """Each id stands in exactly one function and place; every drawn call has its id.

    ``called`` says whether a function's text calls an operator of this name.
    """
    for step in good_steps(recording):
        assert set(step.places) == alive(recording, step), step.name
        functions = {f.name: f for f in step.functions}
        drawn: Counter[int] = Counter()
        for function in step.functions:
            if function.graph is None:
                continue
            for index, node in enumerate(function.graph.nodes):
                if node.kind == "op":
                    assert node.ops, f"{step.name}: a call without an id in {function.name}"
                for identity in node.ops:
                    drawn[identity] += 1
                    place = step.places[identity]
                    assert (place.graph, place.node) == (function.name, index)
        assert set(drawn) == set(step.places)
        assert not [i for i, n in drawn.items() if n != 1]
        texts = {name: recording.texts[f.text] for name, f in functions.items()}
        for identity, place in step.places.items():
            operator = recording.ops[identity]
            assert place.function in functions
            if operator.kind == "operator":
                assert called(operator.name, texts[place.function]), (step.name, operator.name)
    for operator in recording.ops.values():
        assert all(successor in recording.ops for successor in operator.replaced_by)
        assert (operator.fate == "replaced") == bool(operator.replaced_by)


def incoming(graph: Graph) -> dict[int, list[tuple[int, int, int]]]:
    """What feeds each node: slot, node, and which of its results."""
    found: dict[int, list[tuple[int, int, int]]] = {}
    for edge in graph.edges:
        found.setdefault(edge.dst, []).append((edge.slot, edge.src, edge.out))
    return found


def connections(step: Step, producers: Producers) -> Counter[tuple[int, int]]:
    """(maker, user) of each value that passes from one operator to another, in place."""
    found: Counter[tuple[int, int]] = Counter()
    for function in step.functions:
        if function.graph is None:
            continue
        nodes = function.graph.nodes
        for user, makers in producers(function.graph).items():
            for maker in makers:
                found.update((a, b) for a in nodes[maker].ops for b in nodes[user].ops)
    return found


def check_connections(recording: Recording, producers: Producers, past: Past) -> None:
    """The steps regroup: who feeds whom is the same at each, once the module is prepared.

    ``past`` names the steps that have taken operators away by a step.
    """
    steps = {step.name: step for step in good_steps(recording)}
    if "prepare" not in steps:
        return
    wanted = connections(steps["prepare"], producers)
    for name in ("composite", "annotate", "merge"):
        if name in steps:
            lost = {i for i, o in recording.ops.items() if o.fate_by in past(name)}
            expected = Counter(
                {pair: n for pair, n in wanted.items() if not lost.intersection(pair)}
            )
            found = connections(steps[name], producers)
            assert found == expected, (name, found - expected, expected - found)


def check_reasons(recording: Recording) -> None:
    """Every operator on TVM from composite on has a reason, and no other has one."""
    for step in good_steps(recording):
        if step.name in ("import", "prepare"):
            assert not step.reasons
            continue
        on_tvm = {
            i
            for i, place in step.places.items()
            if place.on == "tvm" and not place.composite and recording.ops[i].kind == "operator"
        }
        assert set(step.reasons) == on_tvm, (step.name, on_tvm ^ set(step.reasons))
        for reason in step.reasons.values():
            assert reason.code
            assert reason.text
            assert reason.mend


def check_subgraphs(recording: Recording) -> None:
    """Subgraphs share no operator, and the profile adds up."""
    for step in good_steps(recording):
        members = [i for s in step.subgraphs for i in s.op_ids]
        assert len(members) == len(set(members))
        assert len({s.name for s in step.subgraphs}) == len(step.subgraphs)
        for index, subgraph in enumerate(step.subgraphs):
            for identity in subgraph.op_ids:
                assert step.places[identity].subgraph == index
                assert step.places[identity].on == subgraph.backend
            assert sum(subgraph.ops.values()) == sum(
                recording.ops[i].kind == "operator" for i in subgraph.op_ids
            )
            if step.name != "import":
                assert subgraph.outputs
        total = sum(recording.ops[i].kind == "operator" for i in step.places)
        assert step.profile.total == total == sum(step.profile.ops.values())
        assert step.profile.subgraphs == len(step.subgraphs)
        assert step.profile.offloaded_ops <= total
        assert 0 <= step.profile.coverage_ops <= 1
        for separation in step.separations:
            assert separation.a != separation.b
            assert max(separation.a, separation.b) < len(step.subgraphs)
            for identity in separation.path:
                assert step.places[identity].subgraph == -1
