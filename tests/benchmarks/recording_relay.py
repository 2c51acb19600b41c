"""How much recording a Relay module costs beside TVM's own passes.

    python tests/benchmarks/recording_relay.py            # GluonCV's SSD, random weights
    python tests/benchmarks/recording_relay.py --saved D  # keeps what the import gave in D

It needs a TVM with Relay (0.19) and, for the SSD, mxnet 1.9.1 and gluoncv 0.5. "Bare" is the
sequence of TVM's ``partition_for_tensorrt``, ``prune_tensorrt_subgraphs`` included, run as one.
Bare and recording are run in turn, in one process; the fastest of each counts.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("TOPHUB_LOCATION", "NONE")

import tvm
from tvm import relay

import byocviz
from byocviz.backends import relay_table
from byocviz.flow.relay.prepare import LAYOUTS


def bare(module: Any, params: Any) -> float:
    """Seconds of TVM's own flow."""
    from tvm.relay.op.contrib import tensorrt

    module = module.clone()
    start = time.perf_counter()
    module["main"] = relay.build_module.bind_params_by_name(module["main"], params)
    sequence = tvm.transform.Sequential(
        [
            relay.transform.InferType(),
            tensorrt.RemoveDropoutPass(),
            relay.transform.RemoveUnusedFunctions(),
            relay.transform.ConvertLayout(LAYOUTS),
            relay.transform.FoldConstant(),
            relay.transform.MergeComposite(tensorrt.pattern_table()),
            relay.transform.AnnotateTarget("tensorrt"),
            relay.transform.MergeCompilerRegions(),
            relay.transform.PartitionGraph(),
            relay.transform.InferType(),
        ]
    )
    with relay_table.tensorrt_target():
        tensorrt.prune_tensorrt_subgraphs(sequence(module))
    return time.perf_counter() - start


def loaded(folder: str | None) -> tuple[Any, Any]:
    """The SSD, from a folder where it was kept; importing it takes longer than all else."""
    kept = Path(folder) if folder else None
    if kept and (kept / "ssd.params").is_file():
        module = tvm.ir.load_json((kept / "ssd.json").read_text())
        params = relay.load_param_dict((kept / "ssd.params").read_bytes())
        return module, dict(params.items())
    from tests.corpus_relay.ssd import load

    module, params = load()
    if kept:
        kept.mkdir(parents=True, exist_ok=True)
        (kept / "ssd.json").write_text(tvm.ir.save_json(module))
        (kept / "ssd.params").write_bytes(relay.save_param_dict(params))
    return module, params


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--saved", metavar="FOLDER", help="keep the imported model there")
    arguments = parser.parse_args()
    module, params = loaded(arguments.saved)
    bares, records = [], []
    for _ in range(arguments.repeat):
        bares.append(bare(module, params))
        start = time.perf_counter()
        recording = byocviz.record(module, params=params, progress=False)
        records.append((time.perf_counter() - start, recording))
    seconds, recording = min(records, key=lambda run: run[0])
    print(
        f"SSD: {recording.step('import').profile.total} operators, "
        f"{len(recording.step('partition').subgraphs)} subgraphs before pruning, "
        f"{len(recording.last.subgraphs)} after\n"
        f"recording {seconds:.2f} s, TVM's own passes {min(bares):.2f} s, "
        f"ratio {seconds / min(bares):.2f}"
    )
    passes = sum(step.tvm_seconds for step in recording.steps)
    print(
        f"(the recording leaves rules out of MergeComposite that name no operator of the module: "
        f"its own passes take {passes:.2f} s, all else {seconds - passes:.2f} s)"
    )
    for step in recording.steps:
        tvm_part, own = step.tvm_seconds, step.capture_seconds
        print(f"  {step.name:10} TVM {tvm_part:6.2f} s   capture {own:5.2f} s")


if __name__ == "__main__":
    main()
