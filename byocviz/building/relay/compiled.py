"""What TVM compiles of Relay: a module with or without subgraphs, by one of its two executors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import tvm
from tvm import relay

from byocviz.building.errors import BuildError
from byocviz.building.processor import must_be_known
from byocviz.building.relay.codegen import codegens, compilers
from byocviz.errors import last_line
from byocviz.flow.relay.compat import attribute, functions_of, plain, typed
from byocviz.flow.relay.scopes import Body
from byocviz.flow.relay.types import dims

GRAPH, MACHINE = "graph", "vm"

_CONSTANT = re.compile(r"p\d+")
"""What the executor of graphs calls its constants."""


def target_of(target: Any) -> tvm.target.Target:
    """A target, or what TVM makes one of; None is the CPU. Raises `BuildError` for one that TVM
    does not know, or that is not the CPU's: there engines of a Relay build take their tensors."""
    if not isinstance(target, tvm.target.Target):
        try:
            target = tvm.target.Target({"kind": "llvm"} if target is None else target)
        except Exception as error:
            raise BuildError(
                f"TVM takes no target {target!r}: {last_line(error)}",
                'Give a name ("llvm"), a dictionary ({"kind": "llvm", "mcpu": ...}) or a '
                "tvm.target.Target.",
            ) from error
    if target.kind.name != "llvm":
        raise BuildError(
            f"A Relay module is built for the CPU, not for {target.kind.name!r}.",
            "Take target='llvm'; Relax modules are built for GPUs as well.",
        )
    must_be_known(target)
    return target


class Compiled:
    """Machine code of a module's entry. ``kind`` is the executor: ``graph``, or ``vm`` for what a
    graph cannot hold."""

    def __init__(self, kind: str, module: Any, names: Sequence[str]) -> None:
        self.kind = kind
        self.module = module
        """TVM's runtime module, as it is exported and loaded."""
        self.names = list(names)
        """What the executor calls the inputs."""
        self._vm: Any = None
        self._graph: Any = None
        device = tvm.cpu()
        try:
            if kind == MACHINE:
                executable = tvm.runtime.vm.Executable(module)
                self._vm = tvm.runtime.vm.VirtualMachine(executable, device)
            else:
                from tvm.contrib import graph_executor

                self._graph = graph_executor.GraphModule(module["default"](device))
        except Exception as error:
            raise BuildError(
                f"TVM does not start what it compiled: {last_line(error)}", "Please report it."
            ) from error

    def run(self, values: Sequence[Any]) -> Any:
        """The result, of TVM's tensors; ``values`` are those of `placed`."""
        if self._graph is None:
            return self._vm.run(*values)
        for name, value in zip(self.names, values, strict=True):
            self._graph.set_input(name, value)
        self._graph.run()
        count = self._graph.get_num_outputs()
        return [self._graph.get_output(index) for index in range(count)]

    def export_library(self, path: str) -> None:
        """Raises as TVM's does."""
        self.module.export_library(path)

    def taken(self, names: Sequence[str]) -> bool:
        """Whether these are the parameters of what was compiled, as an executor's calls them."""
        if self._graph is None:
            found = tvm.runtime.vm.Executable(self.module).get_function_params("main")
            return list(map(plain, found)) == list(names)
        inputs = map(plain, self._graph.get_input_info()[0])
        return sorted(n for n in inputs if not _CONSTANT.fullmatch(n)) == sorted(names)


def loaded(module: Any, function: Any) -> tuple[Compiled, bool]:
    """What TVM loaded of an exported library, as it was compiled for an entry with the parameters
    of ``function``; and whether it takes those."""
    if plain(module.type_key) == "VMExecutable":
        made, names = Compiled(MACHINE, module, []), [plain(p.name_hint) for p in function.params]
    else:
        names, _ = _names(function)
        made = Compiled(GRAPH, module, names)
    return made, made.taken(names)


def placed(value: Any) -> Any:
    """A value as TVM's executors take it."""
    if isinstance(value, tuple):
        return tvm.runtime.container.tuple_object([placed(field) for field in value])
    return value if isinstance(value, tvm.nd.NDArray) else tvm.nd.array(np.asarray(value))


def compiled(module: tvm.IRModule, entry: str, target: tvm.target.Target) -> Compiled:
    """The module by `relay.build` at opt_level 3, untuned, for the graph executor; one with
    branches, functions or open shapes for the virtual machine.

    External functions become trampolines. Raises `BuildError` where TVM does not compile it.
    """
    if regions(module):
        raise BuildError(
            "The module's regions are marked and not yet functions.",
            "Build the module of a later step: step='partition' or 'prune'.",
        )
    kind = GRAPH if _is_graph(module, entry) else MACHINE
    try:
        with codegens(compilers(module)):
            if kind == GRAPH:
                module, names = _named(complete(_alone(module, entry)))
                with tvm.transform.PassContext(opt_level=3):
                    return Compiled(kind, relay.build(module, target).module, names)
            return Compiled(kind, _machine(module, entry, target), [])
    except BuildError:
        raise
    except Exception as error:
        raise BuildError(
            f"TVM does not compile the module for {target.kind.name}: {last_line(error)}",
            "Compile it alone (relay.build(mod, target)) to see whether the partition matters.",
        ) from error


def _machine(module: tvm.IRModule, entry: str, target: tvm.target.Target) -> Any:
    from byocviz.flow.relay.verify import _as_main

    if entry != "main":  # the virtual machine's executor starts there
        module = _as_main(module, entry)
    # SimplifyExpr of TVM 0.19 breaks modules with an If; layouts are TVM's to change in graphs.
    with tvm.transform.PassContext(opt_level=1, disabled_pass=["AlterOpLayout", "SimplifyExpr"]):
        return relay.vm.compile(module, target=target).mod


