"""TensorRT (the package tensorrt): builds and runs on the GPU in this machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from byocviz.building.runtimes.trt import TrtRuntime


class Tensorrt(TrtRuntime):
    """Options:

    ``fp16``: whether float32 may be computed in float16. ``tf32``: whether products of float32
    may be rounded to TF32. ``workspace``: the most bytes of scratch memory on the GPU; None
    leaves it to TensorRT.
    """

    name = "tensorrt"
    title = "TensorRT"
    package = "tensorrt"
    install = "pip install 'byocviz[tensorrt]'"
    options: Mapping[str, Any] = {"fp16": False, "tf32": False, "workspace": None}

    def _configure(self, trt: Any, config: Any, options: Mapping[str, Any]) -> None:
        super()._configure(trt, config, options)
        if options["fp16"]:
            config.set_flag(trt.BuilderFlag.FP16)
        if not options["tf32"]:
            config.clear_flag(trt.BuilderFlag.TF32)


def runtime() -> Tensorrt:
    return Tensorrt()
