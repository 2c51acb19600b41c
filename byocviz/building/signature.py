"""The parameters of an entry function, kept without its body."""

from __future__ import annotations

import tvm
from tvm import relax

from byocviz.building.errors import BuildError
from byocviz.errors import last_line


def to_json(function: relax.Function) -> str:
    """A module whose one function has the same parameters and returns nothing, as TVM's JSON."""
    params = [relax.Var(str(p.name), p.ty) for p in function.params]
    builder = relax.BlockBuilder()
    with builder.function("main", params):
        builder.emit_func_output(relax.Tuple([]))
    return str(tvm.ir.save_json(builder.finalize()))


def from_json(text: bytes, entry: str) -> tvm.IRModule:
    """The same as a module whose function is called ``entry``. Raises `BuildError`."""
    try:
        function = tvm.ir.load_json(text.decode("utf-8"))["main"]
        if not isinstance(function, relax.Function):
            raise TypeError("it holds no function of Relax")
        return tvm.IRModule({tvm.ir.GlobalVar(entry): function})
    except Exception as error:
        raise BuildError(
            f"The signature of the saved build cannot be read: {last_line(error)}",
            "It is damaged, or was saved by another TVM; build and save it again here.",
        ) from error
