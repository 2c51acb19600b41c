"""Operators on constants are computed now, where that is surely safe and cheap.

TVM's FoldConstant runs whatever it can compile, in this process: a division of integers by zero
or an index out of range ends it, a loop without end never returns, and every operator is
compiled by itself (about 30 ms each). Here `foldable` says what may be run, and those operators
are compiled as one function whose parameters are the constants, so that equal operators share a
kernel.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tvm
from tvm import relax

from byocviz.flow.relax import surgery as s
from byocviz.flow.relax.compat import tensor_of
from byocviz.flow.relax.prepare import foldable
from byocviz.flow.relax.prepare.context import PrepareContext, RewriteSpec
from byocviz.flow.relax.verify import compile_module

LARGEST = 4 * 2**20
"""Bytes that a constant may take that is larger than what it is made of."""
WORK = 250e6
"""`foldable.work` that is done in one module; 50 million multiply-accumulates."""
MOST_CALLS = 2000
"""Operators that are computed in one module."""
MOST_KINDS = 250
"""Kernels that are compiled in one module, about 20 ms each."""
MOST_RUNS = 64
"""Functions that are compiled and run in one module."""

TOO_LARGE = f"an operator whose constant result would grow to more than {LARGEST // 2**20} MiB"
TOO_MUCH = (
    f"an operator on constants for which more than {WORK / 5e6:.0f} million multiply-accumulates "
    f"(or {WORK / 1e6:.0f} million elements read and written) would be done in all"
)
TOO_MANY = (
    f"an operator on constants beyond the first {MOST_CALLS} (or {MOST_KINDS} different ones, or "
    f"{MOST_RUNS} runs)"
)
TVM_RAISED = "an operator on constants on which TVM raised an error"
NOT_FOLDED = "an operator on constants that reads one that was not computed"
NO_COMPILER = "an operator on constants: this TVM was built without LLVM, so nothing is computed"


def run(mod: Any, ctx: PrepareContext) -> Any:
    """See `SPEC`."""
    budget = _Budget()
    return s.map_functions(mod, lambda _, func: _rewrite(mod, func, budget, ctx))


@dataclass
class _Budget:
    """What may still be done in this module."""

    work: float = field(default_factory=lambda: WORK)
    calls: int = field(default_factory=lambda: MOST_CALLS)
    runs: int = field(default_factory=lambda: MOST_RUNS)
    kinds: set[tuple[str, ...]] = field(default_factory=set)

    def take(self, call: Any) -> str:
        """Why there is nothing left for the call; "" where there was, and it is taken."""
        cost, kind = foldable.work(call), foldable.kind(call)
        if cost > self.work:
            return TOO_MUCH
        new = kind not in self.kinds
        if self.calls <= 0 or self.runs <= 0 or (new and len(self.kinds) >= MOST_KINDS):
            return TOO_MANY
        self.kinds.add(kind)
        self.work -= cost
        self.calls -= 1
        return ""


def _rewrite(mod: Any, func: Any, budget: _Budget, ctx: PrepareContext) -> Any:
    folding = _Folding(s.View(func), budget)
    edits = folding.run()
    for cause, times in Counter(folding.left.values()).items():
        ctx.leave(cause, times)
    ctx.count += len(folding.done)
    return edits.apply()


class _Folding:
    """The constant operators of one function, computed in rounds.

    Where an operator's safety depends on values, it waits for the round after the one in which
    they are computed.
    """

    def __init__(self, view: s.View, budget: _Budget) -> None:
        self.view = view
        self.budget = budget
        self.values: dict[int, Any] = {}
        """The constants that were made, by the variable."""
        self.done: dict[int, Any] = {}
        """Bindings that are not needed any more, by the variable."""
        self.left: dict[int, str] = {}
        """Causes by the variable."""

    def run(self) -> s.Edits:
        while True:
            chosen, waiting = self._choose()
            before = len(self.done)
            self._compute(chosen)
            if not waiting or len(self.done) == before:
                break
        self.left.update(dict.fromkeys(waiting, NOT_FOLDED))
        edits = s.Edits(self.view)
        for name, binding in self.done.items():
            if name in self.values:
                edits.read_instead(binding.var, self.values[name])
            else:
                edits.remove(binding.var)  # only such operators read it
        return edits

    def _choose(self) -> tuple[list[Any], list[int]]:
        """Bindings of what reads nothing but constants, also through one another, in order; and
        variables of those that wait for a value."""
        known: dict[int, int] = {}
        """Bytes of what is constant, by variable."""
        chosen: list[Any] = []
        waiting: list[int] = []
        for block in self.view.blocks:
            for binding in block.bindings[:]:
                if not isinstance(binding, relax.VarBinding):
                    continue
                name, value = s.key(binding.var), binding.value
                if s.is_constant(value) or s.key(value) in known or name in self.done:
                    known[name] = _bytes(binding.var.ty) or 0
                    continue
                if (shape := _shape_read(value)) is not None:
                    self.values[name] = relax.const(np.array(shape, "int64"), "int64")
                    self.done[name] = binding
                    known[name] = _bytes(binding.var.ty) or 0
                    continue
                size = _bytes(binding.var.ty)
                if size is None or not _evaluable(value) or name in self.left:
                    continue
                read = [_argument_bytes(argument, known) for argument in value.args]
                sizes = [n for n in read if n is not None]
                if len(sizes) != len(read):
                    continue
                cause = foldable.refusal(value, self._value_of)
                if cause == foldable.WAIT:
                    waiting.append(name)
                    continue
                if not cause and size > max(LARGEST, *sizes, 0):
                    cause = TOO_LARGE
                if not cause and not tvm.runtime.enabled("llvm"):
                    cause = NO_COMPILER
                cause = cause or self.budget.take(value)
                if cause:
                    self.left[name] = cause
                else:
                    known[name] = size
                    chosen.append(binding)
        return chosen, waiting

    def _constant(self, expr: Any) -> Any:
        """The constant that an argument is; None where it is none, or not yet."""
        end = expr
        while isinstance(end, relax.Var):
            made = self.values.get(s.key(end))
            if made is not None:
                return made
            binding = self.view.bindings.get(s.key(end))
            if not isinstance(binding, relax.VarBinding):
                return None
            end = binding.value
        return end if s.is_constant(end) else None

    def _value_of(self, expr: Any) -> np.ndarray | None:
        constant = self._constant(expr)
        return None if constant is None else s.to_numpy(constant)

    def _compute(self, chosen: Sequence[Any]) -> None:
        """Compute them together; where that raises, in halves, so that one costs no other."""
        ready = []
        for binding in chosen:
            if any(s.key(v) in self.left for v in self._read(binding.value)):
                self.left[s.key(binding.var)] = NOT_FOLDED
            else:
                ready.append(binding)
        if not ready:
            return
        if self.budget.runs <= 0:
            self.left.update({s.key(binding.var): TOO_MANY for binding in ready})
            return
        self.budget.runs -= 1
        try:
            made = self._evaluate(ready)
        except Exception:  # whatever a lowering or a compiler raises
            if len(ready) == 1:
                self.left[s.key(ready[0].var)] = TVM_RAISED
                return
            half = len(ready) // 2
            self._compute(ready[:half])
            self._compute(ready[half:])
            return
        self.values |= made
        self.done |= {s.key(binding.var): binding for binding in ready}

    def _read(self, call: Any) -> list[Any]:
        """The variables that a call reads, behind aliases."""
        found = []
        for var in s.variables(call):
            binding = self.view.bindings.get(s.key(var))
            while isinstance(binding, relax.VarBinding) and isinstance(binding.value, relax.Var):
                var = binding.value
                binding = self.view.bindings.get(s.key(var))
            found.append(var)
        return found

    def _evaluate(self, chosen: Sequence[Any]) -> dict[int, Any]:
        """Constants by variable, of those that anything else than these bindings reads."""
        inner = Counter(s.key(v) for binding in chosen for v in s.variables(binding.value))
        wanted = [b for b in chosen if self.view.uses[s.key(b.var)] != inner[s.key(b.var)]]
        if not wanted:
            return {}
        copies: dict[int, Any] = {}
        params: dict[int, tuple[Any, Any]] = {}

        def copied(expr: Any) -> Any:
            if isinstance(expr, relax.Tuple):
                return relax.Tuple([copied(part) for part in expr.fields])
            constant = self._constant(expr)
            if constant is not None:
                # A parameter: a scalar that stands in the code would make a kernel of its own.
                made = relax.Var(f"p{len(params)}", constant.ty)
                return params.setdefault(s.key(constant), (made, constant))[0]
            if isinstance(expr, relax.Var):
                return copies[s.key(self._read(expr)[0])]
            return expr

        block = []
        for number, binding in enumerate(chosen):
            call, var = binding.value, relax.DataflowVar(f"v{number}", binding.var.ty)
            args = [copied(argument) for argument in call.args]
            value = relax.Call(call.op, args, call.attrs, list(call.ty_args), ret_ty=call.ty)
            block.append(relax.VarBinding(var, value))
            copies[s.key(binding.var)] = var
        results = [copies[s.key(binding.var)] for binding in wanted]
        out = relax.Var("out", relax.TupleType([var.ty for var in results]))
        block.append(relax.VarBinding(out, relax.Tuple(results)))
        body = relax.SeqExpr([relax.DataflowBlock(block)], out)
        inputs = list(params.values())
        func = relax.Function([var for var, _ in inputs], body, out.ty)
        func = func.with_attr("global_symbol", "main")
        small = relax.transform.Normalize()(tvm.IRModule({tvm.ir.GlobalVar("main"): func}))
        machine = relax.VirtualMachine(compile_module(small), tvm.cpu())
        given = [tensor_of(constant) for _, constant in inputs]
        made = {}
        for binding, tensor in zip(wanted, machine["main"](*given), strict=True):
            # A copy: it may be a view. Without the type relax.const makes 32 bits of 64.
            values = np.array(tensor.numpy())
            constant = relax.const(values, str(values.dtype))
            if not s.equal(constant.ty, binding.var.ty):
                raise TypeError(f"{constant.ty} was made where {binding.var.ty} stands")
            made[s.key(binding.var)] = constant
        return made


def _bytes(ty: Any) -> int | None:
    """Bytes of a tensor of known shape and type that lives on no device in particular."""
    shape, dtype = s.static_shape(ty), s.dtype_of(ty)
    if shape is None or not dtype or getattr(ty, "vdevice", None) is not None:
        return None
    try:
        return math.prod(shape) * max(np.dtype(dtype).itemsize, 1)
    except TypeError:  # bfloat16 and the like, of two bytes at most
        return math.prod(shape) * 2


def _evaluable(call: Any) -> bool:
    """Whether TVM knows how to compute a call: an operator with a lowering, or a PrimFunc."""
    name = s.op_name(call)
    return name == "relax.call_tir" or (bool(name) and call.op.get_attr("FLegalize") is not None)


def _shape_read(value: Any) -> list[int] | None:
    """The sizes that a call gives as a tensor, where it reads nothing but a known shape."""
    if s.op_name(value) != "relax.shape_to_tensor":
        return None
    ty = value.args[0].ty
    sizes = ty.values if isinstance(ty, relax.ShapeType) else None
    if sizes is None or not all(isinstance(size, tvm.tirx.IntImm) for size in sizes):
        return None
    return [int(size) for size in sizes]


def _argument_bytes(argument: Any, known: dict[int, int]) -> int | None:
    """Bytes of a constant argument, 0 for what is no tensor; None if it is not constant."""
    if isinstance(argument, relax.Tuple):
        parts = [_argument_bytes(field, known) for field in argument.fields]
        sizes = [n for n in parts if n is not None]
        return sum(sizes) if len(sizes) == len(parts) else None
    if isinstance(argument, relax.Var):
        return known.get(s.key(argument))
    if s.is_constant(argument):
        return _bytes(argument.ty) or 0
    if isinstance(argument, relax.ShapeExpr):
        return 0 if all(isinstance(d, tvm.tirx.IntImm) for d in argument.values) else None
    if isinstance(argument, relax.Call | relax.TupleGetItem | relax.Function):
        return None
    return 0


SPEC = RewriteSpec(
    name="fold-constants",
    text="Operators on constants are computed now, on the CPU: those that are surely safe to run "
    "here, up to a bound of work.",
    origin="byocviz",
    assumes="Floats may round otherwise than on the target.",
    call='from byocviz.flow.relax.prepare import apply\nmod, _ = apply(mod, "fold-constants")',
    run=run,
)
