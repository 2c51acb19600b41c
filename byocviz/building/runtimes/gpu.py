"""NVIDIA's driver, asked directly: needs no package."""

from __future__ import annotations

import ctypes
import sys
from functools import lru_cache


@lru_cache(maxsize=1)
def missing_gpu() -> str | None:
    """Why no NVIDIA GPU can be used here; None: one can."""
    name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    try:
        driver = ctypes.CDLL(name)
    except OSError:
        return f"No NVIDIA driver is installed ({name} is not found)."
    if driver.cuInit(0) != 0:
        return "NVIDIA's driver is installed and finds no GPU that it can use."
    count = ctypes.c_int(0)
    if driver.cuDeviceGetCount(ctypes.byref(count)) != 0 or count.value == 0:
        return "NVIDIA's driver is installed and there is no GPU."
    return None
