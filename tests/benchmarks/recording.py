"""How much recording costs beside TVM's bare passes, and what grows faster than linear.

    python tests/benchmarks/recording.py                        # the SSD; 1,000 and 2,000 operators
    python tests/benchmarks/recording.py --operators 1000 10000 # the full measure: some 25 minutes

Everything is measured in one run, the bare passes and the recording in turn, the fastest of each
counted. "Bare" is TVM's passes alone, on the modules that the recording runs them on: those of the
prepare step's rewrites that are TVM's, FuseOpsByPattern with and without annotate_codegen, and
MergeCompositeFunctions. TVM 0.27's last two take time in the square of the groups they make.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections import defaultdict
from typing import Any

import numpy as np
from tvm import relax

import byocviz
from byocviz.flow.relax.passes.merge import merge
from byocviz.flow.relax.prepare import REWRITES, PrepareContext
from byocviz.models import ssd

FASTER_THAN_LINEAR = 1.2
"""Exponents of growth above this are named."""


def generated(operators: int, seed: int = 0) -> Any:
    """A residual network of this many operators; one in 41 is none that TensorRT's table has."""
    rng = np.random.default_rng(seed)
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, 16, 8, 8), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            value: Any = x
            made = 0
            while made < operators:
                weight = relax.const(rng.standard_normal((16, 16, 3, 3)).astype("float32"))
                bias = relax.const(rng.standard_normal((1, 16, 1, 1)).astype("float32"))
                conv = builder.emit(relax.op.nn.conv2d(value, weight, padding=1))
                conv = builder.emit(relax.op.add(conv, bias))
                conv = builder.emit(relax.op.nn.relu(conv))
                value = builder.emit(relax.op.add(conv, value))
                made += 4
                if made % 40 == 0 and made < operators:
                    value = builder.emit(relax.op.nn.leakyrelu(value))
                    made += 1
            out = builder.emit_output(value)
        builder.emit_func_output(out)
    return builder.get()


def bare(module: Any) -> tuple[float, dict[str, float]]:
    """Seconds of TVM's passes alone, in all and by pass."""
    patterns = [rule.fusion for rule in byocviz.backends.get("tensorrt").rules()]
    seconds: dict[str, float] = {}

    def timed(name: str, run: Any) -> Any:
        start = time.perf_counter()
        result = run()
        seconds[name] = seconds.get(name, 0.0) + time.perf_counter() - start
        return result

    for spec in REWRITES:
        context = PrepareContext(params=None, entry="main")
        if spec.origin == "tvm":
            module = timed(spec.name, lambda s=spec, m=module, c=context: s.run(m, c))
        else:
            module = spec.run(module, context)
    fuse = relax.transform.FuseOpsByPattern
    composite = timed("composite", lambda: fuse(patterns, bind_constants=True)(module))
    timed(
        "annotate",
        lambda: fuse(patterns, bind_constants=True, annotate_codegen=True)(module),
    )
    timed("merge", lambda: merge(composite))
    return sum(seconds.values()), seconds


def measure(name: str, module: Any, repeat: int) -> dict[str, Any]:
    bares, records = [], []
    for _ in range(repeat):
        bares.append(bare(module))
        start = time.perf_counter()
        recording = byocviz.record(module, progress=False)
        records.append((time.perf_counter() - start, recording))
    bare_seconds, _ = min(bares, key=lambda b: b[0])
    seconds, recording = min(records, key=lambda r: r[0])
    failed = recording.failed
    if failed is not None:
        raise SystemExit(f"{name}: the step {failed.name} failed: {failed.error}")
    parts: dict[str, float] = defaultdict(float)
    for step in recording.steps:
        parts[f"{step.name}: TVM"] = step.tvm_seconds
        parts[f"{step.name}: capture"] = step.capture_seconds
    parts["outside of the steps"] = seconds - sum(parts.values())
    start = time.perf_counter()
    size = len(byocviz.recording.to_bytes(recording))
    parts["save"] = time.perf_counter() - start
    return {
        "name": name,
        "operators": recording.step("import").profile.total,
        "subgraphs": recording.last.profile.subgraphs,
        "bare_seconds": bare_seconds,
        "record_seconds": seconds,
        "ratio": seconds / bare_seconds,
        "file_bytes": size,
        "parts": dict(parts),
    }


def growth(small: dict[str, Any], large: dict[str, Any]) -> list[dict[str, Any]]:
    """The exponent of each part: 1 is linear, 2 is a square."""
    scale = math.log(large["operators"] / small["operators"])
    rows = []
    for part, seconds in large["parts"].items():
        before = small["parts"][part]
        if seconds < 0.005 or before <= 0:
            continue
        exponent = math.log(seconds / before) / scale
        rows.append({"part": part, "small": before, "large": seconds, "exponent": exponent})
    return sorted(rows, key=lambda row: -row["exponent"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--operators", nargs=2, type=int, default=(1000, 2000), metavar="N")
    parser.add_argument("--repeat", type=int, default=3, help="runs of the SSD (default: 3)")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    runs = [measure("SSD", ssd.load(), arguments.repeat)]
    runs += [measure(f"generated, {n} operators", generated(n), 1) for n in arguments.operators]
    rows = growth(runs[1], runs[2])
    if arguments.json:
        print(json.dumps({"runs": runs, "growth": rows}, indent=2))
        return
    for run in runs:
        print(
            f"{run['name']}: {run['operators']} operators, {run['subgraphs']} subgraphs; "
            f"recording {run['record_seconds']:.2f} s, bare passes {run['bare_seconds']:.2f} s, "
            f"ratio {run['ratio']:.2f}; file {run['file_bytes'] / 1000:.0f} kB"
        )
    print(f"\nGrowth from {runs[1]['operators']} to {runs[2]['operators']} operators:")
    for row in rows:
        mark = "  <- faster than linear" if row["exponent"] > FASTER_THAN_LINEAR else ""
        print(
            f"  {row['part']:24} {row['small']:9.3f} s -> {row['large']:9.3f} s   "
            f"n^{row['exponent']:.2f}{mark}"
        )


if __name__ == "__main__":
    main()
