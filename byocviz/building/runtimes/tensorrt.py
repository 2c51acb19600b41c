"""TensorRT (the package tensorrt): builds and runs on the GPU in this machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from byocviz.building.runtimes.options import Takes, switch
from byocviz.building.runtimes.trt import TAKES, TrtRuntime


class Tensorrt(TrtRuntime):
    """Options:

    ``fp16``: whether float32 is computed in float16. ``tf32``: whether products of float32 may be
    rounded to TF32. ``workspace``: the most bytes of scratch memory on the GPU; None leaves it to
    TensorRT. ``timing_cache``: whether the times of kernels are kept from build to build, where
    there is a folder for engines.
    """

    name = "tensorrt"
    title = "TensorRT"
    package = "tensorrt"
    install = "pip install 'byocviz[tensorrt]'"
    options: Mapping[str, Any] = {
        "fp16": False,
        "tf32": False,
        "workspace": None,
        "timing_cache": True,
    }
    takes: Mapping[str, Takes] = {**TAKES, "timing_cache": switch()}


def runtime() -> Tensorrt:
    return Tensorrt()
