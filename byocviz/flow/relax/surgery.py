"""Rebuilding Relax functions: replace, remove and splice bindings, keep everything else.

TVM's expression mutators make new variables and new calls as they go, and are slow from Python.
Here a function is walked once (`View`), what should change is written down (`Edits`), and the
lists of bindings are rebuilt around it. A call that an edit does not touch stays the same object;
one that reads another value keeps its span, operator, attributes and type. All of it is linear in
the number of bindings.

Objects of TVM have no Python identity (each access wraps them anew), so tables are keyed by
`key`, the address of the underlying object; whoever holds such a table must hold the objects too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tvm
import tvm_ffi
from tvm import relax

from byocviz.flow.relax.compat import Constant, tensor_of

Expr = Any
Var = Any
Binding = Any
Block = Any

_VAR = relax.Var
_OP = tvm.ir.Op


# -- single expressions


def key(obj: Any) -> int:
    """A table key for a TVM object: equal for two wrappers of the same object."""
    return hash(obj)


def equal(a: Any, b: Any) -> bool:
    """Structural equality of two TVM values; free variables are equal only to themselves."""
    return bool(tvm_ffi.structural_equal(a, b))


def is_constant(expr: Expr) -> bool:
    """Whether it is a tensor constant."""
    return isinstance(expr, Constant)


def to_numpy(constant: Expr) -> np.ndarray:
    """The values of a tensor constant."""
    return np.asarray(tensor_of(constant).numpy())


def op_name(expr: Expr) -> str:
    """``relax.add`` for a call of that operator; empty for anything else."""
    if isinstance(expr, relax.Call) and isinstance(expr.op, _OP):
        return str(expr.op.name)
    return ""


def static_shape(ty: Any) -> tuple[int, ...] | None:
    """The shape of a tensor type; None if it is no tensor or has an unknown dimension."""
    shape = getattr(ty, "shape", None) if isinstance(ty, relax.TensorType) else None
    if shape is None or not isinstance(shape, relax.ShapeExpr):
        return None
    dims = []
    for dim in shape.values:
        if not isinstance(dim, tvm.tirx.IntImm):
            return None
        dims.append(int(dim.value))
    return tuple(dims)


def dtype_of(ty: Any) -> str:
    """The element type of a tensor type by name; empty if it is no tensor or unknown."""
    dtype = ty.dtype if isinstance(ty, relax.TensorType) else None
    return "" if dtype is None or str(dtype) == "void" else str(dtype)


def with_args(call: Expr, args: Sequence[Expr]) -> Expr:
    """The same call on other arguments; operator, attributes, span and type stay.

    The new arguments must have the types of the old ones.
    """
    return relax.Call(
        call.op, list(args), call.attrs, list(call.ty_args), call.span, ret_ty=call.ty
    )


def typed(expr: Expr) -> Expr:
    """The expression with its type inferred; its arguments must be variables or constants."""
    return relax.BlockBuilder().normalize(expr)


def children(expr: Expr) -> Iterator[Expr]:
    """What an expression reads directly: variables, constants, nested expressions."""
    if isinstance(expr, relax.Call):
        yield expr.op
        yield from expr.args[:]
    elif isinstance(expr, relax.Tuple):
        yield from expr.fields[:]
    elif isinstance(expr, relax.TupleGetItem):
        yield expr.tuple_value


def variables(expr: Expr) -> Iterator[Var]:
    """Every occurrence of a variable in an expression, those in nested blocks too."""
    stack = [expr]
    while stack:
        item = stack.pop()
        if isinstance(item, _VAR):
            yield item
        elif isinstance(item, relax.If):
            stack += (item.cond, item.true_branch, item.false_branch)
        elif isinstance(item, relax.SeqExpr):
            stack += [b.value for block in item.blocks[:] for b in block.bindings[:]]
            stack.append(item.body)
        elif isinstance(item, relax.Function):
            stack.append(item.body)
        elif isinstance(item, relax.ShapeExpr):
            stack += [dim for dim in item.values if isinstance(dim, _VAR)]
        else:
            stack += children(item)


# -- blocks and functions


def blocks_of(expr: Expr) -> Iterator[Block]:
    """Every binding block under an expression, in order; branches and local functions too."""
    if isinstance(expr, relax.Function):
        yield from blocks_of(expr.body)
    elif isinstance(expr, relax.If):
        yield from blocks_of(expr.true_branch)
        yield from blocks_of(expr.false_branch)
    elif isinstance(expr, relax.SeqExpr):
        for block in expr.blocks[:]:
            yield block
            for binding in block.bindings[:]:
                if isinstance(binding.value, relax.If | relax.Function | relax.SeqExpr):
                    yield from blocks_of(binding.value)


def calls_in(expr: Expr) -> Iterator[Expr]:
    """Every call bound under an expression, in order."""
    for block in blocks_of(expr):
        for binding in block.bindings[:]:
            if isinstance(binding.value, relax.Call):
                yield binding.value


def relax_functions(mod: Any) -> list[tuple[Any, Any]]:
    """The Relax functions of a module (no PrimFuncs), ordered by name."""
    found = [(gv, f) for gv, f in mod.functions.items() if isinstance(f, relax.Function)]
    return sorted(found, key=lambda item: str(item[0].name_hint))


def with_functions(mod: Any, functions: Mapping[Any, Any]) -> Any:
    """A module with some functions replaced and missing types filled in; ``mod`` stays as it is."""
    changed = {key(gv): f for gv, f in functions.items()}
    table = {gv: changed.get(key(gv), f) for gv, f in mod.functions.items()}
    made = tvm.IRModule(table, attrs=mod.attrs, global_infos=mod.global_infos)
    return relax.transform.Normalize()(made)


def map_functions(mod: Any, fn: Callable[[Any, Any], Any]) -> Any:
    """Each Relax function becomes ``fn(global_var, function)``.

    Returns ``mod`` itself where ``fn`` gave every function back as it was.
    """
    changed = {}
    for gv, func in relax_functions(mod):
        made = fn(gv, func)
        if made is not func and not made.same_as(func):
            changed[gv] = made
    return with_functions(mod, changed) if changed else mod


def with_body(func: Any, body: Expr) -> Any:
    """The function around another body of the same type."""
    return relax.Function(func.params, body, func.ret_ty, func.is_pure, func.attrs, func.span)


def map_blocks(expr: Expr, fn: Callable[[Block], Sequence[Block]]) -> Expr:
    """Each binding block becomes the blocks that ``fn`` returns for it (``[block]``: unchanged).

    ``expr`` is a function, or what stands in one. Blocks in branches and local functions come
    before the block that holds them, so ``fn`` sees a block with its inner ones already done.
    """
    if isinstance(expr, relax.Function):
        body = map_blocks(expr.body, fn)
        return expr if body is expr.body or body.same_as(expr.body) else with_body(expr, body)
    if isinstance(expr, relax.If):
        then, other = map_blocks(expr.true_branch, fn), map_blocks(expr.false_branch, fn)
        if then.same_as(expr.true_branch) and other.same_as(expr.false_branch):
            return expr
        return relax.If(expr.cond, then, other, expr.span)
    if not isinstance(expr, relax.SeqExpr):
        return expr
    blocks: list[Block] = []
    changed = False
    for block in expr.blocks[:]:
        inner = _map_values(block, lambda value: map_blocks(value, fn))
        made = list(fn(inner))
        changed |= len(made) != 1 or not made[0].same_as(block)
        blocks += made
    return relax.SeqExpr(blocks, expr.body, expr.span) if changed else expr


def _map_values(block: Block, fn: Callable[[Expr], Expr]) -> Block:
    bindings, changed = [], False
    for binding in block.bindings[:]:
        value = binding.value
        if isinstance(value, relax.If | relax.Function | relax.SeqExpr):
            made = fn(value)
            if not made.same_as(value):
                binding, changed = rebind(binding, made), True
        bindings.append(binding)
    return with_bindings(block, bindings) if changed else block


def rebind(binding: Binding, value: Expr, var: Var | None = None) -> Binding:
    """The binding of the same variable, or of ``var``, to another value of the same type."""
    var = binding.var if var is None else var
    if isinstance(binding, relax.MatchCast):
        return relax.MatchCast(var, value, binding.ty, binding.span)
    return relax.VarBinding(var, value, binding.span)


def with_bindings(block: Block, bindings: Sequence[Binding]) -> Block:
    """A block of the same kind with other bindings."""
    kind = relax.DataflowBlock if isinstance(block, relax.DataflowBlock) else relax.BindingBlock
    return kind(list(bindings), block.span)


# -- analysis and edits


class View:
    """One walk over a function: what each variable is bound to, where, and how often it is read.

    Tables are keyed by `key` of the variable; the view holds the function, so keys stay valid.
    """

    def __init__(self, func: Any) -> None:
        self.func = func
        self.bindings: dict[int, Binding] = {}
        self.block: dict[int, int] = {}
        """Number of the block in which a variable is bound, in the order of `blocks_of`."""
        self.blocks: list[Block] = list(blocks_of(func))
        self.uses: Counter[int] = Counter(key(v) for v in variables(func))
        self.elements: dict[int, list[tuple[int, Var]]] = {}
        """For a tuple variable: (index, variable) of each TupleGetItem that reads it."""
        for number, block in enumerate(self.blocks):
            for binding in block.bindings[:]:
                name = key(binding.var)
                self.bindings[name] = binding
                self.block[name] = number
                if isinstance(binding.value, relax.TupleGetItem):
                    item = (int(binding.value.index), binding.var)
                    self.elements.setdefault(key(binding.value.tuple_value), []).append(item)

    def value(self, expr: Expr) -> Expr:
        """What a variable of this function is bound to, through aliases; else the expression."""
        for _ in range(len(self.bindings) + 1):
            binding = self.bindings.get(key(expr)) if isinstance(expr, _VAR) else None
            if binding is None or not isinstance(binding, relax.VarBinding):
                return expr
            expr = binding.value
        return expr

    def visible(self, expr: Expr, var: Var) -> bool:
        """Whether ``expr`` may be read where ``var`` is bound, given that it stands before.

        A dataflow variable lives in its block only.
        """
        return all(
            not isinstance(v, relax.DataflowVar)
            or self.block.get(key(v)) == self.block.get(key(var))
            for v in variables(expr)
        )

    def beside(self, var: Var, name: str, ty: Any) -> Var:
        """A new variable to be bound just before ``var``: a dataflow variable where it may be."""
        block = self.blocks[self.block[key(var)]]
        dataflow = isinstance(block, relax.DataflowBlock)
        return relax.DataflowVar(name, ty) if dataflow else _VAR(name, ty)


@dataclass
class Edits:
    """Changes to one function. Values must have the type of what they replace."""

    view: View
    bindings: dict[int, list[Binding]] = field(default_factory=dict)
    """What stands in place of the binding of a variable; an empty list removes it."""
    values: dict[int, Expr] = field(default_factory=dict)
    """What is read in place of a variable."""
    uses: Counter[int] = field(default_factory=Counter)
    """How often each variable will be read after the edits that were made so far."""
    _kept: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.uses = Counter(self.view.uses)

    def __bool__(self) -> bool:
        return bool(self.bindings or self.values)

    def rebind(self, var: Var, value: Expr, before: Sequence[Binding] = ()) -> None:
        """Bind ``var`` to another value; ``before`` are new bindings that the value reads."""
        old = self.view.bindings[key(var)]
        made = [*before, rebind(old, value)]
        self._count(old.value, -1)
        for binding in made:
            self._count(binding.value, 1)
        self.bindings[key(var)] = made

    def remove(self, var: Var) -> None:
        """Take the binding of a variable that nothing reads any more away."""
        self._count(self.view.bindings[key(var)].value, -1)
        self.bindings[key(var)] = []

    def read_instead(self, var: Var, value: Expr) -> None:
        """Wherever ``var`` was read, read ``value``; its binding goes."""
        for read in variables(value):
            self.uses[key(read)] += self.uses[key(var)]
        self.uses[key(var)] = 0
        self.values[key(var)] = value
        self.remove(var)

    def remove_unread(self, candidates: Iterable[Var]) -> None:
        """Remove those of the candidates that nothing reads any more, and what only they read.

        Candidates come in the order of their bindings, and must be bound to pure operators.
        """
        for var in reversed(list(candidates)):
            if self.uses[key(var)] == 0 and key(var) not in self.bindings:
                self.remove(var)

    def _count(self, value: Expr, step: int) -> None:
        self._kept.append(value)
        for var in variables(value):
            self.uses[key(var)] += step

    def apply(self) -> Any:
        """The function with the edits made; the same object if there are none."""
        func = self.view.func
        return self._expr(func) if self else func

    def _expr(self, expr: Expr) -> Expr:
        if isinstance(expr, relax.Function):
            body = self._expr(expr.body)
            return expr if body.same_as(expr.body) else with_body(expr, body)
        if isinstance(expr, relax.If):
            parts = [self._expr(e) for e in (expr.cond, expr.true_branch, expr.false_branch)]
            old = (expr.cond, expr.true_branch, expr.false_branch)
            same = all(a.same_as(b) for a, b in zip(parts, old, strict=True))
            return expr if same else relax.If(*parts, expr.span)
        if isinstance(expr, relax.SeqExpr):
            blocks = [self._block(block) for block in expr.blocks[:]]
            body = substitute(expr.body, self.values)
            same = all(a.same_as(b) for a, b in zip(blocks, expr.blocks, strict=True))
            if same and body.same_as(expr.body):
                return expr
            return relax.SeqExpr([b for b in blocks if len(b.bindings)], body, expr.span)
        return substitute(expr, self.values)

    def _block(self, block: Block) -> Block:
        bindings: list[Binding] = []
        changed = False
        for binding in block.bindings[:]:
            made = self.bindings.get(key(binding.var))
            changed |= made is not None
            for item in [binding] if made is None else made:
                value = self._expr(item.value)
                if not value.same_as(item.value):
                    item, changed = rebind(item, value), True
                bindings.append(item)
        return with_bindings(block, bindings) if changed else block


def substitute(expr: Expr, values: Mapping[int, Expr]) -> Expr:
    """The expression with variables replaced (by `key`); itself if it reads none of them.

    Calls keep span and type. For blocks and functions use `Edits`.
    """
    if not values:
        return expr
    if isinstance(expr, _VAR):
        found = values.get(key(expr))
        # A replacement may itself have been replaced by a later edit.
        return expr if found is None else substitute(found, values)
    if isinstance(expr, relax.Call):
        args = [substitute(a, values) for a in expr.args[:]]
        op = substitute(expr.op, values) if isinstance(expr.op, _VAR) else expr.op
        if op.same_as(expr.op) and all(a.same_as(b) for a, b in zip(args, expr.args, strict=True)):
            return expr
        return relax.Call(op, args, expr.attrs, list(expr.ty_args), expr.span, ret_ty=expr.ty)
    if isinstance(expr, relax.Tuple):
        fields = [substitute(f, values) for f in expr.fields[:]]
        if all(a.same_as(b) for a, b in zip(fields, expr.fields, strict=True)):
            return expr
        return relax.Tuple(fields, expr.span)
    if isinstance(expr, relax.TupleGetItem):
        inner = substitute(expr.tuple_value, values)
        same = inner.same_as(expr.tuple_value)
        return expr if same else relax.TupleGetItem(inner, expr.index, expr.span)
    return expr
