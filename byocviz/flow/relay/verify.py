"""Runs the module of each step on the same inputs: what the steps change must not show."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import tvm
from tvm import relay

from byocviz.errors import ModuleError, in_short
from byocviz.flow.relay.compat import attribute, functions_of, key_of, plain
from byocviz.flow.relay.params import tensors
from byocviz.flow.relay.plain import plain_module
from byocviz.flow.relay.types import type_text

if TYPE_CHECKING:
    from byocviz.flow.relay.walk import Walk

NOT_COMPARED = "not compared: the imported module did not run"
TARGET = "llvm"
_DYNAMIC = 2
"""The size that a dimension gets that the type leaves open."""


def verify_steps(
    walk: Walk,
    params: Any,
    inputs: Mapping[str, Any] | Sequence[Any] | None,
    tell: Callable[[str, int, int], None],
) -> None:
    """Fill in `Step.max_difference` of each step, or `Step.verify_error`.

    ``inputs`` hold values by parameter name, or in order one for each parameter that ``params``
    leaves out; what they do not name gets its value from ``params``, else a seeded one. Where
    boolean scalars are seeded, which an If may stand on, all modules run twice, with all of them
    true and with all false. A step whose module is, with what BYOC put round it taken off, the
    very module of a step before is not run again.

    Raises `ModuleError` where an input does not fit the imported module.
    """
    steps = [step for step in walk.data.steps if step.error is None]
    if not steps:
        return
    function = walk.modules["import"][walk.entry]
    names = [plain(param.name_hint) for param in function.params]
    given = _given(function, names, params, inputs, walk.entry)
    try:
        runs = _seeded(function, names, given, loops(walk.modules["import"]))
    except ModuleError as error:
        steps[0].verify_error = in_short(error)
        for other in steps[1:]:
            other.verify_error = NOT_COMPARED
        return
    wanted: list[list[np.ndarray]] = []
    done: list[tuple[tvm.IRModule, float | None, str]] = []
    for index, step in enumerate(steps):
        tell(f"verify: {step.name}", index, len(steps))
        try:
            module = plain_module(walk.modules[step.name])
        except Exception as error:
            step.verify_error = in_short(error)
            if step.name == "import":
                for other in steps[1:]:
                    other.verify_error = NOT_COMPARED
                return
            continue
        known = next((d for d in done if tvm.ir.structural_equal(d[0], module, True)), None)
        if known is None:
            try:
                found = run_module(module, walk.entry, runs)
                if step.name == "import":
                    wanted = found
                worst = max(difference(a, b) for a, b in zip(wanted, found, strict=True))
                known = module, worst, ""
            except Exception as error:
                known = module, None, in_short(error)
            done.append(known)
        step.max_difference, step.verify_error = known[1:]
        if step.name == "import" and known[2]:
            for other in steps[1:]:
                other.verify_error = NOT_COMPARED
            return


def run_module(
    module: tvm.IRModule, entry: str, runs: Sequence[Mapping[str, Any]]
) -> list[list[np.ndarray]]:
    """Run ``entry`` of a module of any step on the CPU with the virtual machine, once for each of
    ``runs``; they hold the inputs by parameter name.

    Returns the outputs in order, nested tuples flattened. It runs in this process: a kernel that
    divides an integer by zero, or a recursion without end, takes the process with it.
    """
    module = plain_module(module)
    function = module[entry]
    left = [plain(param.name_hint) for param in function.params]
    if entry != "main":  # the virtual machine's executor starts there
        module = _as_main(module, entry)
    # SimplifyExpr of TVM 0.19 breaks modules with an If; neither is needed here.
    with tvm.transform.PassContext(opt_level=1, disabled_pass=["AlterOpLayout", "SimplifyExpr"]):
        executable = relay.vm.compile(module, target=TARGET)
    machine = tvm.runtime.vm.VirtualMachine(executable, tvm.cpu())
    return [flat(machine.run(*[_own(one[name]) for name in left])) for one in runs]


def _refuse_calls_of_main(module: tvm.IRModule, entry: str) -> None:
    def visit(expr: Any) -> None:
        called = expr.op if isinstance(expr, relay.Call) else None
        if isinstance(called, tvm.ir.GlobalVar) and plain(called.name_hint) == "main":
            raise ModuleError(
                f"TVM's virtual machine starts at a function named main: {entry!r} cannot be run "
                "while the module calls another one of that name.",
                "Rename that function.",
            )

    for function in functions_of(module).values():
        relay.analysis.post_order_visit(function, visit)


def _as_main(module: tvm.IRModule, entry: str) -> tvm.IRModule:
    """The module with a ``main`` that calls the entry."""
    copy = module.clone()
    var = copy.get_global_var(entry)
    function = copy[entry]
    params = [relay.Var(plain(p.name_hint), p.checked_type) for p in function.params]
    main = relay.Function(params, relay.Call(var, params), function.ret_type)
    if "main" in functions_of(copy):
        _refuse_calls_of_main(copy, entry)
        copy.update_func(copy.get_global_var("main"), main)
    else:
        copy["main"] = main
    return relay.transform.InferType()(copy)


def difference(wanted: Sequence[np.ndarray], found: Sequence[np.ndarray]) -> float:
    """Largest absolute difference of two runs; infinite where shapes, dtypes or the places of NaN
    and infinity differ."""
    if len(wanted) != len(found):
        return float("inf")
    worst = 0.0
    for a, b in zip(wanted, found, strict=True):
        if a.shape != b.shape or a.dtype != b.dtype:
            return float("inf")
        if not a.size:
            continue
        x, y = a.astype(np.float64), b.astype(np.float64)
        same = (x == y) | (np.isnan(x) & np.isnan(y))
        if np.array_equal(same, np.ones_like(same)):
            continue
        gap = float(np.abs(np.where(same, 0.0, x - np.where(same, x, y))).max())
        worst = max(worst, gap if np.isfinite(gap) else float("inf"))
    return worst


def flat(value: Any) -> list[np.ndarray]:
    """The tensors of a result, in order."""
    if isinstance(value, tvm.nd.NDArray):
        return [value.numpy()]
    found: list[np.ndarray] = []
    for field in value if hasattr(value, "__len__") else ():
        found += flat(field)
    return found


def _own(value: Any) -> Any:
    if isinstance(value, tuple):
        return tvm.runtime.container.tuple_object([_own(field) for field in value])
    return value if isinstance(value, tvm.nd.NDArray) else tvm.nd.array(value)


def _given(
    function: Any, names: Sequence[str], params: Any, inputs: Any, entry: str
) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if params:
        given |= {n: v.numpy() for n, v in tensors(function, params, entry).items()}
    if inputs is None:
        return given
    left = [name for name in names if name not in given]
    if hasattr(inputs, "shape") and len(left) == 1:
        inputs = [inputs]
    if isinstance(inputs, Mapping):
        chosen = dict(inputs)
    elif isinstance(inputs, (str, bytes)) or not hasattr(inputs, "__iter__"):
        raise ModuleError(
            f"inputs is {inputs!r}."[:200],
            "Give a mapping of parameter names to arrays, or the arrays in order.",
        )
    else:
        values = list(inputs)
        if len(values) not in (len(left), len(names)):
            raise ModuleError(
                f"inputs has {len(values)} values; {entry!r} takes {len(left)}: {', '.join(left)}.",
                "Give one for each, in order, or a mapping by name.",
            )
        chosen = dict(zip(left if len(values) == len(left) else names, values, strict=True))
    if unknown := chosen.keys() - set(names):
        raise ModuleError(
            f"{entry!r} has no parameter {', '.join(sorted(map(repr, unknown)))}.",
            f"Its parameters: {', '.join(names)[:500]}.",
        )
    types = dict(zip(names, (param.checked_type for param in function.params), strict=True))
    for name, value in chosen.items():
        given[name] = _checked(name, value, types[name])
    return given


def _checked(name: str, value: Any, ty: Any) -> Any:
    if isinstance(ty, relay.TupleType):
        fields = tuple(value)
        if len(fields) != len(ty.fields):
            raise ModuleError(
                f"input {name!r} has {len(fields)} fields; the parameter has {len(ty.fields)}.",
                "Give a tuple of as many.",
            )
        return tuple(_checked(name, v, t) for v, t in zip(fields, ty.fields, strict=True))
    array = value.numpy() if isinstance(value, tvm.nd.NDArray) else np.asarray(value)
    shape = list(ty.shape)
    fits = len(shape) == array.ndim and all(
        not isinstance(dim, tvm.tir.IntImm) or int(dim) == size
        for dim, size in zip(shape, array.shape, strict=True)
    )
    if str(array.dtype) != ty.dtype or not fits:
        raise ModuleError(
            f"input {name!r} is {array.dtype}{list(array.shape)}; the parameter is "
            f"{type_text(ty)}.",
            "Give an array of that dtype and shape.",
        )
    return array


def _seeded(
    function: Any, names: Sequence[str], given: Mapping[str, Any], recursive: bool
) -> list[dict[str, Any]]:
    """Values for all parameters, by name, for each run."""
    types = dict(zip(names, (param.checked_type for param in function.params), strict=True))
    booleans = any(
        isinstance(ty, relay.TensorType) and ty.dtype == "bool" and not len(ty.shape)
        for name, ty in types.items()
        if name not in given
    )
    choices: tuple[bool | None, ...] = (True, False) if booleans and not recursive else (None,)
    runs = []
    for choice in choices:
        rng = np.random.default_rng(0)
        runs.append(
            {
                name: given[name] if name in given else seeded(ty, rng, choice)
                for name, ty in types.items()
            }
        )
    return runs


def seeded(ty: Any, rng: np.random.Generator, condition: bool | None = None) -> Any:
    """A value of a type: floats of a normal distribution, small counts, booleans by chance."""
    if isinstance(ty, relay.TupleType):
        return tuple(seeded(field, rng, condition) for field in ty.fields)
    if not isinstance(ty, relay.TensorType):
        raise ModuleError(
            f"No value can be made up for a parameter of the type {type_text(ty)}.",
            "Give it in inputs.",
        )
    shape = [int(d) if isinstance(d, tvm.tir.IntImm) else _DYNAMIC for d in ty.shape]
    try:
        np.dtype(ty.dtype)
    except TypeError as error:
        raise ModuleError(
            f"NumPy has no type {ty.dtype}: no value can be made up.", "Give it in inputs."
        ) from error
    if ty.dtype == "bool":
        if condition is not None and not shape:
            return np.asarray(condition)
        return rng.integers(0, 2, shape).astype("bool")
    if ty.dtype.startswith(("int", "uint")):
        return rng.integers(0, 3, shape).astype(ty.dtype)
    return rng.standard_normal(shape).astype(ty.dtype)


def loops(module: tvm.IRModule) -> bool:
    """Whether a function of the module, or a local one, may come to call itself."""
    functions = functions_of(module)
    found = False

    def visit(expr: Any) -> None:
        nonlocal found
        if isinstance(expr, relay.Let) and isinstance(expr.value, relay.Function):
            free = {key_of(var) for var in relay.analysis.free_vars(expr.value)}
            found = found or key_of(expr.var) in free
        if isinstance(expr, relay.Call) and isinstance(expr.op, tvm.ir.GlobalVar):
            function = functions.get(plain(expr.op.name_hint))
            found = found or (function is not None and not attribute(function, "Compiler"))

    for function in functions.values():
        relay.analysis.post_order_visit(function, visit)
    return found
