"""Compiles the module of any step for the CPU.

A step's module can hold functions marked for a backend (``Codegen``), composite functions
(``Composite``) and local functions inside them. None of that changes what is computed, so they
are compiled here as the plain Relax functions that they are: no backend is looked for. Kernels
that one step's module shares with another's are compiled once.
"""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import Any

import tvm
import tvm_ffi
from tvm import relax

from byocviz.errors import ModuleError
from byocviz.flow.relax.inputs import entry_function
from byocviz.flow.relax.macs import visit_tir

COMPILING = threading.RLock()
"""TVM's tensor expressions keep state of their own while they are written: one thread a time."""

_MARKS = ("Codegen", "Composite", "Primitive")

# TVM's default lowering after LegalizeOps, without StaticPlanBlockMemory: that lets the two
# branches of an If share storage which only one of them allocates, and the other then crashes
# (seen in 0.26 and 0.27).
_LOWERING = (
    "NormalizeGlobalVar",
    "RewriteDataflowReshape",
    "ToNonDataflow",
    "RemovePurityChecking",
    "CallTIRRewrite",
    "LowerAllocTensor",
    "KillAfterLastUse",
    "LowerRuntimeBuiltin",
    "ComputePrimValue",
    "VMShapeLower",
    "AttachGlobalSymbol",
)


def plain_module(mod: tvm.IRModule, entry: str = "main") -> tvm.IRModule:
    """``mod`` as ordinary functions: what ``entry`` reaches, local functions lifted, no marks.

    The attributes ``Codegen``, ``Composite`` and ``Primitive`` are dropped and every Relax
    function gets a ``global_symbol``, without which the virtual machine does not find it. A
    shape that a call takes from a variable is written out: LegalizeOps asks for that, and a
    composite function takes its shapes as parameters.
    """
    entry_function(mod, entry)
    mod = relax.transform.LambdaLift()(_reachable(mod, entry))
    out = {}
    for gvar, func in mod.functions_items():
        if isinstance(func, relax.Function):
            func = with_shapes_written_out(func)
            for mark in _MARKS:
                if func.attrs and mark in func.attrs:
                    func = func.without_attr(mark)
            func = func.with_attr("global_symbol", gvar.name_hint)
        out[gvar] = func
    return tvm.IRModule(out, attrs=mod.attrs, global_infos=mod.global_infos)


@relax.expr_functor.mutator
class _WriteShapesOut(relax.expr_functor.PyExprMutator):  # type: ignore[misc]
    def visit_call_(self, call: relax.Call) -> relax.Expr:
        args = [_shape_of_variable(arg) or arg for arg in call.args]
        written = relax.Call(call.op, args, call.attrs, call.ty_args, call.span)
        return self.visit_expr_post_order(written)


def _shape_of_variable(arg: Any) -> relax.ShapeExpr | None:
    if isinstance(arg, relax.Var) and isinstance(arg.ty, relax.ShapeType):
        values = arg.ty.values
        return None if values is None else relax.ShapeExpr(list(values))
    return None


def with_shapes_written_out(func: relax.Function) -> relax.Function:
    """The function with shapes in place of variables that calls take them from.

    LegalizeOps asserts that: of a shape whose values its type knows, it reads no variable.
    """
    found: list[Any] = []

    def visit(expr: Any) -> None:
        if isinstance(expr, relax.Call) and any(_shape_of_variable(arg) for arg in expr.args):
            found.append(expr)

    relax.analysis.post_order_visit(func, visit)
    if not found:
        return func
    builder = tvm.IRModule({tvm.ir.GlobalVar("f"): func})
    return _WriteShapesOut(builder).visit_expr(func)


def _reachable(mod: tvm.IRModule, entry: str) -> tvm.IRModule:
    todo = [mod.get_global_var(entry)]
    kept: dict[Any, Any] = {}

    def visit(expr: Any) -> None:
        if isinstance(expr, tvm.ir.GlobalVar):
            todo.append(expr)

    while todo:
        gvar = todo.pop()
        if gvar in kept or gvar not in mod.functions:
            continue
        func = kept[gvar] = mod[gvar]
        if isinstance(func, relax.Function):
            relax.analysis.post_order_visit(func, visit)
        elif isinstance(func, tvm.tirx.PrimFunc):
            visit_tir(func.body, lambda node: visit(getattr(node, "op", None)))
    return tvm.IRModule(kept, attrs=mod.attrs, global_infos=mod.global_infos)


def _target(target: Any) -> tvm.target.Target:
    if isinstance(target, tvm.target.Target):
        return target
    if target is None:
        if not tvm.runtime.enabled("llvm"):
            raise ModuleError(
                "this TVM was built without LLVM, so nothing can be compiled for the CPU.",
                "Use verify=False, or a TVM with LLVM (the apache-tvm wheel has it).",
            )
        # A step is compiled to run once: at level 1 the SSD compiles in two thirds of the time
        # and runs as fast.
        return tvm.target.Target({"kind": "llvm", "opt-level": 1})
    return tvm.target.Target(target)


