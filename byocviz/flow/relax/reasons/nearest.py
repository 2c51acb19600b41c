"""The rule that comes nearest to taking an operator.

For an operator that a rule names inside its pattern, the search climbs through the users to where
the rule's last call would be, and matches from there. Of all rules it chooses the one with the
deepest agreement; of equals the one that names the operators around, nearest ones first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tvm import relax
from tvm.ir import GlobalVar

from byocviz.flow.relax.reasons.fragment import attributes
from byocviz.flow.relax.reasons.graph import Def, Index, type_text
from byocviz.flow.relax.reasons.matcher import COMMUTATIVE, Matcher, Mismatch, can_be
from byocviz.flow.relax.reasons.patterns import FUNCTION, Book, Pat, Rule

# What stands in a pattern that the operators' names and their arrangement alone do not decide:
# with attributes and types they do, for the first; for the second nothing short of matching does.
_TYPED = frozenset({"attr", "dtype", "shape", "type", "prim_array"})
_SENSITIVE = frozenset({"expr", "var", "dataflow_var", "not", "function", "other"})
_WIDEST = 8
"""Users of one value that a climb follows; a value with more is met with its first eight."""
_AROUND = 3
"""Steps away from an operator within which its neighbours are looked at."""
_DEEPEST = 6
"""Steps to which two operators' surroundings are compared before one explanation serves both."""


class Near:
    """How near a rule comes to taking an operator.

    ``root`` is its last call, where one was met; ``parts`` the operators of the match, where it is
    one.
    """

    __slots__ = ("agreed", "around", "node", "parts", "root", "rule", "why")

    def __init__(
        self,
        rule: Rule,
        node: Pat,
        root: Def | None,
        agreed: int,
        why: list[Mismatch],
        parts: Sequence[Def] = (),
    ) -> None:
        self.parts = parts
        self.around: tuple[int, ...] = ()
        """How many kinds of operators one step away the rule names, two steps away, and so on."""
        self.rule = rule
        self.node = node
        self.root = root
        self.agreed = agreed
        self.why = why

    @property
    def ok(self) -> bool:
        return not self.why

    def rank(self) -> tuple[int, ...]:
        around = (-count for count in self.around)
        return (-self.agreed, *around, len(self.why), self.rule.root.size, self.rule.index)


class _NoUser(Mismatch):
    """The value goes elsewhere than to what the pattern wants it to go to."""

    __slots__ = ()

    def __init__(self, index: Index, pat: Pat, here: Def) -> None:
        super().__init__("user", index, pat, here.var, here)

    @property
    def found(self) -> str:
        users = [use.user for use in self._index.uses(self._found.key)]
        said = [self._index.say(user.var) for user in users[:3] if user is not None]
        if None in users:
            said.append("the function's result")
        more = f" and {len(users) - 3} more" if len(users) > 3 else ""
        few = ", ".join(dict.fromkeys(said)) or "nothing"
        return f"{few}{more} {'use' if len(said) > 1 or more else 'uses'} it"


