"""Finds out what a check objects to, by changing one thing at a time until it says yes.

A rule's check answers with a bare bool. The matched piece is cut out (`fragment`), built alone on
fresh parameters, and given to the same rule through ``FuseOpsByPattern``, as it is and with one
facet changed (`facets`). A change after which the rule matches is a cause, shown rather than
guessed. Where no single one does, the changes that let the check come furthest are kept and the
search goes on from there; what a set of changes does not need is dropped again.

A check may take long, and is asked some hundred times: `Clock` ends that.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import combinations, islice
from typing import Any

from tvm import relax

from byocviz.flow.relax.reasons.checks import with_check
from byocviz.flow.relax.reasons.facet import Change, Facet
from byocviz.flow.relax.reasons.facets import facets
from byocviz.flow.relax.reasons.fragment import Fragment, cut, key_of
from byocviz.flow.relax.reasons.graph import Index
from byocviz.flow.relax.reasons.patterns import Rule
from byocviz.flow.relax.reasons.trace import Answer, short_path
from byocviz.flow.relax.tag import tag_of

_MOST_PROBES = 700
_MOST_TOGETHER = 4
_MOST_PARTS = 80
"""Of axes that were changed together, how many choices of fewer are tried, fewest first."""
_OTHERS = 3
"""Further single changes that would do, named beside the first."""


TIME = 2.0
"""Seconds that checks may take by themselves while they are probed, all of them together."""
_TIME_OF_ONE = TIME / 2
_QUICK = TIME / 20
"""Seconds that a check may take even where others took all of the time."""


@dataclass(frozen=True)
class Flip:
    """A facet's change: what it was and what the rule accepts."""

    facet: Facet
    accepted: str
    change: Change


@dataclass
class Cause:
    """Why a check refused, as far as probing shows.

    ``flips`` together make the rule match; empty where nothing did. ``alone`` is true where the
    rule takes the piece as it is, so that only its surroundings can be the cause; ``leaks`` names
    the variables whose use outside the match makes the difference.
    """

    flips: list[Flip] = field(default_factory=list)
    others: list[Flip] = field(default_factory=list)
    alone: bool = False
    leaks: tuple[int, ...] = ()
    where: str = ""
    condition: str = ""
    error: str = ""
    probes: int = 0
    stopped: bool = False
    """Nothing was found in the time given; there was more to try."""


class Clock:
    """The time that checks took while they were probed."""

    def __init__(self) -> None:
        self.total = 0.0
        self.by_rule: dict[int, float] = {}
        self.places: dict[int, str] = {}
        """Where the check of a rule begins, of those that were asked."""

    def ask(self, rule: Rule, answer: Answer, context: Any) -> None:
        """Let the rule's check answer, and count the time."""
        start = time.perf_counter()
        try:
            answer.watch(rule.check, context)
        finally:
            seconds = time.perf_counter() - start
            self.total += seconds
            self.by_rule[rule.index] = self.by_rule.get(rule.index, 0.0) + seconds
            if answer.code is not None:
                place = f"{short_path(answer.code.co_filename)}:{answer.code.co_firstlineno}"
                self.places[rule.index] = place

    def over(self, rule: Rule) -> bool:
        """Whether the rule's check is not to be asked any more. Slow checks leave quick ones
        theirs."""
        own = self.by_rule.get(rule.index, 0.0)
        return own >= _TIME_OF_ONE or (self.total >= TIME and own >= _QUICK)