def compile_module(mod: tvm.IRModule, entry: str = "main", *, target: Any = None) -> Any:
    """A `tvm.relax.VMExecutable` of ``entry`` for the CPU (or ``target``).

    ``target`` is a `tvm.target.Target`, a name (``"llvm"``) or a dictionary; strings with
    options are not read by TVM any more.
    """
    with COMPILING:
        return _compiled(mod, entry, target)


def _compiled(mod: tvm.IRModule, entry: str, target: Any) -> Any:
    goal = _target(target)
    configs = set(tvm.transform.PassContext.list_configs())
    # Types are checked before the call; the checks in each TIR function are most of its code.
    config = {k: True for k in ("tirx.disable_assert", "tir.disable_assert") if k in configs}
    with goal, tvm.transform.PassContext(opt_level=2, config=config):
        lowered, libraries = _lower(plain_module(mod, entry), goal)
        lowered = lowered.with_attr("external_mods", libraries) if libraries else lowered
        return relax.build(lowered, goal, relax_pipeline=None)


def _lower(mod: tvm.IRModule, target: tvm.target.Target) -> tuple[tvm.IRModule, list[Any]]:
    """Lower to what the virtual machine runs; kernels that were compiled before are taken out.

    Returns the module and the libraries that hold those kernels.
    """
    own = {gvar.name_hint for gvar, func in mod.functions_items()}
    mod = tvm.transform.Sequential(
        [
            relax.backend.DispatchSampling(),
            relax.backend.DispatchSortScan(),
            relax.transform.LegalizeOps(),
        ]
    )(mod)
    kernels = _KERNELS.name(mod, own, target)
    mod = mod.clone()
    mod.update(tvm.IRModule(kernels))
    passes = [getattr(relax.transform, name)() for name in _LOWERING]
    mod = tvm.transform.Sequential(passes)(mod)
    names = {func.attrs["global_symbol"] for func in kernels.values()}
    kept: dict[Any, Any] = {}
    compiled: dict[Any, Any] = {}
    for gvar, func in mod.functions_items():
        (compiled if gvar.name_hint in names else kept)[gvar] = func
    return tvm.IRModule(kept, attrs=mod.attrs), _KERNELS.libraries(compiled, target)


class _Kernels:
    """Compiled TIR functions, found again by their structure.

    The steps of one recording differ in how calls are grouped, hardly in the kernels that the
    calls become; compiling those is nearly all of the time. A kernel is taken from here only
    where its TIR, its attributes and its target are equal.
    """

    LIMIT = 4096
    """Kernels kept; beyond it all are dropped."""

    def __init__(self) -> None:
        self._names: dict[Any, str] = {}
        self._libraries: dict[str, Any] = {}
        self._made = 0

    def name(
        self, mod: tvm.IRModule, own: set[str], target: tvm.target.Target
    ) -> dict[Any, tvm.tirx.PrimFunc]:
        """The kernels of ``mod`` that can be shared, each with its name as global symbol.

        Those in ``own`` are the person's; one that calls another function stays as it is.
        """
        if len(self._names) > self.LIMIT:
            self._names.clear()
            self._libraries.clear()
        out: dict[Any, tvm.tirx.PrimFunc] = {}
        taken: set[str] = set()
        for gvar, func in mod.functions_items():
            if not isinstance(func, tvm.tirx.PrimFunc):
                continue
            if gvar.name_hint in own and not _stands_alone(func):
                continue
            func = func.without_attr("global_symbol")
            key = (str(target), tvm_ffi.StructuralKey(func))  # type: ignore[call-arg]
            name = self._names.get(key)
            if name is None:
                self._made += 1
                name = self._names[key] = f"byocviz_kernel_{self._made}"
            if name not in taken:
                taken.add(name)
                out[gvar] = func.with_attr("global_symbol", name)
        return out

    def libraries(self, kernels: dict[Any, Any], target: tvm.target.Target) -> list[Any]:
        """Libraries that hold ``kernels``, compiling those that no library holds yet."""
        missing = {g: f for g, f in kernels.items() if g.name_hint not in self._libraries}
        if missing:
            library = tvm.tirx.build(tvm.IRModule(missing), target=target)
            self._libraries.update((gvar.name_hint, library) for gvar in missing)
        found: list[Any] = []
        for gvar in kernels:
            library = self._libraries[gvar.name_hint]
            if not any(library.same_as(other) for other in found):
                found.append(library)
        return found


_KERNELS = _Kernels()


@lru_cache(maxsize=4096)
def _stands_alone(func: tvm.tirx.PrimFunc) -> bool:
    """Whether a TIR function calls no other function of its module."""
    called: list[Any] = []

    def visit(node: Any) -> None:
        if isinstance(getattr(node, "op", None), tvm.ir.GlobalVar):
            called.append(node)

    visit_tir(func.body, visit)
    return not called
