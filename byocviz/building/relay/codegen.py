"""A codegen for Relay in Python: no TVM is rebuilt.

While it compiles a module, TVM looks for a global function ``relay.ext.<compiler>`` and gives it
each external function. What is returned for it here is a trampoline: a function in machine code
under the external function's symbol, which hands its tensors to one global function of byocviz's.
That one looks the engine up by symbol in what runs at the moment, so that two builds may use the
same symbols, and nothing of a build stays registered.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import tvm
from tvm import relay, te

from byocviz.building.errors import BuildError, EngineError
from byocviz.building.lower.graph import numpy_dtype
from byocviz.flow.relay.compat import attribute, functions_of, plain
from byocviz.flow.relay.types import dims, type_text

HOST = "byocviz.relay.call"
"""The global function that trampolines call, with the symbol and all tensors."""

_lock = threading.RLock()
"""TVM's registry is one a process: what is registered for a while must be alone in it."""

Call = Callable[..., None]


class _Running(threading.local):
    """What stands for each symbol in this thread: that of the run that goes on."""

    def __init__(self) -> None:
        self.stack: list[Mapping[str, Call]] = []


_running = _Running()


@contextmanager
def running(calls: Mapping[str, Call]) -> Iterator[None]:
    """Within, in this thread: a trampoline calls what stands here for its symbol."""
    _host()
    _running.stack.append(calls)
    try:
        yield
    finally:
        _running.stack.pop()


def _host() -> None:
    """Register what trampolines call, once a process."""
    if tvm.get_global_func(HOST, allow_missing=True) is None:
        tvm.register_func(HOST, _called)


def _called(symbol: str, *tensors: Any) -> None:
    stack = _running.stack
    name = plain(symbol)
    if stack and name not in stack[-1]:
        raise EngineError(
            f"The build that runs has no engine for {name}.",
            "Its library is of another build: build and save it again.",
        )
    if not stack:
        raise EngineError(
            f"{name} was called outside of a build's run.",
            "Run it by the build: build.run(inputs), or byocviz.load_build(folder).run(inputs).",
        )
    stack[-1][name](*map(view, tensors))


def view(tensor: Any) -> np.ndarray:
    """A tensor of TVM's on the CPU as an array in the same memory."""
    shape, dtype = tuple(tensor.shape), numpy_dtype(str(tensor.dtype))
    array = tensor.handle.contents
    count = int(np.prod(shape, dtype="int64"))
    if not count:
        return np.empty(shape, dtype)
    place = array.data + array.byte_offset
    memory: Any = (ctypes.c_byte * (count * dtype.itemsize)).from_address(place)
    made: np.ndarray = np.ndarray(shape, dtype, buffer=memory)
    return made


def calling(engine: Any) -> Call:
    """What a trampoline calls for an engine: its inputs, then its outputs."""
    split = len(engine.inputs)

    def call(*tensors: Any) -> None:
        engine.run_into(tensors[:split], tensors[split:])

    return call


def external(module: tvm.IRModule) -> dict[str, Any]:
    """The module's external functions by symbol."""
    return {
        plain(attribute(function, "global_symbol") or name): function
        for name, function in functions_of(module).items()
        if attribute(function, "Compiler")
    }


def compilers(module: tvm.IRModule) -> list[str]:
    """The backends that the module has external functions of."""
    found = {plain(attribute(f, "Compiler")) for f in external(module).values()}
    return sorted(found)


@contextmanager
def codegens(backends: Sequence[str]) -> Iterator[None]:
    """Within: TVM finds byocviz's codegen for these backends.

    Raises `BuildError` where this TVM has one of its own.
    """
    with _lock, ExitStack() as stack:
        for backend in backends:
            name = f"relay.ext.{backend}"
            if tvm.get_global_func(name, allow_missing=True) is not None:
                raise BuildError(
                    f"This TVM has a codegen for {backend!r} of its own ({name}).",
                    "byocviz does not put its own in its place: build with a TVM without it, or "
                    "by TVM's relay.build.",
                )
            tvm.register_func(name, trampoline)
            stack.callback(_removed, name)
        yield


def _removed(name: str) -> None:
    from tvm._ffi.registry import remove_global_func

    with contextlib.suppress(ValueError):
        remove_global_func(name)


def trampoline(function: Any) -> Any:
    """The runtime module in which an external function's symbol calls byocviz.

    It takes the tensors of the function's parameters and results one by one, tuples taken apart.
    """
    symbol = plain(attribute(function, "global_symbol"))
    inputs = [
        te.placeholder(shape, name=f"{symbol}_in{index}", dtype=dtype)
        for index, (shape, dtype) in enumerate(
            one for p in function.params for one in _tensors(p.checked_type, symbol)
        )
    ]
    results = list(_tensors(function.ret_type, symbol))
    made = te.extern(
        [shape for shape, _ in results],
        inputs,
        lambda ins, outs: tvm.tir.call_packed(HOST, symbol, *ins, *outs),
        name=f"{symbol}_out",
        dtype=[dtype for _, dtype in results],
    )
    outputs = list(made) if isinstance(made, (list, tuple)) else [made]
    schedule = te.create_schedule([outputs[0].op])
    return tvm.build(schedule, [*inputs, *outputs], target="llvm", name=symbol)


def _tensors(ty: Any, symbol: str) -> Iterator[tuple[list[int], str]]:
    if isinstance(ty, relay.TupleType):
        for field in ty.fields:
            yield from _tensors(field, symbol)
        return
    shape = dims(ty)
    if shape is None:
        raise BuildError(
            f"{symbol} has a tensor of the type {type_text(ty)}.",
            "Give the module fixed shapes before it is recorded.",
            subgraph=symbol,
        )
    yield shape, str(ty.dtype)