class Prober:
    """Probes each kind of refused match once."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self.kinds: dict[tuple[Any, ...], Cause] = {}
        self._places: dict[tuple[int, int], tuple[Cause, tuple[str, ...]]] = {}
        self._clock = Clock()
        self._stopped: dict[int, Cause] = {}
        self._together: dict[int, dict[Any, list[Flip]]] = {}
        """Changes that a rule needed together, by the rule: tried first with its other kinds."""

    def cause(self, rule: Rule, call: Any) -> tuple[Cause, tuple[str, ...]]:
        """The cause of a refusal of the rule's match whose last call is ``call``, the same object
        for all matches of its kind; and the variables of this one that leak."""
        place = (rule.index, hash(call))
        known = self._places.get(place)
        if known is None:
            known = self._places[place] = self._cause(rule, call)
        return known

    def _cause(self, rule: Rule, call: Any) -> tuple[Cause, tuple[str, ...]]:
        fragment = cut(self.index, rule, call)
        if fragment is None:
            if self._clock.over(rule):
                return self._not_asked(rule), ()
            answer = self._ask_in_place(rule, call)
            cause = Cause(where=answer.where(), condition=answer.condition(), error=answer.error)
            return cause, ()
        key = key_of(fragment, rule.index)
        known = self.kinds.get(key)
        if known is None and self._clock.over(rule):
            return self._not_asked(rule), ()
        if known is None:
            together = self._together.setdefault(rule.index, {})
            search = _Search(rule, fragment, self._clock)
            known = self.kinds[key] = search.run(together.values())
            if len(known.flips) > 1:
                together.setdefault(
                    tuple((f.facet.label, f.accepted) for f in known.flips), known.flips
                )
            if known.alone:
                answer = self._ask_in_place(rule, call)
                known.where, known.condition = answer.where(), answer.condition()
                known.error = answer.error
        return known, tuple(fragment.steps[number].name for number in known.leaks)

    def _not_asked(self, rule: Rule) -> Cause:
        """The cause where the check had its time: the same for all further kinds of its match."""
        made = Cause(where=self._clock.places.get(rule.index, ""), stopped=True)
        return self._stopped.setdefault(rule.index, made)

    def _ask_in_place(self, rule: Rule, call: Any) -> Answer:
        """Ask the check in the module itself, about the one match; nothing is taken."""
        answer = Answer()
        tag = tag_of(call)

        def ask(context: Any) -> bool:
            if tag_of(context.matched_expr) == tag:
                self._clock.ask(rule, answer, context)
            return False

        relax.transform.FuseOpsByPattern([with_check(rule.fusion, ask)])(self.index.module)
        return answer


class _Search:
    def __init__(self, rule: Rule, fragment: Fragment, clock: Clock) -> None:
        self.rule = rule
        self.fragment = fragment
        self.clock = clock
        self.probes = 0
        self.stopped = False

    def run(self, known: Iterable[list[Flip]] = ()) -> Cause:
        """``known`` are changes that together made the rule take a piece of another shape."""
        base = self._ask(self.fragment)
        if base is None:
            return Cause()
        cause = Cause(where=base.where(), condition=base.condition(), error=base.error)
        if base.accepted:
            cause.alone = True
            leaking = self.fragment.leaking
            together = self._ask(self.fragment, leak=True) if leaking else None
            if together is not None and not together.accepted:
                cause.leaks = leaking
            return cause
        flips = next((found for some in known if (found := self._again(some, base))), [])
        others: list[Flip] = []
        if not flips:
            flips, others = self._climb(base)
        cause.flips = self._narrow(self._fewest(flips))
        cause.others = [self._narrow([flip])[0] for flip in others]
        cause.probes = self.probes
        cause.stopped = self.stopped and not cause.flips
        return cause

    def _again(self, flips: list[Flip], base: Answer) -> list[Flip]:
        """The same changes of this piece, where they do here too."""
        made: list[Flip] = []
        here: Fragment | None = self.fragment
        answer: Answer | None = base
        for flip in flips:
            if here is None or answer is None:
                return []
            for facet in facets(here, answer.words):
                change = dict(facet.options).get(flip.accepted)
                if facet.label == flip.facet.label and change is not None:
                    made.append(Flip(facet, flip.accepted, change))
                    here = _apply(change, here)
                    answer = self._ask(here) if here is not None else None
                    break
            else:
                return []
        return made if answer is not None and answer.accepted else []

    def _climb(self, base: Answer) -> tuple[list[Flip], list[Flip]]:
        held: list[Flip] = []
        here, answer = self.fragment, base
        while len(held) < _MOST_TOGETHER and not self._spent():
            found: list[Flip] = []
            further: tuple[tuple[int, int], Flip, Fragment, Answer] | None = None
            # Values that a deeper line mentions come to light only once the check gets there.
            for facet in self._ranked(here, answer, held):
                if facet.group and any(flip.facet.group == facet.group for flip in found):
                    continue
                for text, change in facet.options:
                    if self._spent():
                        break
                    made = _apply(change, here)
                    said = self._ask(made) if made is not None else None
                    if made is None or said is None:
                        continue
                    flip = Flip(facet, text, change)
                    if said.accepted:
                        found.append(flip)
                        break
                    if said.further_than(answer) and (
                        further is None or said.progress() > further[0]
                    ):
                        further = said.progress(), flip, made, said
                if len(found) > _OTHERS:
                    break
            if found:
                return [*held, found[0]], found[1:] if not held else []
            if further is None:
                return (self._pair(base), []) if not held else ([], [])
            _, flip, here, answer = further
            held.append(flip)
        return [], []

    def _ranked(self, here: Fragment, answer: Answer, held: list[Flip]) -> list[Facet]:
        """Facets that the refusing condition speaks of first, of those the ones whose present
        value it does not mention: that one is asked for, the others are not."""
        text = answer.condition()
        done = {flip.facet.label for flip in held}

        def rank(facet: Facet) -> tuple[bool, bool]:
            spoken = any(word in text for word in facet.words)
            quoted = f"'{facet.seen}'" in text
            return (not spoken, quoted)

        found = [f for f in facets(here, answer.words) if f.label not in done]
        return sorted(found, key=rank)

    def _pair(self, base: Answer) -> list[Flip]:
        """Two changes that only together make the rule match, where the check shows no progress."""
        options = [
            Flip(facet, text, change)
            for facet in self._ranked(self.fragment, base, [])
            for text, change in facet.options[:3]
        ]
        for number, first in enumerate(options):
            once = _apply(first.change, self.fragment)
            if once is None:
                continue
            for second in options[number + 1 :]:
                if self._spent():
                    return []
                if second.facet.label == first.facet.label:
                    continue
                twice = _apply(second.change, once)
                said = self._ask(twice) if twice is not None else None
                if said is not None and said.accepted:
                    return [first, second]
        return []

    def _fewest(self, flips: list[Flip]) -> list[Flip]:
        """Drop what the rule does not need."""
        kept = list(flips)
        for flip in flips[:-1]:
            fewer = [f for f in kept if f is not flip]
            if self._agrees(fewer):
                kept = fewer
        return kept

    def _narrow(self, flips: list[Flip]) -> list[Flip]:
        """Of axes (or symbols) that were changed together, leave those that need not change."""
        kept = list(flips)
        for place, flip in enumerate(flips):

            def agrees(parts: tuple[Any, ...], place: int = place, flip: Flip = flip) -> bool:
                fewer = _part(flip, parts)
                if fewer is None or not self._agrees([*kept[:place], fewer, *kept[place + 1 :]]):
                    return False
                kept[place] = fewer
                return True

            if len(flip.facet.parts) > 1:
                _fewest_parts(flip.facet.parts, agrees)
        return kept

    def _agrees(self, flips: list[Flip]) -> bool:
        made: Fragment | None = self.fragment
        for flip in flips:
            made = _apply(flip.change, made) if made is not None else None
        said = self._ask(made) if made is not None else None
        return said is not None and said.accepted

    def _spent(self) -> bool:
        if self.clock.over(self.rule):
            self.stopped = True
        return self.stopped or self.probes >= _MOST_PROBES

    def _ask(self, fragment: Fragment, leak: bool = False) -> Answer | None:
        """What the rule says of a fragment; None where TVM cannot build it or finds no match, and
        where the time is over."""
        if self.probes and self.clock.over(self.rule):
            self.stopped = True
            return None
        self.probes += 1
        try:
            module = fragment.build(leak)
        except Exception:  # an attribute's value or a shape that the operator does not allow
            return None
        answer = Answer()
        last = len(fragment.steps) - 1

        def ask(context: Any) -> bool:
            if tag_of(context.matched_expr) == last:
                self.clock.ask(self.rule, answer, context)
            return False

        try:
            relax.transform.FuseOpsByPattern([with_check(self.rule.fusion, ask)])(module)
        except Exception:
            return None
        return answer if answer.asked else None


def _apply(change: Change, fragment: Fragment) -> Fragment | None:
    try:
        return change(fragment)
    except Exception:  # a value that the attribute cannot hold
        return None


def _part(flip: Flip, parts: tuple[Any, ...]) -> Flip | None:
    """The same change of some of the parts."""
    facet = flip.facet.only(parts) if flip.facet.only is not None else None
    changes = dict(facet.options) if facet is not None else {}
    if facet is None or flip.accepted not in changes:
        return None
    return Flip(facet, flip.accepted, changes[flip.accepted])


def _fewest_parts(parts: tuple[Any, ...], agrees: Callable[[tuple[Any, ...]], bool]) -> None:
    """Ask for one part, for each two and so on; where they are too many, for all but one."""
    fewer = (some for count in range(1, len(parts)) for some in combinations(parts, count))
    if any(map(agrees, islice(fewer, _MOST_PARTS))) or 2 ** len(parts) - 2 <= _MOST_PARTS:
        return
    kept = parts
    for part in parts:
        left = tuple(p for p in kept if p != part)
        if left and agrees(left):
            kept = left
