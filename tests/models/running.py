"""Run a Relax module on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np


def run(mod: Any, *inputs: np.ndarray) -> list[np.ndarray]:
    import tvm
    from tvm import relax

    built = tvm.compile(mod, target=tvm.target.Target({"kind": "llvm"}))
    result = relax.VirtualMachine(built, tvm.cpu())["main"](
        *[tvm.runtime.tensor(i) for i in inputs]
    )
    return [r.numpy() for r in ([result] if hasattr(result, "numpy") else result)]
