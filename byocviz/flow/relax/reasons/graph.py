"""The module as the reasons read it: every binding once, by its variable and by its tag."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tvm import relax
from tvm.ir import GlobalVar, Op

from byocviz.errors import ModuleError
from byocviz.flow.relax.compat import Constant, attribute
from byocviz.flow.relax.reasons.patterns import FUNCTION
from byocviz.flow.relax.tag import tag_of


class Block:
    """A binding block, and where it lies."""

    __slots__ = ("dataflow", "function", "inside", "primitive")

    def __init__(self, dataflow: bool, function: str, inside: str, primitive: bool) -> None:
        self.dataflow = dataflow
        self.function = function
        self.inside = inside
        """"" or ``a branch of an If`` or ``a local function``."""
        self.primitive = primitive
        """The function has the attribute Primitive, and FuseOpsByPattern passes it by."""


class Def:
    """A binding: a variable and what it is bound to."""

    __slots__ = ("_args", "block", "key", "op", "tag", "value", "var")

    def __init__(self, var: Any, value: Any, block: Block) -> None:
        self.var = var
        self.value = value
        self.block = block
        self.key = hash(var)
        self.tag = -1
        self.op = ""
        """The operator's name, where it is a call of one; `FUNCTION` for a call of a function."""
        self._args: list[Any] | None = None

    @property
    def args(self) -> list[Any]:
        """A call's arguments."""
        if self._args is None:
            self._args = list(self.value.args)
        return self._args

    @property
    def name(self) -> str:
        return "%" + str(self.var.name)


class Use:
    """One use of a variable. ``user`` is None where a block's or function's result uses it.

    ``slot`` is the argument's index in a call; ``field`` the index in a tuple that stands in that
    argument itself, or -1.
    """

    __slots__ = ("field", "slot", "user")

    def __init__(self, user: Def | None, slot: int, field: int = -1) -> None:
        self.user = user
        self.slot = slot
        self.field = field


