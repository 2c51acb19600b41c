"""What must hold of every recording, whatever the module."""

from __future__ import annotations

from collections import Counter

import tvm_ffi

from byocviz.recording import Recording, Step
from byocviz.recording.schema import Graph

ORDER = ("import", "prepare", "composite", "annotate", "merge", "partition", "prune")
SEE_THROUGH = {"tuple", "get", "cast"}


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


def check_identity(recording: Recording) -> None:
    """Each id stands in exactly one function and place; every drawn call has its id."""
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
        for identity, place in step.places.items():
            assert place.function in functions
            name = recording.ops[identity].name
            if name.startswith("relax.") and recording.ops[identity].kind == "operator":
                text = recording.texts[functions[place.function].text]
                assert f"R.{name.removeprefix('relax.')}(" in text or "R." in text
    for operator in recording.ops.values():
        assert all(successor in recording.ops for successor in operator.replaced_by)
        assert (operator.fate == "replaced") == bool(operator.replaced_by)


def producers(graph: Graph) -> dict[int, list[int]]:
    """The nodes that feed each node, tuples and elements looked through, in order of slots."""
    incoming: dict[int, list[tuple[int, int, int]]] = {}
    for edge in graph.edges:
        incoming.setdefault(edge.dst, []).append((edge.slot, edge.src, edge.out))

    def sources(node: int) -> list[int]:
        if graph.nodes[node].kind not in SEE_THROUGH:
            return [node]
        feeds = sorted(incoming.get(node, ()))
        if graph.nodes[node].kind == "get":
            (_, whole, index) = feeds[0]
            if graph.nodes[whole].kind == "tuple":
                fields = {slot: src for slot, src, _ in incoming.get(whole, ())}
                return sources(fields[index]) if index in fields else []
        return [origin for _, src, _ in feeds for origin in sources(src)]

    return {
        node: [origin for _, src, _ in sorted(feeds) for origin in sources(src)]
        for node, feeds in incoming.items()
    }


def connections(step: Step) -> Counter[tuple[int, int]]:
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


def check_connections(recording: Recording) -> None:
    """The steps regroup: who feeds whom is the same at each, once the module is prepared."""
    steps = {step.name: step for step in good_steps(recording)}
    if "prepare" not in steps:
        return
    wanted = connections(steps["prepare"])
    for name in ("composite", "annotate", "merge"):
        if name in steps:
            past = ("composite", "merge") if name == "merge" else ("composite",)
            lost = {i for i, o in recording.ops.items() if o.fate_by in past}
            expected = Counter(
                {pair: n for pair, n in wanted.items() if not lost.intersection(pair)}
            )
            found = connections(steps[name])
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
        assert {s.name for s in step.subgraphs}.__len__() == len(step.subgraphs)
        for index, subgraph in enumerate(step.subgraphs):
            for identity in subgraph.op_ids:
                assert step.places[identity].subgraph == index
                assert step.places[identity].on == subgraph.backend
            assert sum(subgraph.ops.values()) == sum(
                recording.ops[i].kind == "operator" for i in subgraph.op_ids
            )
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


def check_all(recording: Recording) -> None:
    check_identity(recording)
    check_connections(recording)
    check_reasons(recording)
    check_subgraphs(recording)


def check_calls(recording: Recording) -> None:
    """Each step's call, pasted, makes the step's module from the one that it names."""

    modules = recording.__dict__["modules"]
    for step in good_steps(recording):
        index = ORDER.index(step.name)
        source = {"annotate": "prepare", "merge": "composite"}.get(step.name, ORDER[index - 1])
        if step.name == "import":
            continue
        scope = {"mod": modules[source], "params": None}
        exec(compile(step.call, f"<{step.name}>", "exec"), scope)
        assert tvm_ffi.structural_equal(scope["mod"], modules[step.name]), step.name
