"""A matcher that says where a pattern and the code part.

It walks a rule's tree beside the expressions, as TVM's matcher does, and goes on where that one
stops: the answer is not only yes or no but how much agreed and what did not. For an operator that
a rule names inside its pattern, it climbs through the users to where the rule's last call would
be, and from all rules chooses the one with the deepest agreement.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tvm import relax
from tvm.ir import Op

from ..compat import Constant
from .graph import Def, Index
from .patterns import FUNCTION, Book, Pat, Rule

# TVM tries the arguments of these two the other way round as well.
_COMMUTATIVE = frozenset({"relax.add", "relax.multiply"})
# What stands in a pattern that the operators' names and their arrangement alone do not decide.
_SENSITIVE = frozenset(
    {"attr", "dtype", "shape", "type", "prim_array", "expr", "var", "dataflow_var", "not",
     "global_var", "extern", "function", "other"}
)  # fmt: skip
_WIDEST = 8
"""Users of one value that a climb follows; a value with more is met with its first eight."""
_DEEPEST = 6
"""Steps to which two operators' surroundings are compared before one explanation serves both."""


class Mismatch:
    """One thing that a pattern wants and the code does not give.

    ``kind`` is ``call``, ``user``, ``count``, ``constant``, ``attr``, ``dtype``, ``shape``,
    ``type``, ``same`` or ``other``; ``place`` is where, ``wanted`` and ``found`` in words.
    """

    __slots__ = ("found", "kind", "pat", "place", "wanted")

    def __init__(self, kind: str, place: str, wanted: str, found: str, pat: Pat) -> None:
        self.kind = kind
        self.place = place
        self.wanted = wanted
        self.found = found
        self.pat = pat

    def text(self) -> str:
        if self.kind == "user":
            return f"wants {self.wanted} as the user of {self.place}; here {self.found}"
        if self.kind == "count":
            return f"wants {self.wanted} of {self.place}; the call has {self.found}"
        if self.kind in ("attr", "dtype", "shape", "type"):
            return f"wants {self.wanted} of {self.place}; here it is {self.found}"
        return f"wants {self.wanted} as {self.place}; here it is {self.found}"


class Outcome:
    """``agreed`` counts the calls, constants, tuples and constraints of the pattern that fit."""

    __slots__ = ("agreed", "why")

    def __init__(self, agreed: int, why: list[Mismatch]) -> None:
        self.agreed = agreed
        self.why = why

    @property
    def ok(self) -> bool:
        return not self.why


class Near:
    """How near a rule comes to taking an operator. ``root`` is its last call, where one was met."""

    __slots__ = ("agreed", "node", "root", "rule", "why")

    def __init__(
        self, rule: Rule, node: Pat, root: Def | None, agreed: int, why: list[Mismatch]
    ) -> None:
        self.rule = rule
        self.node = node
        self.root = root
        self.agreed = agreed
        self.why = why

    @property
    def ok(self) -> bool:
        return not self.why

    def rank(self) -> tuple[int, int, int, int]:
        return (-self.agreed, len(self.why), self.rule.root.size, self.rule.index)


def _can_be(call: Pat, op: str) -> bool:
    """Whether a call pattern can stand for a call of that operator, by its name alone."""
    if call.op:
        return call.op == op
    names = call.callee.names if call.callee else frozenset()
    return not names or op in names


# Where an expression stands: a call's argument, a tuple's field, or a phrase.
_Place = tuple[Any, int] | str


