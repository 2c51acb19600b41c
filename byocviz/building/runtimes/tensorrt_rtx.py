"""TensorRT-RTX (the package tensorrt-rtx): builds engines with or without a GPU, runs with one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from byocviz.building.errors import BuildError
from byocviz.building.runtimes.gpu import missing_gpu
from byocviz.building.runtimes.trt import TrtRuntime


class TensorrtRtx(TrtRuntime):
    """Options:

    ``compute_capability``: the GPU that the engine is for, as ``"8.9"`` or ``"SM89"``; None is
    the one in this machine, and where there is none the engine is for all that are known.
    ``workspace``: the most bytes of scratch memory on the GPU; None leaves it to TensorRT.
    """

    name = "tensorrt-rtx"
    title = "TensorRT-RTX"
    package = "tensorrt_rtx"
    install = "pip install 'byocviz[tensorrt-rtx]'"
    options: Mapping[str, Any] = {"compute_capability": None, "workspace": None}
    needs_gpu_to_build = False

    def _flags(self, trt: Any, options: Mapping[str, Any]) -> int:
        return 1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED)

    def _configure(self, trt: Any, config: Any, options: Mapping[str, Any]) -> None:
        super()._configure(trt, config, options)
        known = {
            name: value
            for name, value in trt.ComputeCapability.__members__.items()
            if name.startswith("SM")
        }
        wanted = options["compute_capability"]
        if wanted is None:
            chosen = [trt.ComputeCapability.CURRENT] if missing_gpu() is None else [*known.values()]
        else:
            name = str(wanted).upper().replace(".", "")
            name = name if name.startswith("SM") else f"SM{name}"
            if name not in known:
                raise BuildError(
                    f"{self.title} knows no compute capability {wanted!r}.",
                    f"Known: {', '.join(known)}.",
                )
            chosen = [known[name]]
        config.num_compute_capabilities = len(chosen)
        for index, value in enumerate(chosen):
            config.set_compute_capability(value, index)


def runtime() -> TensorrtRtx:
    return TensorrtRtx()
