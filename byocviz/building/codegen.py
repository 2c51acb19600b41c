"""A codegen for TVM's RunCodegen, in Python: no TVM is rebuilt.

RunCodegen looks for a global function ``relax.ext.<backend>``, gives it the external functions and
leaves a call of each one's symbol. Here that function keeps them; the symbols are registered as
global functions only while a virtual machine is made, which looks them up then and holds on to
them. So two builds may use the same names.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import tvm
import tvm_ffi
from tvm import relax
from tvm_ffi.registry import remove_global_func

from byocviz.building.errors import BuildError
from byocviz.building.names import CODEGENS
from byocviz.building.recursion import recursive, take_out
from byocviz.building.runtimes.base import Engine
from byocviz.errors import last_line
from byocviz.flow.relax.compat import attribute, plain

_lock = threading.RLock()
"""TVM's registry is one a process: what is registered for a while must be alone in it."""


@dataclass
class Offloaded:
    """A module whose external functions were taken out."""

    module: tvm.IRModule
    """Calls each external function by its symbol."""
    functions: dict[str, Any] = field(default_factory=dict)
    """The external functions by symbol; none with a native codegen."""
    native: bool = False


def native(backend: str) -> bool:
    """Whether the TVM at hand has a codegen of its own for that backend."""
    return tvm.get_global_func(f"relax.ext.{backend}", allow_missing=True) is not None


def offload(
    module: tvm.IRModule, *, codegen: str = "python", options: Mapping[str, Any] | None = None
) -> Offloaded:
    """Run RunCodegen on a partitioned module.

    ``codegen`` is ``"python"``, whose functions are yours to build, or ``"native"``: TVM's own,
    which ``options`` (by backend) are for. Nothing stays registered.

    Raises `BuildError` where ``"python"`` is asked for and this TVM has a codegen of that name,
    where ``"native"`` is and it has none or the module is recursive, where an external function
    has the name of a global function of TVM's, and where RunCodegen fails.
    """
    if codegen not in CODEGENS:
        raise BuildError(
            f"There is no codegen {codegen!r}.", "Say 'python' for byocviz's or 'native' for TVM's."
        )
    backends = _backends(module)
    functions: dict[str, Any] = {}

    def keep(given: Any, _options: Any, _constants: Any) -> list[Any]:
        for function in given:
            functions[plain(attribute(function, "global_symbol"))] = function
        return []

    with _lock, ExitStack() as stack:
        for backend in backends:
            if codegen == "native":
                _must_be_there(backend)
            else:
                _must_be_free(backend)
                stack.enter_context(registered(f"relax.ext.{backend}", keep))
        if loop := recursive(module):
            if codegen == "native":
                raise BuildError(
                    f"The function {loop!r} calls itself, which TVM's RunCodegen does not survive.",
                    "Use codegen='python', or write the loop without recursion.",
                )
            done, taken = take_out(module)
            keep(taken, None, None)
            _must_be_unused(functions)
            return Offloaded(done, functions)
        try:
            done = relax.transform.RunCodegen(dict(options or {}) or None, [])(module)
        except Exception as error:
            raise BuildError(
                f"RunCodegen failed: {last_line(error)}",
                "The module must be one that was partitioned: record it, and take the module of "
                "its last step.",
            ) from error
        # Under the lock: a machine that another thread makes registers its own for a while.
        _must_be_unused(functions)
    return Offloaded(done, functions, codegen == "native")


def _backends(module: tvm.IRModule) -> list[str]:
    found = {
        plain(attribute(function, "Codegen"))
        for _, function in module.functions_items()
        if isinstance(function, relax.Function) and attribute(function, "Codegen")
    }
    return sorted(found)


def _must_be_free(backend: str) -> None:
    if native(backend):
        raise BuildError(
            f"This TVM has a codegen for {backend!r} of its own (relax.ext.{backend}).",
            "Use it: codegen='native'. byocviz does not put its own in its place.",
        )


def _must_be_there(backend: str) -> None:
    if not native(backend):
        raise BuildError(
            f"This TVM has no codegen for {backend!r} (relax.ext.{backend} is not registered).",
            "Use byocviz's: codegen='python', or a TVM that was built with it.",
        )


def _must_be_unused(symbols: Iterable[str]) -> None:
    """A symbol stands for its engine by being registered: it must not replace one of TVM's own."""
    for symbol in symbols:
        if tvm.get_global_func(symbol, allow_missing=True) is not None:
            name = f"{symbol[:80]!r}"
            raise BuildError(
                f"The external function {name} has the name of a global function of TVM's.",
                "Rename it in the module (its global_symbol and its variable).",
                subgraph=symbol,
            )


@contextmanager
def registered(name: str, function: Callable[..., Any]) -> Iterator[None]:
    """A global function of TVM for a while; what was there under the name comes back after."""
    with _lock:
        before = tvm.get_global_func(name, allow_missing=True)
        tvm_ffi.register_global_func(name, function, override=True)
        try:
            yield
        finally:
            if before is None:
                remove_global_func(name)
            else:
                tvm_ffi.register_global_func(name, before, override=True)


def calling(engine: Engine) -> Callable[..., None]:
    """What TVM calls in place of an external function: an engine's inputs, then its outputs.

    A tuple among the parameters comes as an array of tensors; the outputs of a function that
    returns a tuple come one after the other.
    """
    split = len(engine.inputs)

    def call(*arguments: Any) -> None:
        tensors = arguments
        if not all(hasattr(argument, "data_ptr") for argument in arguments):
            tensors = tuple(_flat(arguments))
        engine.run_into(tensors[:split], tensors[split:])

    return call


def _flat(values: Any) -> Iterator[Any]:
    for value in values:
        if hasattr(value, "data_ptr"):
            yield value
        elif isinstance(value, tvm.runtime.ShapeTuple) or not hasattr(value, "__iter__"):
            continue  # shapes are known to the engine
        else:
            yield from _flat(value)


def machine(
    executable: Any, functions: Mapping[str, Callable[..., Any]], device: Any
) -> relax.VirtualMachine:
    """A virtual machine in which these functions stand for their symbols.

    It holds on to them; nothing stays registered. Raises `BuildError` where a symbol is the name of
    a global function that is there already.
    """
    with _lock, ExitStack() as stack:
        _must_be_unused(functions)
        for symbol, function in functions.items():
            stack.enter_context(registered(symbol, function))
        return relax.VirtualMachine(executable, device)
