"""What TVM alone makes of a build's inputs, on the CPU, as a whole and subgraph by subgraph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import tvm
from tvm import relax

from byocviz.building.check import Capture, check
from byocviz.building.errors import BuildError, last_line
from byocviz.errors import ByocvizError
from byocviz.flow.relax.compile import compile_module
from byocviz.flow.relax.verify import flat, own, run_module
from byocviz.recording.results import Check

if TYPE_CHECKING:
    from byocviz.building.built import Build


def compare_build(
    build: Build, inputs: Mapping[str, Any], *, atol: float, rtol: float, words: str
) -> Check:
    """See `Build.check`. ``inputs`` are checked, by name."""
    runnable, entry = build.runnable, build.recording.entry
    captured = {symbol: Capture(engine) for symbol, engine in build.engines.items()}
    vm = build.machine_with(captured)
    placed = runnable.place(inputs)
    build.warm(placed)
    given = list(flat(runnable.call(placed, vm)))
    imported = build.imported()
    # Preparing may have bound or dropped parameters; it adds none.
    taken = {str(p.name): inputs[str(p.name)] for p in imported[entry].params}
    with _said("the module as it was imported"):
        wanted = run_module(imported, entry, taken)
    if len(given) != len(wanted):
        raise BuildError(
            f"The built module gives {len(given)} results and TVM alone {len(wanted)}.",
            "They are not of one module: record and build it anew.",
        )
    names = [f"output {i}" if len(wanted) > 1 else "output" for i in range(len(wanted))]
    pairs: dict[str, list[tuple[list[np.ndarray], list[np.ndarray]]]] = {}
    if captured:
        with _said("the subgraphs"):
            # As plain functions of one module, each under its symbol.
            module = build.recording.module(build.step.name)
            alone = relax.VirtualMachine(compile_module(module, entry), tvm.cpu())
            for symbol, capture in captured.items():
                params = runnable.offloaded.functions[symbol].params
                pairs[symbol] = [
                    (outs, list(flat(alone[symbol](*_arguments(params, ins)))))
                    for ins, outs in capture.calls
                ]
    outputs = dict(zip(names, zip(given, wanted, strict=True), strict=True))
    return check(outputs, pairs, atol=atol, rtol=rtol, inputs=words)


def _arguments(params: Sequence[Any], tensors: Sequence[np.ndarray]) -> list[Any]:
    """The arguments of an external function, of the tensors that its engine was given."""
    left = iter(tensors)

    def argument(ty: Any) -> Any:
        if isinstance(ty, relax.TupleType):
            return tuple(argument(field) for field in ty.fields)
        if isinstance(ty, relax.ShapeType):
            return tvm.runtime.ShapeTuple([int(dim) for dim in ty.values])
        return own(ty, next(left))

    return [argument(param.ty) for param in params]


@contextmanager
def _said(what: str) -> Iterator[None]:
    try:
        yield
    except ByocvizError:
        raise
    except Exception as error:
        raise BuildError(
            f"TVM alone does not run {what}: {last_line(error)}",
            "There is nothing to compare with then; byocviz.record(mod, verify=True) says at "
            "which step it begins.",
        ) from error