class Nearest:
    """Finds, for an operator, the rule that comes nearest to taking it."""

    def __init__(self, index: Index, book: Book) -> None:
        self.index = index
        self.book = book
        self.matcher = Matcher(index)
        self._chosen: dict[tuple[int, frozenset[int]], tuple[Rule, Pat]] = {}
        self._steps = min(book.depth, _DEEPEST)
        self._interned: dict[Any, int] = {}
        self._below: dict[tuple[int, int], int] = {}
        self._round: dict[tuple[int, int], int] = {}
        self._plain: dict[str, bool] = {}
        self._texts: dict[int, str] = {}
        self._typed = any(n.kind in _TYPED for rule in book.rules for n in rule.nodes)

    def find(self, of: Def, without: frozenset[int] = frozenset()) -> Near | None:
        """The nearest rule, one that matches before any that does not; None where none names it.

        ``without`` leaves out rules by their index. Operators with the same surroundings are
        compared with all rules once; after that only with the rule that was chosen.
        """
        rules = [r for r in self.book.naming(of.op) if r.index not in without]
        if not rules:
            return None
        key = None
        if self._arranged(of.op, rules):
            key = (self._surroundings(of, self._steps), without)
            chosen = self._chosen.get(key)
            if chosen is not None:
                return min(self._climb(chosen[0], chosen[1], of), key=self._rank, default=None)
        best: Near | None = None
        around = self._around(of)
        for rule in rules:
            fit = tuple(len(names & rule.root.names) for names in around)
            for node in rule.nodes:
                if node.kind == "call" and can_be(node, of.op):
                    for near in self._climb(rule, node, of):
                        near.around = fit
                        if best is None or self._rank(near) < self._rank(best):
                            best = near
        if key is not None and best is not None:
            self._chosen[key] = best.rule, best.node
        return best

    @staticmethod
    def _rank(near: Near) -> tuple[bool, tuple[int, ...]]:
        # Among rules that match, the first in order is the one that the pass would use.
        return (False, (near.rule.index,)) if near.ok else (True, near.rank())

    def _around(self, of: Def) -> list[set[str]]:
        """Names of the operators that feed it or use it, by the steps from it to them."""
        levels: list[set[str]] = []
        feeds, users = [of], [of]
        # No further than `_surroundings` looks: the choice made here serves all that look alike.
        for _ in range(min(self._steps, _AROUND)):
            feeds = [made for one in feeds for made in self._fed_by(one)]
            users = [
                use.user
                for one in users
                for use in self.index.uses(one.key)[:_WIDEST]
                if use.user is not None
            ][:_WIDEST]
            levels.append({one.op for one in (*feeds, *users) if one.op})
        return levels

    def _fed_by(self, of: Def) -> Iterator[Def]:
        value = of.value
        given: Sequence[Any] = ()
        if of.op:
            parts = ([*a.fields] if isinstance(a, relax.Tuple) else [a] for a in of.args)
            given = [part for some in parts for part in some]
        elif isinstance(value, relax.Tuple):
            given = list(value.fields)
        elif isinstance(value, relax.TupleGetItem):
            given = [value.tuple_value]
        elif isinstance(value, relax.Var):
            given = [value]
        for part in given[:_WIDEST]:
            made = self.index.of(part)
            while made is not None and isinstance(made.value, relax.Var):
                made = self.index.of(made.value)
            if made is not None:
                yield made

    def _climb(self, rule: Rule, start: Pat, of: Def) -> Iterator[Near]:
        """From a node of the pattern that stands for the operator up to the rule's last call."""
        stack: list[tuple[Pat, Def, int]] = [(start, of, -1)]
        while stack:
            node, here, slot = stack.pop()
            if node is rule.root and slot < 0:
                yield self._whole(rule, start, here, of)
                continue
            for parent, position in rule.parents_of(node):
                if parent.kind in ("attr", "dtype", "shape", "type", "and", "or"):
                    stack.append((parent, here, slot))
                elif parent.kind in ("call", "tuple", "unordered_tuple", "get"):
                    found = self._users(parent, position, here, slot)
                    stack.extend((parent, user, inner) for user, inner in found)
                    if not found:
                        yield self._no_user(rule, start, node, parent, here, slot)

    def _users(self, parent: Pat, position: int, here: Def, slot: int) -> list[tuple[Def, int]]:
        """Bindings that can stand for ``parent``; with the argument, where it is a tuple in one.

        ``slot`` is the argument of ``here`` in which the tuple lies that the climb has reached,
        or -1 where it has reached ``here`` itself.
        """
        if slot >= 0:
            return [(here, -1)] if parent.kind == "call" and can_be(parent, here.op) else []
        found: list[tuple[Def, int]] = []
        second: list[tuple[Def, int]] = []
        for use in self.index.uses(here.key):
            user = use.user
            if user is None:
                continue
            if parent.kind == "call":
                if user.op and use.field < 0 and can_be(parent, user.op):
                    turned = user.op in COMMUTATIVE
                    (found if use.slot == position or turned else second).append((user, -1))
            elif parent.kind == "get":
                if isinstance(user.value, relax.TupleGetItem):
                    found.append((user, -1))
            elif use.field == position or (use.field >= 0 and parent.kind == "unordered_tuple"):
                found.append((user, use.slot if user.op else -1))
            if len(found) >= _WIDEST:
                break
        return found or second[:_WIDEST]

    def _whole(self, rule: Rule, start: Pat, root: Def, of: Def) -> Near:
        outcome = self.matcher.at(rule.root, root)
        if outcome.ok:
            calls = [node for node in rule.nodes if node.kind in ("call", "get")]
            parts = self.matcher.met(calls)
        elif rule.root.names & {"relax.divide", "relax.multiply"}:
            # TVM re-associates products with quotients: it has the last word.
            below = self.index.near(root.value, rule.root.depth)
            matched = rule.pattern.extract_matched_expr(root.value, below)
            if matched is None:
                return Near(rule, start, root, outcome.agreed, outcome.why)
            inside = {hash(value) for value in dict(matched).values()}
            bound = [d for d in map(self.index.of, below) if d is not None and d.op]
            parts = [root, *(d for d in bound if hash(d.value) in inside)]
        else:
            return Near(rule, start, root, outcome.agreed, outcome.why)
        if of not in parts:
            # The match stands, with the operator as an input: another one has its place.
            other = next((d.var for d in self.matcher.met([start])), "another operator")
            why = [Mismatch("instead", self.index, start, of.var, other)]
            return Near(rule, start, root, 0, why)
        return Near(rule, start, root, outcome.agreed, [], parts)

    def _no_user(
        self, rule: Rule, start: Pat, node: Pat, parent: Pat, here: Def, slot: int
    ) -> Near:
        if slot >= 0:
            why = [Mismatch("user", self.index, parent, here.var, "the tuple goes there")]
            return Near(rule, start, None, 0, why)
        below = self.matcher.at(node, here)
        why = [_NoUser(self.index, parent, here), *below.why]
        return Near(rule, start, None, below.agreed, why)

    # Two operators whose surroundings are alike to the depth of the rules get the same rule.

    def _arranged(self, op: str, rules: list[Rule]) -> bool:
        known = self._plain.get(op)
        if known is None:
            known = not any(n.kind in _SENSITIVE for r in rules for n in r.nodes)
            self._plain[op] = known
        return known

    def _intern(self, what: Any) -> int:
        return self._interned.setdefault(what, len(self._interned))

    def _surroundings(self, of: Def, steps: int) -> int:
        key = (of.key, steps)
        known = self._round.get(key)
        if known is None:
            below = self._under(of, self._steps)
            users: Any = ()
            if steps:
                users = frozenset(
                    (u.slot, u.field, -1 if u.user is None else
                     self._surroundings(u.user, steps - 1))
                    for u in self.index.uses(of.key)
                )  # fmt: skip
            known = self._round[key] = self._intern((below, users))
        return known

    def _under(self, of: Def, steps: int) -> int:
        key = (of.key, steps)
        known = self._below.get(key)
        if known is None:
            parts: tuple[Any, ...] = ()
            if steps and of.op:
                parts = tuple(self._part(arg, steps - 1) for arg in of.args)
                if of.op == FUNCTION:
                    parts = (self._part(of.value.op, steps - 1), *parts)
            elif steps and isinstance(of.value, relax.Tuple):
                parts = tuple(self._part(field, steps - 1) for field in of.value.fields)
            elif steps and isinstance(of.value, relax.TupleGetItem):
                inner = self._part(of.value.tuple_value, steps - 1)
                parts = (int(of.value.index), inner)
            elif steps and isinstance(of.value, relax.Var):
                parts = (self._part(of.value, steps - 1),)
            name = of.op or type(of.value).__name__
            if self._typed:
                name += self._typed_text(of)
            known = self._below[key] = self._intern((name, parts))
        return known

    def _typed_text(self, of: Def) -> str:
        known = self._texts.get(of.key)
        if known is None:
            attrs = attributes(of.value.attrs) if of.op else {}
            known = type_text(of.value.ty) + str({k: str(v) for k, v in attrs.items()})
            self._texts[of.key] = known
        return known

    def _part(self, arg: Any, steps: int) -> Any:
        if isinstance(arg, relax.Var):
            made = self.index.of(arg)
            return "parameter" if made is None else self._under(made, steps)
        if isinstance(arg, relax.Tuple):
            return tuple(self._part(field, steps) for field in arg.fields)
        if isinstance(arg, GlobalVar):
            return str(arg.name_hint)
        if isinstance(arg, relax.ExternFunc):
            return str(arg.global_symbol)
        return str(arg) if self._typed and isinstance(arg, relax.ShapeExpr) else type(arg).__name__