def regions(module: tvm.IRModule) -> bool:
    """Whether calls of compiler_begin stand in the module."""
    return any(
        item.name.startswith("annotation.compiler_")
        for function in functions_of(module).values()
        for item in Body(function.body).items.values()
    )


def _is_graph(module: tvm.IRModule, entry: str) -> bool:
    """Whether the entry is nothing but calls of operators and external functions on tensors of
    fixed shapes."""
    functions = functions_of(module)
    function = functions[entry]
    if any(dims(param.checked_type) is None for param in function.params):
        return False
    for item in Body(function.body).items.values():
        if item.kind is relay.Call:
            if isinstance(item.op, relay.GlobalVar):
                callee = functions.get(plain(item.op.name_hint))
                if callee is None or not attribute(callee, "Compiler"):
                    return False
            elif not item.name:
                return False
        elif item.kind not in (relay.Tuple, relay.TupleGetItem):
            return False
        if not all(dims(ty) is not None for ty in _leaves(item.ty)):
            return False
    return isinstance(function.body, (relay.Call, relay.Tuple, relay.TupleGetItem))


def _leaves(ty: Any) -> list[Any]:
    if isinstance(ty, relay.TupleType):
        return [leaf for field in ty.fields for leaf in _leaves(field)]
    return [ty]


def _alone(module: tvm.IRModule, entry: str) -> tvm.IRModule:
    """The module with the entry under the name ``main``, and nothing that it does not call."""
    kept = {
        var: function
        for var, function in module.functions.items()
        if not isinstance(function, relay.Function) or attribute(function, "Compiler")
    }
    made = tvm.IRModule(kept, module.type_definitions)
    made["main"] = module[entry]
    return typed(relay.transform.RemoveUnusedFunctions(["main"])(typed(made)))


def _named(module: tvm.IRModule) -> tuple[tvm.IRModule, list[str]]:
    """The module with parameters whose names the executor does not use itself (p0, p1, ... are
    its constants), and these names."""
    function = module["main"]
    names, own = _names(function)
    if own:
        return module, names
    params = [
        relay.Var(name, param.checked_type)
        for name, param in zip(names, function.params, strict=True)
    ]
    bound = dict(zip(function.params, params, strict=True))
    body = relay.bind(function.body, bound)
    made = module.clone()
    made.update_func(made.get_global_var("main"), relay.Function(params, body, function.ret_type))
    return typed(made), names


def _names(function: Any) -> tuple[list[str], bool]:
    """What the executor of graphs calls the parameters, and whether that is their own names."""
    names = [plain(param.name_hint) for param in function.params]
    if len(set(names)) == len(names) and not any(map(_CONSTANT.fullmatch, names)):
        return names, True
    return [f"input_{index}" for index in range(len(names))], False


_CONVOLUTIONS = {
    **{f"nn.conv{n}d": ("OI" + "DHW"[3 - n :]) for n in (1, 2, 3)},
    **{f"nn.conv{n}d_transpose": ("IO" + "DHW"[3 - n :]) for n in (1, 2, 3)},
}


def complete(module: tvm.IRModule) -> tvm.IRModule:
    """The graph with ``channels`` and ``kernel_size`` in every convolution outside of external
    functions: opt_level 3 needs them (TVM 0.19)."""
    function = module["main"]
    body = Body(function.body)
    filled = ((item.key, _filled(item)) for item in body.items.values())
    found = {key: attrs for key, attrs in filled if attrs is not None}
    if not found:
        return module

    made: dict[int, Any] = {}
    for item in body.items.values():
        expr = item.expr
        parts = [made[child] if isinstance(child, int) else child for child in item.children]
        if item.kind is relay.Tuple:
            new = relay.Tuple(parts, expr.span)
        elif item.kind is relay.TupleGetItem:
            new = relay.TupleGetItem(parts[0], expr.index, expr.span)
        else:
            attrs = found.get(item.key, expr.attrs)
            new = relay.Call(item.op, parts, attrs, expr.type_args, expr.span)
        made[item.key] = new
    copy = module.clone()
    root = relay.function.FunctionWithFields(function, body=made[body.root])
    copy.update_func(copy.get_global_var("main"), root)
    return typed(copy)


def _filled(item: Any) -> Any:
    """The attributes of a convolution that lacks some, with them; None for all else."""
    if item.name not in _CONVOLUTIONS:
        return None
    attrs = item.expr.attrs
    if attrs.channels is not None and attrs.kernel_size is not None:
        return None
    shape = dims(item.expr.args[1].checked_type)
    layout = plain(attrs.kernel_layout)
    if shape is None or not layout.isalpha() or len(layout) != len(shape):
        return None
    size = {axis: shape[layout.index(axis)] for axis in layout}
    transposed = item.name.endswith("_transpose")
    channels = size["O"] * (int(attrs.groups) if transposed else 1)
    given: dict[str, Any] = {}
    for key in attrs.keys():  # noqa: SIM118  (no mapping)
        value = attrs[key]
        given[plain(key)] = plain(value) if isinstance(value, str) else value
    given["channels"] = channels if attrs.channels is None else attrs.channels
    if attrs.kernel_size is None:
        given["kernel_size"] = [size[axis] for axis in "DHW" if axis in size]
    return tvm.ir.make_node(f"relay.attrs.{type(attrs).__name__}", **given)