class Matcher:
    """Matches trees against the module of an `Index`."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self._memo: dict[int, int] = {}
        self._order: list[int] = []

    def at(self, pat: Pat, expr: Any, place: str) -> Outcome:
        """Match a pattern against an expression: a call, or a variable bound to one."""
        self._memo.clear()
        self._order.clear()
        return self._match(pat, expr, place)

    def _match(self, pat: Pat, expr: Any, place: _Place) -> Outcome:
        kind = pat.kind
        # A pattern that stands twice must meet the same value twice.
        value = self.index.value(expr)
        known = self._memo.get(pat.key)
        if known is not None:
            if known == hash(value):
                return Outcome(0, [])
            return self._no("same", pat, expr, place, "the same value as before")
        if kind == "wildcard":
            self._remember(pat, value)
            return Outcome(0, [])
        mark = len(self._order)
        outcome = self._visit(pat, expr, value, place)
        if outcome.ok:
            self._remember(pat, value)
        else:
            self._forget(mark)
        return outcome

    def _remember(self, pat: Pat, value: Any) -> None:
        self._memo[pat.key] = hash(value)
        self._order.append(pat.key)

    def _forget(self, mark: int) -> None:
        for key in self._order[mark:]:
            self._memo.pop(key, None)
        del self._order[mark:]

    def _no(
        self, kind: str, pat: Pat, expr: Any, place: _Place, wanted: str = "", found: str = ""
    ) -> Outcome:
        where = self.place(place)
        said = found or self.index.say(expr)
        return Outcome(0, [Mismatch(kind, where, wanted or pat.say(), said, pat)])

    def place(self, place: _Place) -> str:
        """``argument 2 (weight) of relax.nn.conv2d``."""
        if isinstance(place, str):
            return place
        holder, slot = place
        if isinstance(holder, relax.Call):
            named = ""
            if isinstance(holder.op, Op) and slot < len(holder.op.arguments):
                named = f" ({holder.op.arguments[slot].name})"
            return f"argument {slot + 1}{named} of {self.index.say(holder)}"
        return f"element {slot} of {self.index.say(holder)}"

    def _visit(self, pat: Pat, expr: Any, value: Any, place: _Place) -> Outcome:
        kind = pat.kind
        if kind == "call":
            return self._call(pat, expr, value, place)
        if kind in ("attr", "dtype", "shape", "type"):
            return self._constraint(pat, expr, value, place)
        if kind == "or":
            mark = len(self._order)
            left = self._match(pat.args[0], expr, place)
            if left.ok:
                return left
            self._forget(mark)
            right = self._match(pat.args[1], expr, place)
            better = right.agreed > left.agreed or len(right.why) < len(left.why)
            return right if right.ok or better else left
        if kind == "and":
            left = self._match(pat.args[0], expr, place)
            right = self._match(pat.args[1], expr, place)
            return Outcome(left.agreed + right.agreed, left.why + right.why)
        if kind == "not":
            mark = len(self._order)
            if not self._match(pat.args[0], expr, place).ok:
                return Outcome(0, [])
            self._forget(mark)
            return self._no("other", pat, expr, place)
        if kind in ("tuple", "unordered_tuple"):
            return self._tuple(pat, expr, value, place)
        if kind == "get":
            if not isinstance(value, relax.TupleGetItem):
                return self._no("call", pat, expr, place)
            wanted = int(pat.pattern.index)
            if wanted not in (-1, int(value.index)):
                return self._no("other", pat, expr, place)
            inner = self._match(pat.args[0], value.tuple_value, (value, int(value.index)))
            return Outcome(1 + inner.agreed, inner.why)
        if kind == "function":
            return self._function(pat, expr, value, place)
        # The rest asks about one expression alone: TVM itself decides.
        asked = expr if kind in ("var", "dataflow_var") else value
        if kind == "constant" and isinstance(value, Constant):
            return Outcome(1, [])
        if kind != "constant" and pat.pattern.match(asked):
            return Outcome(1, [])
        return self._no("constant" if kind == "constant" else "other", pat, expr, place)

    def _call(self, pat: Pat, expr: Any, value: Any, place: _Place) -> Outcome:
        if not isinstance(value, relax.Call):
            return self._no("call", pat, expr, place)
        made = self.index.of(expr)
        op = value.op
        name = made.op if made is not None and made.op else ""
        if not name and isinstance(op, Op):
            name = str(op.name)
        name = name or FUNCTION
        if pat.op and name != pat.op:
            return self._no("call", pat, expr, place)
        if pat.callee is not None and pat.callee.kind != "op":
            callee = self._match(pat.callee, op, f"the function called as {self.place(place)}")
            if not callee.ok:
                return callee
        given = list(value.args)
        wanted = len(pat.args)
        if wanted != len(given) and (wanted > len(given) or not pat.open_ended()):
            arguments = f"{wanted} argument" + ("s" if wanted != 1 else "")
            if wanted > len(given) and pat.open_ended():
                arguments = "at least " + arguments
            where = self.index.say(value)
            return Outcome(1, [Mismatch("count", where, arguments, str(len(given)), pat)])
        straight = self._arguments(pat.args, value, given)
        if straight.ok or name not in _COMMUTATIVE:
            return straight
        crossed = self._arguments(pat.args, value, given[::-1], len(given))
        return crossed if crossed.ok or crossed.agreed > straight.agreed else straight

    def _arguments(self, pats: Sequence[Pat], call: Any, given: list[Any], turn: int = 0) -> Outcome:
        """All arguments, also those after one that does not fit: each is worth naming."""
        mark = len(self._order)
        agreed, why = 1, []
        for slot, (part, arg) in enumerate(zip(pats, given, strict=False)):
            outcome = self._match(part, arg, (call, turn - 1 - slot if turn else slot))
            agreed += outcome.agreed
            why += outcome.why
        if why:
            self._forget(mark)
        return Outcome(agreed, why)

    def _constraint(self, pat: Pat, expr: Any, value: Any, place: _Place) -> Outcome:
        inner = self._match(pat.args[0], expr, place)
        if not inner.ok:
            return inner
        whose = self.index.say(expr)
        kind = pat.kind
        if kind == "attr":
            attrs = getattr(value, "attrs", None)
            why = []
            for key, wanted in dict(pat.pattern.attrs).items():
                alone = pat.args[0].pattern.has_attr({key: wanted})
                # The inner pattern matched already; only this attribute can fail.
                if alone.match(value, self.index.near(value, pat.depth)):
                    continue
                there = getattr(attrs, key, None) if attrs is not None else None
                found = "absent" if there is None else str(there)
                why.append(Mismatch("attr", whose, f"{key} {wanted}", found, pat))
            return Outcome(inner.agreed + (not why), why)
        ty = getattr(value, "ty", None)
        if kind == "dtype":
            found = str(getattr(ty, "dtype", None) or "of no one dtype")
            if found == str(pat.pattern.dtype):
                return Outcome(inner.agreed + 1, [])
        elif pat.pattern.match(value, self.index.near(value, pat.depth)):
            return Outcome(inner.agreed + 1, [])
        elif kind == "shape":
            shape = getattr(ty, "shape", None)
            found = "(" + ", ".join(str(d) for d in shape) + ")" if shape is not None else "unknown"
        else:
            found = str(ty)[:80]
        return Outcome(inner.agreed, [Mismatch(kind, whose, pat.detail(), found, pat)])

    def _tuple(self, pat: Pat, expr: Any, value: Any, place: _Place) -> Outcome:
        if not isinstance(value, relax.Tuple):
            return self._no("call", pat, expr, place)
        fields = list(value.fields)
        if len(fields) != len(pat.args):
            return self._no("other", pat, expr, place)
        agreed, why = 1, []
        if pat.kind == "tuple":
            for slot, (part, field) in enumerate(zip(pat.args, fields, strict=True)):
                outcome = self._match(part, field, (value, slot))
                agreed += outcome.agreed
                why += outcome.why
            return Outcome(agreed, why)
        left = list(range(len(fields)))
        for part in pat.args:
            tried = [(self._match_alone(part, fields[i], (value, i)), i) for i in left]
            fitting = [(o, i) for o, i in tried if o.ok]
            if fitting:
                outcome, slot = fitting[0]
                self._match(part, fields[slot], (value, slot))
                left.remove(slot)
                agreed += outcome.agreed
            else:
                where = f"one element of {self.index.say(expr)}"
                why.append(Mismatch("other", where, part.say(), "none of them", part))
        # First fit is not always the right one; TVM tries every order.
        if why and pat.pattern.match(value, self.index.near(value, pat.depth)):
            return Outcome(pat.size, [])
        return Outcome(agreed, why)

    def _match_alone(self, pat: Pat, expr: Any, place: _Place) -> Outcome:
        mark = len(self._order)
        outcome = self._match(pat, expr, place)
        self._forget(mark)
        return outcome

    def _function(self, pat: Pat, expr: Any, value: Any, place: _Place) -> Outcome:
        if not isinstance(value, relax.Function):
            return self._no("other", pat, expr, place)
        params = list(value.params)
        if len(params) != len(pat.args) - 1:
            text = f"{len(pat.args) - 1} parameters"
            return Outcome(
                0, [Mismatch("count", self.index.say(expr), text, str(len(params)), pat)]
            )
        agreed, why = 1, []
        for slot, (part, param) in enumerate(zip(pat.args, params, strict=False)):
            outcome = self._match(part, param, f"parameter {slot + 1} of {self.index.say(expr)}")
            agreed += outcome.agreed
            why += outcome.why
        body = self._match(pat.args[-1], value.body, f"the body of {self.index.say(expr)}")
        return Outcome(agreed + body.agreed, why + body.why)


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
        for rule in rules:
            for node in rule.nodes():
                if node.kind == "call" and _can_be(node, of.op):
                    for near in self._climb(rule, node, of):
                        if best is None or self._rank(near) < self._rank(best):
                            best = near
        if key is not None and best is not None:
            self._chosen[key] = best.rule, best.node
        return best

    @staticmethod
    def _rank(near: Near) -> tuple[bool, tuple[int, int, int, int]]:
        # Among rules that match, the first in order is the one that the pass would use.
        return (False, (near.rule.index, 0, 0, 0)) if near.ok else (True, near.rank())

    def _climb(self, rule: Rule, start: Pat, of: Def) -> Iterator[Near]:
        """From a node of the pattern that stands for the operator up to the rule's last call."""
        stack: list[tuple[Pat, Def, int]] = [(start, of, -1)]
        while stack:
            node, here, slot = stack.pop()
            if node is rule.root and slot < 0:
                yield self._whole(rule, start, here)
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
            return [(here, -1)] if parent.kind == "call" and _can_be(parent, here.op) else []
        found: list[tuple[Def, int]] = []
        second: list[tuple[Def, int]] = []
        for use in self.index.uses(here.key):
            user = use.user
            if user is None:
                continue
            if parent.kind == "call":
                if user.op and use.field < 0 and _can_be(parent, user.op):
                    turned = user.op in _COMMUTATIVE
                    (found if use.slot == position or turned else second).append((user, -1))
            elif parent.kind == "get":
                if isinstance(user.value, relax.TupleGetItem):
                    found.append((user, -1))
            elif use.field == position or (use.field >= 0 and parent.kind == "unordered_tuple"):
                found.append((user, use.slot if user.op else -1))
            if len(found) >= _WIDEST:
                break
        return found or second[:_WIDEST]

    def _whole(self, rule: Rule, start: Pat, root: Def) -> Near:
        outcome = self.matcher.at(rule.root, root.value, f"the last call ({root.name})")
        why = outcome.why
        # TVM has the last word: it also re-associates products with quotients.
        if why and rule.root.names & {"relax.divide", "relax.multiply"}:
            near = self.index.near(root.value, rule.root.depth + 1)
            if rule.pattern.match(root.value, near):
                return Near(rule, start, root, rule.root.size, [])
        return Near(rule, start, root, outcome.agreed, why)

    def _no_user(
        self, rule: Rule, start: Pat, node: Pat, parent: Pat, here: Def, slot: int
    ) -> Near:
        if slot >= 0:
            found = f"the tuple goes to {here.op or self.index.say(here.value)} ({here.name})"
            place, below = f"a tuple that holds it ({here.name})", Outcome(0, [])
        else:
            users = [u.user for u in self.index.uses(here.key)]
            said = [f"{self.index.say(u.value)} ({u.name})" for u in users[:3] if u is not None]
            if None in users:
                said.append("the function's result")
            more = f" and {len(users) - 3} more" if len(users) > 3 else ""
            found = (", ".join(dict.fromkeys(said)) or "nothing") + more
            found += " use it" if len(said) > 1 or more else " uses it"
            place = f"{self.index.say(here.value)} ({here.name})"
            below = self.matcher.at(node, here.value, place)
        why = [Mismatch("user", place, parent.say(), found, parent), *below.why]
        return Near(rule, start, None, below.agreed, why)

    # Two operators whose surroundings are alike to the depth of the rules get the same rule.

    def _arranged(self, op: str, rules: list[Rule]) -> bool:
        known = self._plain.get(op)
        if known is None:
            known = not any(n.kind in _SENSITIVE for r in rules for n in r.nodes())
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
            elif steps and isinstance(of.value, relax.Tuple):
                parts = tuple(self._part(field, steps - 1) for field in of.value.fields)
            elif steps and isinstance(of.value, relax.TupleGetItem):
                inner = self._part(of.value.tuple_value, steps - 1)
                parts = (int(of.value.index), inner)
            elif steps and isinstance(of.value, relax.Var):
                parts = (self._part(of.value, steps - 1),)
            name = of.op or type(of.value).__name__
            known = self._below[key] = self._intern((name, parts))
        return known

    def _part(self, arg: Any, steps: int) -> Any:
        if isinstance(arg, relax.Var):
            made = self.index.of(arg)
            return "parameter" if made is None else self._under(made, steps)
        if isinstance(arg, relax.Tuple):
            return tuple(self._part(field, steps) for field in arg.fields)
        return type(arg).__name__
