"""What a partitioned build costs over its parts, as ratios of one run.

    python tests/benchmarks/build.py [--rounds 30] [--threads 0] [--json]

On the bundled SSD, with ONNX Runtime on the CPU; all are timed in turn:

- the partitioned build over the sum of its parts, each timed alone: the subgraph in ONNX Runtime,
  the rest in TVM (which is given the subgraph's results as a copy);
- TVM alone, untuned, over the partitioned build;
- the SSD wholly offloaded (backend onnxruntime) over ONNX Runtime alone on the same graph.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

import byocviz
from byocviz.building.check import Capture
from byocviz.building.comparison import part_runs
from byocviz.building.timing import in_turn
from byocviz.building.variants import Run, calling, engine_inputs
from byocviz.models import ssd


class Replay:
    """Stands for an engine: gives what it gave once, at the cost of a copy."""

    def __init__(self, capture: Capture) -> None:
        self.inputs, self.outputs = capture.inputs, capture.outputs
        (self._made,) = [outs for _, outs in capture.calls]

    def run_into(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        for made, tensor in zip(self._made, outputs, strict=True):
            tensor.copyfrom(made)


def rest_of(build: byocviz.Build, inputs: dict[str, Any]) -> Run:
    """The build's own code with replays in place of the engines."""
    runnable = build.runnable
    captured = {symbol: Capture(engine) for symbol, engine in build.engines.items()}
    placed = runnable.place(inputs)
    runnable.call(placed, build.machine_with(captured))
    vm = build.machine_with({symbol: Replay(one) for symbol, one in captured.items()})
    return lambda: runnable.call(placed, vm)


def measure(rounds: int, threads: int) -> dict[str, Any]:
    options = {"threads": threads}
    inputs = {ssd.INPUT: ssd.preprocess(ssd.photos()["coffee"])}
    module = ssd.load()
    parted = byocviz.build(byocviz.record(module), options=options, cache=False)
    wholly = byocviz.build(byocviz.record(module, "onnxruntime"), options=options, cache=False)
    whole = wholly.whole()
    engine = whole.engine
    assert engine is not None
    values = [inputs[name] for name in whole.names]
    placed, placed_wholly = parted.runnable.place(inputs), wholly.runnable.place(inputs)
    runs: dict[str, Run] = {
        "partitioned": lambda: parted.timed(placed),
        "subgraph alone": part_runs(parted, inputs)[0],
        "rest alone": rest_of(parted, inputs),
        "wholly offloaded": lambda: wholly.timed(placed_wholly),
        "ONNX Runtime alone": calling(
            engine, wholly.runnable.device, engine_inputs(engine, values)
        ),
        "TVM alone": parted.alone().prepare(inputs),
    }
    timed = dict(zip(runs, in_turn(list(runs.values()), rounds, 5), strict=True))
    medians = {name: one.quantile(0.5) or 0.0 for name, one in timed.items()}
    best = {name: min(one.seconds) for name, one in timed.items()}

    def ratios(of: dict[str, float]) -> dict[str, float]:
        parts = of["subgraph alone"] + of["rest alone"]
        return {
            "partitioned / sum of parts": of["partitioned"] / parts,
            "TVM alone / partitioned": of["TVM alone"] / of["partitioned"],
            "wholly offloaded / ONNX Runtime alone": of["wholly offloaded"]
            / of["ONNX Runtime alone"],
        }

    return {
        "milliseconds (median)": {k: v * 1e3 for k, v in medians.items()},
        "ratios of medians": ratios(medians),
        "ratios of minima": ratios(best),
        "subgraphs": {
            "partitioned": len(parted.step.subgraphs),
            "wholly offloaded": len(wholly.step.subgraphs),
        },
        "operators on TVM": {
            name: one.step.profile.total - one.step.profile.offloaded_ops
            for name, one in (("partitioned", parted), ("wholly offloaded", wholly))
        },
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--threads", type=int, default=0, help="of ONNX Runtime; 0: as it likes")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    found = measure(arguments.rounds, arguments.threads)
    if arguments.json:
        print(json.dumps(found, indent=2))
        return 0
    for title, rows in found.items():
        print(title)
        for name, value in rows.items():
            print(
                f"  {name:40} {value:10.3f}"
                if isinstance(value, float)
                else f"  {name:40} {value:10}"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
