"""What TVM alone makes of a build's inputs, on the CPU, as a whole and subgraph by subgraph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from byocviz.building.check import Capture, check
from byocviz.building.errors import BuildError
from byocviz.errors import ByocvizError, last_line
from byocviz.recording.results import Check

if TYPE_CHECKING:
    from byocviz.building.built import Build


def compare_build(
    build: Build, inputs: Mapping[str, Any], *, atol: float, rtol: float, words: str
) -> Check:
    """See `Build.check`. ``inputs`` are checked, by name."""
    runnable = build.runnable
    captured = {symbol: Capture(engine) for symbol, engine in build.engines.items()}
    vm = build.machine_with(captured)
    placed = runnable.place(inputs)
    build.warm(placed)
    given = runnable.arrays(runnable.call(placed, vm))
    imported = build.imported()
    with _said("the module as it was imported"):
        wanted = runnable.reference(imported, inputs)
    if len(given) != len(wanted):
        raise BuildError(
            f"The built module gives {len(given)} results and TVM alone {len(wanted)}.",
            "They are not of one module: record and build it anew.",
        )
    names = [f"output {i}" if len(wanted) > 1 else "output" for i in range(len(wanted))]
    pairs: dict[str, list[tuple[list[np.ndarray], list[np.ndarray]]]] = {}
    if captured:
        with _said("the subgraphs"):
            alone = runnable.references(build.recording.module(build.step.name))
            for symbol, capture in captured.items():
                pairs[symbol] = [(outs, alone[symbol](ins)) for ins, outs in capture.calls]
    outputs = dict(zip(names, zip(given, wanted, strict=True), strict=True))
    return check(outputs, pairs, atol=atol, rtol=rtol, inputs=words)


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