class Index:
    """Every binding of every Relax function of a module. One linear walk."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.defs: dict[int, Def] = {}
        self.tagged: dict[int, Def] = {}
        self._results: list[Any] = []
        self._uses: dict[int, list[Use]] | None = None
        for name, function in module.functions.items():
            if isinstance(function, relax.Function):
                primitive = bool(attribute(function, "Primitive"))
                self._function(function, str(name.name_hint), "", primitive)

    def _function(self, function: Any, name: str, inside: str, primitive: bool) -> None:
        stack = [(function.body, inside)]
        while stack:
            body, where = stack.pop()
            if not isinstance(body, relax.SeqExpr):
                self._results.append(body)
                continue
            self._results.append(body.body)
            for block in body.blocks:
                home = Block(isinstance(block, relax.DataflowBlock), name, where, primitive)
                for binding in block.bindings:
                    value = binding.value
                    made = Def(binding.var, value, home)
                    self.defs[made.key] = made
                    if isinstance(value, relax.Call):
                        op = value.op
                        made.op = str(op.name) if isinstance(op, Op) else FUNCTION
                        made.tag = tag_of(value)
                        if made.tag >= 0:
                            self.tagged.setdefault(made.tag, made)
                    elif isinstance(value, relax.If):
                        stack.append((value.true_branch, "a branch of an If"))
                        stack.append((value.false_branch, "a branch of an If"))
                    elif isinstance(value, relax.Function):
                        stack.append((value.body, "a local function"))

    def at(self, tag: int) -> Def:
        """The binding of a tagged call.

        Raises:
            ModuleError: no call of the module bears the tag.
        """
        found = self.tagged.get(tag)
        if found is None:
            raise ModuleError(
                f"Operator {tag} stands nowhere in the module that its reason was asked of.",
                "Ask of the module that FuseOpsByPattern was run on, with its tags.",
            )
        return found

    def of(self, expr: Any) -> Def | None:
        """What a variable is bound to; None for a parameter and for what is no variable."""
        return self.defs.get(hash(expr)) if isinstance(expr, relax.Var) else None

    def value(self, expr: Any) -> Any:
        """The expression, or what its variable is bound to, through any chain of variables."""
        while isinstance(expr, relax.Var):
            made = self.defs.get(hash(expr))
            if made is None:
                return expr
            expr = made.value
        return expr

    def uses(self, key: int) -> list[Use]:
        """Where the value of the variable with that hash is used, in the order of the text.

        A variable bound to this one (``gv = lv``) uses nothing by itself: its uses count.
        """
        found = self.direct_uses(key)
        if any(u.user is not None and isinstance(u.user.value, relax.Var) for u in found):
            through: list[Use] = []
            for use in found:
                other = use.user is not None and isinstance(use.user.value, relax.Var)
                through.extend(self.uses(use.user.key) if use.user and other else [use])
            return through
        return found

    def direct_uses(self, key: int) -> list[Use]:
        """Where the variable with that hash itself is read."""
        if self._uses is None:
            self._uses = {}
            for made in list(self.defs.values()):
                for var, slot, field in _reads(made.value):
                    self._uses.setdefault(var, []).append(Use(made, slot, field))
            for result in self._results:
                for part in result.fields if isinstance(result, relax.Tuple) else (result,):
                    if isinstance(part, relax.Var):
                        self._uses.setdefault(hash(part), []).append(Use(None, 0))
        return self._uses.get(key, [])

    def near(self, expr: Any, depth: int) -> dict[Any, Any]:
        """Variables and values to that depth below an expression, for TVM's own matcher.

        TVM checks the type of every entry of such a map at each call, so the map of a whole
        function would make one match linear in the function.
        """
        found: dict[int, Def] = {}
        front = [expr]
        for _ in range(depth):
            reached: list[Any] = []
            for value in front:
                for variable in _variables(value):
                    made = self.defs.get(hash(variable))
                    while made is not None and made.key not in found:
                        found[made.key] = made
                        if not isinstance(made.value, relax.Var):
                            reached.append(made.value)
                            break
                        made = self.defs.get(hash(made.value))
            front = reached
        return {d.var: d.value for d in found.values()}

    def say(self, expr: Any) -> str:
        """What stands there, in few words: ``parameter w``, ``relax.nn.relu (%lv3)``."""
        if isinstance(expr, relax.Var):
            made = self.defs.get(hash(expr))
            if made is None:
                return f"parameter {expr.name}"
            if isinstance(made.value, relax.Var):
                return self.say(made.value)
            return f"{self.say(made.value)} ({made.name})"
        if _is_constant(expr):
            return f"a constant {type_text(expr.ty)}"
        if isinstance(expr, relax.Call):
            if isinstance(expr.op, Op):
                return str(expr.op.name)
            return f"a call of {self.say(expr.op)}"
        if isinstance(expr, relax.Tuple):
            return f"a tuple of {len(expr.fields)}"
        if isinstance(expr, relax.TupleGetItem):
            return f"element {int(expr.index)} of {self.say(expr.tuple_value)}"
        if isinstance(expr, relax.ShapeExpr):
            return f"the shape {type_text(expr.ty)}"
        if isinstance(expr, relax.If):
            return "the result of an If"
        if isinstance(expr, relax.Function):
            return "a local function"
        if isinstance(expr, GlobalVar):
            return f"function {expr.name_hint}"
        if isinstance(expr, relax.ExternFunc):
            return f"external function {expr.global_symbol}"
        return str(getattr(expr, "value", expr))[:60]


def _is_constant(expr: Any) -> bool:
    return isinstance(expr, Constant)


def _variables(expr: Any) -> Iterator[Any]:
    if isinstance(expr, relax.Var):
        yield expr
    elif isinstance(expr, relax.Call):
        for arg in expr.args:
            yield from _variables(arg)
        if isinstance(expr.op, relax.Var):
            yield expr.op
    elif isinstance(expr, relax.Tuple):
        for field in expr.fields:
            yield from _variables(field)
    elif isinstance(expr, relax.TupleGetItem):
        yield from _variables(expr.tuple_value)


def _reads(value: Any) -> Iterator[tuple[int, int, int]]:
    """Hash, argument and field of each variable that a value reads."""
    if isinstance(value, relax.Var):
        yield hash(value), 0, -1
    elif isinstance(value, relax.Call):
        for slot, arg in enumerate(value.args):
            if isinstance(arg, relax.Var):
                yield hash(arg), slot, -1
            elif isinstance(arg, relax.Tuple):
                for field, part in enumerate(arg.fields):
                    if isinstance(part, relax.Var):
                        yield hash(part), slot, field
        if isinstance(value.op, relax.Var):
            yield hash(value.op), -1, -1
    elif isinstance(value, relax.Tuple):
        for field, part in enumerate(value.fields):
            if isinstance(part, relax.Var):
                yield hash(part), 0, field
    elif isinstance(value, relax.TupleGetItem):
        if isinstance(value.tuple_value, relax.Var):
            yield hash(value.tuple_value), 0, -1
    elif isinstance(value, relax.If) and isinstance(value.cond, relax.Var):
        yield hash(value.cond), 0, -1


def dims(values: Any) -> str:
    return ", ".join(str(getattr(d, "value", d)) for d in values)


def type_text(ty: Any) -> str:
    """A type as ``float32[1, 3, n]``; ``shape (1, 3)``; ``(float32[1], ...)`` for a tuple."""
    if isinstance(ty, relax.TensorType):
        dtype = str(ty.dtype) if ty.dtype is not None else "?"
        if isinstance(ty.shape, relax.ShapeExpr):
            return f"{dtype}[{dims(ty.shape.values)}]"
        return f"{dtype}[{', '.join('?' * ty.ndim)}]" if ty.ndim >= 0 else f"{dtype}[...]"
    if isinstance(ty, relax.ShapeType):
        if ty.values is None:
            return "shape of unknown dimensions"
        return f"({dims(ty.values)})"
    if isinstance(ty, relax.TupleType):
        return "(" + ", ".join(type_text(field) for field in ty.fields) + ")"
    return str(ty)[:60]
