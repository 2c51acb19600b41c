"""A matcher that says where a pattern and the code part.

It walks a rule's tree beside the expressions, as TVM's matcher does, and goes on where that one
stops: the answer is not only yes or no but how much agreed and what did not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tvm import relax
from tvm.ir import Op

from byocviz.flow.relax.compat import Constant
from byocviz.flow.relax.reasons.graph import Def, Index
from byocviz.flow.relax.reasons.patterns import FUNCTION, Pat, shape_text, shown

# TVM tries the arguments of these two the other way round as well.
COMMUTATIVE = frozenset({"relax.add", "relax.multiply"})


# Where an expression stands: a call's argument or a tuple's field, an expression itself, a phrase.
Place = tuple[Any, int] | str | Any


class Mismatch:
    """One thing that a pattern wants and the code does not give.

    ``kind`` is ``call``, ``user``, ``count``, ``constant``, ``attr``, ``dtype``, ``shape``,
    ``type``, ``same``, ``instead`` or ``other``. The words are made only when they are asked for:
    of many mismatches few are told.
    """

    __slots__ = ("_found", "_index", "_place", "_wanted", "kind", "pat")

    def __init__(
        self, kind: str, index: Index, pat: Pat, place: Place, found: Any, wanted: str = ""
    ) -> None:
        self.kind = kind
        self.pat = pat
        self._index = index
        self._place = place
        self._found = found
        self._wanted = wanted

    @property
    def place(self) -> str:
        """``argument 2 (weight) of relax.nn.conv2d``."""
        place = self._place
        if isinstance(place, str):
            return place
        if not isinstance(place, tuple):
            return self._index.say(place)
        holder, slot = place
        if isinstance(holder, relax.Call):
            named = ""
            if isinstance(holder.op, Op) and slot < len(holder.op.arguments):
                named = f" ({holder.op.arguments[slot].name})"
            return f"argument {slot + 1}{named} of {self._index.say(holder)}"
        return f"element {slot} of {self._index.say(holder)}"

    @property
    def wanted(self) -> str:
        return self._wanted or self.pat.say()

    @property
    def found(self) -> str:
        return self._found if isinstance(self._found, str) else self._index.say(self._found)

    def text(self) -> str:
        if self.kind == "user":
            return f"wants {self.wanted} as the user of {self.place}; here {self.found}"
        if self.kind == "count":
            return f"wants {self.wanted} of {self.place}; the call has {self.found}"
        if self.kind == "instead":
            return f"takes {self.found} in its place"
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


_FITS = Outcome(0, [])


def can_be(call: Pat, op: str) -> bool:
    """Whether a call pattern can stand for a call of that operator, by its name alone."""
    if call.op:
        return call.op == op
    names = call.callee.names if call.callee else frozenset()
    return not names or op in names


class Matcher:
    """Matches trees against the module of an `Index`."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self._memo: dict[int, tuple[int, Def | None]] = {}
        self._order: list[int] = []

    def at(self, pat: Pat, of: Def) -> Outcome:
        """Match a pattern against a binding's value."""
        self._memo.clear()
        self._order.clear()
        return self._met(pat, of.value, of.value, of, of.value)

    def met(self, pats: Iterable[Pat]) -> list[Def]:
        """After a match: the bindings that those parts of the pattern met, each once."""
        found = {}
        for pat in pats:
            _, made = self._memo.get(pat.key, (0, None))
            if made is not None:
                found[made.key] = made
        return list(found.values())

    def _match(self, pat: Pat, expr: Any, place: Place) -> Outcome:
        # TVM looks through a variable at what it is bound to, one step at each level.
        value, made = expr, None
        while isinstance(value, relax.Var):
            there = self.index.defs.get(hash(value))
            if there is None:
                break
            value, made = there.value, there
        return self._met(pat, expr, value, made, place)

    def _met(self, pat: Pat, expr: Any, value: Any, made: Def | None, place: Place) -> Outcome:
        key = hash(value) if made is None else made.key
        known = self._memo.get(pat.key)
        if known is not None:
            # A pattern that stands twice must meet the same value twice.
            if known[0] == key:
                return Outcome(0, [])
            return self._no("same", pat, place, expr, "the same value as before")
        mark = len(self._order)
        outcome = _FITS if pat.kind == "wildcard" else self._visit(pat, expr, value, made, place)
        if outcome.ok:
            self._memo[pat.key] = key, made
            self._order.append(pat.key)
        else:
            self._forget(mark)
        return outcome

    def _forget(self, mark: int) -> None:
        for key in self._order[mark:]:
            self._memo.pop(key, None)
        del self._order[mark:]

    def _no(
        self, kind: str, pat: Pat, place: Place, found: Any, wanted: str = "", agreed: int = 0
    ) -> Outcome:
        return Outcome(agreed, [Mismatch(kind, self.index, pat, place, found, wanted)])

    def _visit(self, pat: Pat, expr: Any, value: Any, made: Def | None, place: Place) -> Outcome:
        kind = pat.kind
        if kind == "call":
            return self._call(pat, expr, value, made, place)
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
            return self._no("other", pat, place, expr)
        if kind in ("tuple", "unordered_tuple"):
            return self._tuple(pat, expr, value, place)
        if kind == "get":
            if not isinstance(value, relax.TupleGetItem):
                return self._no("call", pat, place, expr)
            wanted = int(pat.pattern.index)
            if wanted not in (-1, int(value.index)):
                return self._no("other", pat, place, expr)
            inner = self._match(pat.args[0], value.tuple_value, (value, int(value.index)))
            return Outcome(1 + inner.agreed, inner.why)
        if kind == "function":
            return self._function(pat, expr, value, place)
        # The rest asks about one expression alone: TVM itself decides.
        if kind == "constant":
            constant: bool = isinstance(value, Constant)
            if constant:
                return Outcome(1, [])
        elif kind in ("var", "dataflow_var"):
            # To TVM a variable that is bound is what it is bound to, and so no variable.
            if pat.pattern.match(expr, self.index.near(expr, 1)):
                return Outcome(1, [])
        elif pat.pattern.match(value):
            return Outcome(1, [])
        return self._no("constant" if kind == "constant" else "other", pat, place, expr)

    def _call(self, pat: Pat, expr: Any, value: Any, made: Def | None, place: Place) -> Outcome:
        if not isinstance(value, relax.Call):
            return self._no("call", pat, place, expr)
        if made is not None:
            name, given = made.op, made.args
        else:
            name = str(value.op.name) if isinstance(value.op, Op) else FUNCTION
            given = list(value.args)
        if pat.op and name != pat.op:
            return self._no("call", pat, place, expr)
        if pat.callee is not None and pat.callee.kind != "op":
            callee = self._match(pat.callee, value.op, "the function called")
            if not callee.ok:
                return callee
        wanted = len(pat.args)
        if wanted != len(given) and (wanted > len(given) or not pat.open_ended()):
            arguments = f"{wanted} argument" + ("s" if wanted != 1 else "")
            if wanted > len(given) and pat.open_ended():
                arguments = "at least " + arguments
            return self._no("count", pat, value, str(len(given)), arguments, 1)
        straight = self._arguments(pat.args, value, given)
        if straight.ok or name not in COMMUTATIVE:
            return straight
        crossed = self._arguments(pat.args, value, given[::-1], len(given))
        return crossed if crossed.ok or crossed.agreed > straight.agreed else straight

    def _arguments(
        self, pats: Sequence[Pat], call: Any, given: list[Any], turn: int = 0
    ) -> Outcome:
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

    def _constraint(self, pat: Pat, expr: Any, value: Any, place: Place) -> Outcome:
        inner = self._match(pat.args[0], expr, place)
        if not inner.ok:
            return inner
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
                found = "absent" if there is None else shown(there)
                why.append(Mismatch("attr", self.index, pat, expr, found, f"{key} {shown(wanted)}"))
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
            found = shape_text(shape) if shape is not None else "unknown"
        else:
            found = str(ty)[:80]
        return self._no(kind, pat, expr, found, pat.detail(), inner.agreed)

    def _tuple(self, pat: Pat, expr: Any, value: Any, place: Place) -> Outcome:
        if not isinstance(value, relax.Tuple):
            return self._no("call", pat, place, expr)
        fields = list(value.fields)
        if len(fields) != len(pat.args):
            return self._no("other", pat, place, expr)
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
                why.append(Mismatch("other", self.index, part, where, "none of them"))
        # First fit is not always the right one; TVM tries every order.
        if why and pat.pattern.match(value, self.index.near(value, pat.depth)):
            return Outcome(pat.size, [])
        return Outcome(agreed, why)

    def _match_alone(self, pat: Pat, expr: Any, place: Place) -> Outcome:
        mark = len(self._order)
        outcome = self._match(pat, expr, place)
        self._forget(mark)
        return outcome

    def _function(self, pat: Pat, expr: Any, value: Any, place: Place) -> Outcome:
        if not isinstance(value, relax.Function):
            return self._no("other", pat, place, expr)
        params = list(value.params)
        if len(params) != len(pat.args) - 1:
            text = f"{len(pat.args) - 1} parameters"
            return self._no("count", pat, expr, str(len(params)), text)
        agreed, why = 1, []
        for slot, (part, param) in enumerate(zip(pat.args, params, strict=False)):
            outcome = self._match(part, param, f"parameter {slot + 1} of {self.index.say(expr)}")
            agreed += outcome.agreed
            why += outcome.why
        body = self._match(pat.args[-1], value.body, f"the body of {self.index.say(expr)}")
        return Outcome(agreed + body.agreed, why + body.why)
