"""Operators after which nothing is offloaded: they, and all that depends on them, stay on TVM."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from byocviz.backends.refusal import Refusal
from byocviz.flow.identity import Wiring

CODE = "held-back"
"""Code of the reason of an operator that a rule would take."""
HELD = "it was asked that nothing be offloaded from an operator on that this one is, or depends on."


def downstream(wiring: Wiring, ids: Iterable[int]) -> set[int]:
    """These operators and every one that depends on them, by id.

    A branch counts as a user of what it is chosen by, and makes what it returns.
    """
    users = wiring.users()
    found: set[Any] = set()
    todo: list[Any] = [identity for identity in ids if identity in wiring.names]
    while todo:
        key = todo.pop()
        if key in found:
            continue
        found.add(key)
        todo += [user for user, _ in users.get(key, ())]
    return {key for key in found if isinstance(key, int)}


def held_back(patterns: Iterable[Any], ids: Iterable[int]) -> list[Any]:
    """The same FusionPatterns, which take no match that holds one of these calls (by tag)."""
    from tvm import relax

    from byocviz.backends.lowerable import guarded
    from byocviz.flow.relax.tag import tag_of

    held = frozenset(ids)

    def ask(function: Any) -> Refusal | None:
        for block in function.body.blocks[:]:
            for binding in block.bindings[:]:
                if isinstance(binding.value, relax.Call) and tag_of(binding.value) in held:
                    return Refusal(
                        CODE,
                        HELD,
                        'Take the operator off the list "stays on TVM" of the explorer.',
                    )
        return None

    return guarded(patterns, ask)


def stay_on_tvm(
    mod: Any, patterns: Iterable[Any], calls: Iterable[int], entry: str = "main"
) -> tuple[Any, list[Any]]:
    """The module with its calls numbered, and the patterns that leave some of them on TVM.

    ``calls`` are numbers of calls of the module in their order, those of ``entry`` first and then
    function by function by name; they, and all that depends on them, match no pattern.
    """
    from byocviz.flow.identity import by_tag
    from byocviz.flow.relax.reader import read_module
    from byocviz.flow.relax.tag import Tagger

    tagger = Tagger()
    mod = tagger.tag(mod, entry=entry, anew=True)
    readings = read_module(mod, entry)
    ids = by_tag(readings, tagger.new)
    wiring = Wiring.of(readings, ids, str)
    return mod, held_back(patterns, downstream(wiring, calls))


def numbers_of(mod: Any, ids: Iterable[int], entry: str = "main") -> list[int]:
    """The numbers that `stay_on_tvm` takes for calls of a tagged module, by their tags."""
    from byocviz.flow.relax.reader import read_module
    from byocviz.flow.relax.tag import Tagger

    anew = Tagger().tag(mod, entry=entry, anew=True)
    wanted = set(ids)
    return sorted(
        {
            new.tags[node]
            for old, new in zip(read_module(mod, entry), read_module(anew, entry), strict=True)
            for node, tag in old.tags.items()
            if tag in wanted
        }
    )
