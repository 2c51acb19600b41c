"""What a figure was measured on: processor, cores, GPU, and the versions of what was used."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from datetime import datetime, timezone
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_PACKAGES = ("apache-tvm", "onnxruntime", "onnxruntime-gpu", "tensorrt", "tensorrt-rtx")


def now() -> str:
    """UTC, ISO 8601, to the second."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def machine(packages: Sequence[str] = _PACKAGES) -> dict[str, str]:
    """The facts, by name; what is not known is left out."""
    facts = {
        "processor": _processor(),
        "cores": str(_cores()),
        "platform": f"{sys.platform} {platform.machine()}",
        "gpu": _gpu(),
    }
    facts |= {package: _version(package) for package in packages}
    return {name: value for name, value in facts.items() if value}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _cores() -> int:
    """Those that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@lru_cache(maxsize=1)
def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor()


@lru_cache(maxsize=1)
def _gpu() -> str:
    """The first NVIDIA GPU and its driver, by nvidia-smi; "" where there is none."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        found = subprocess.run(query, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    name, _, driver = found.stdout.splitlines()[0].partition(",") if found.stdout else ("", "", "")
    return f"{name.strip()} (driver {driver.strip()})" if name else ""
