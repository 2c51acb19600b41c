"""Run an ONNX file of a detector through Relax: loaded, recorded, built, and run on photos.

    python relax_check.py model.onnx inputs.npz outputs.npz

It stands apart because the environment that writes the file has no Relax.
"""

from __future__ import annotations

import sys
from collections import Counter

import numpy as np

import byocviz


def main(model: str, inputs: str, outputs: str) -> None:
    detector = byocviz.models.detector(model)
    recording = byocviz.record(byocviz.models.load(model), backend="tensorrt", progress=False)
    assert recording.failed is None, recording.failed
    build = byocviz.build(recording, runtime="onnxruntime", progress=False)
    found = {}
    with np.load(inputs) as given:
        for name in given.files:
            results = build.run({detector.input: given[name]})
            for what, value in zip(("ids", "scores", "boxes"), results, strict=True):
                found[f"{name}_{what}"] = np.asarray(
                    value.numpy() if hasattr(value, "numpy") else value
                )
    last = recording.last
    inside = {i for one in last.subgraphs for i in one.op_ids}
    counts = Counter(recording.ops[i].name.rpartition(".")[2] for i in inside)
    found["subgraphs"] = np.array(len(last.subgraphs))
    found["convolutions"] = np.array(counts["conv2d"])
    np.savez(outputs, **found)


if __name__ == "__main__":
    main(*sys.argv[1:])
