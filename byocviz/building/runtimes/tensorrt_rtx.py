"""TensorRT-RTX (the package tensorrt-rtx): builds engines with or without a GPU, runs with one."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from byocviz.building.errors import BuildError
from byocviz.building.runtimes.gpu import gpu
from byocviz.building.runtimes.options import Takes
from byocviz.building.runtimes.trt import TAKES, TrtRuntime


def _capability(given: Any) -> str | None:
    """The command line gives 8.9 as a number."""
    if isinstance(given, bool) or not isinstance(given, (str, int, float, type(None))):
        raise ValueError
    return given if given is None else str(given)


class TensorrtRtx(TrtRuntime):
    """Options:

    ``compute_capability``: the GPU that the engine is for, as ``"8.9"`` or ``"SM89"``; None is
    the one in this machine, and where there is none the engine is for all that are known.
    ``fp16``: whether float32 is computed in float16. ``tf32``: whether products of float32 may be
    rounded to TF32. ``workspace``: the most bytes of scratch memory on the GPU; None leaves it to
    TensorRT. It times no kernels while it builds, so there are no times to keep.
    """

    name = "tensorrt-rtx"
    title = "TensorRT-RTX"
    package = "tensorrt_rtx"
    install = "pip install 'byocviz[tensorrt-rtx]'"
    options: Mapping[str, Any] = {
        "compute_capability": None,
        "fp16": False,
        "tf32": False,
        "workspace": None,
    }
    takes: Mapping[str, Takes] = {
        **TAKES,
        "compute_capability": Takes("a name as '8.9' or 'SM89', or None", _capability),
    }
    needs_gpu_to_build = False
    keeps_timing = False

    def supports(self, running: bool = True) -> str | None:
        reason = super().supports(running)
        here = gpu()
        if reason is None and running and here is not None and here.sm not in self._known():
            return (
                f"The GPU ({here.name}) is {here.sm}, and this TensorRT-RTX knows "
                f"{', '.join(self._known())}: take the runtime tensorrt, or a newer TensorRT-RTX."
            )
        return reason

    def _known(self) -> dict[str, Any]:
        members = import_module(self.package).ComputeCapability.__members__
        return {name: value for name, value in members.items() if name.startswith("SM")}

    def built_for(self, options: Mapping[str, Any]) -> tuple[str, ...]:
        known = self._known()
        wanted = options["compute_capability"]
        if wanted is None:
            here = gpu()
            if here is not None and here.sm in known:
                return (here.sm,)
            # Turing has no kernels for some products of float32 matrices.
            return tuple(name for name in known if name != "SM75")
        name = str(wanted).upper().replace(".", "")
        name = name if name.startswith("SM") else f"SM{name}"
        if name not in known:
            raise BuildError(
                f"{self.title} knows no compute capability {wanted!r}.",
                f"Known: {', '.join(known)}.",
            )
        return (name,)

    def _configure(self, trt: Any, config: Any, options: Mapping[str, Any]) -> None:
        super()._configure(trt, config, options)
        known, meant = self._known(), self.built_for(options)
        config.num_compute_capabilities = len(meant)
        for index, name in enumerate(meant):
            config.set_compute_capability(known[name], index)

    def fingerprint(self, options: Mapping[str, Any]) -> dict[str, str]:
        meant = self.built_for(options)
        if options["compute_capability"] is None:
            return super().fingerprint(options) | {"for": ", ".join(meant)}
        # A named one's engine is the same wherever it is built.
        version = str(import_module(self.package).__version__)
        return {self.package: version, "for": ", ".join(meant)}


def runtime() -> TensorrtRtx:
    return TensorrtRtx()
