"""What this machine has of what byocviz can use, and how to get the rest."""

from __future__ import annotations

import importlib
import importlib.util
import platform
import sys
from importlib.metadata import PackageNotFoundError, version

import msgspec

from byocviz.version import __version__


class Finding(msgspec.Struct):
    """One thing that was looked for."""

    name: str
    state: str
    """``ok``, ``absent`` (nothing is wrong without it) or ``broken``."""
    value: str = ""
    mend: str = ""


def examine() -> list[Finding]:
    """Look for TVM and what else byocviz can use. Imports TVM where it is installed."""
    found = [
        Finding("byocviz", "ok", __version__),
        Finding("python", "ok", f"{platform.python_version()} ({sys.executable})"),
        Finding("platform", "ok", platform.platform()),
    ]
    found += _tvm()
    for package, module, extra, use in (
        ("onnx", "onnx", "relax", "to import ONNX models"),
        ("onnxruntime", "onnxruntime", "relax", "to run ONNX models on the CPU"),
        ("onnxslim", "onnxslim", "relax", "to simplify ONNX models before the import"),
        ("torch", "torch", "torch", "to import PyTorch programs"),
        ("tflite", "tflite", "tflite", "to import TFLite models"),
        ("pandas", "pandas", "tables", "for tables as data frames"),
        (
            "tensorrt",
            "tensorrt",
            "tensorrt",
            "for building on TensorRT, which byocviz does not do yet",
        ),
        (
            "tensorrt-rtx",
            "tensorrt_rtx",
            "tensorrt-rtx",
            "for building on TensorRT-RTX, which byocviz does not do yet",
        ),
    ):
        found.append(_package(package, module, extra, use))
    return found


def _package(package: str, module: str, extra: str, use: str) -> Finding:
    if importlib.util.find_spec(module) is None:
        return Finding(package, "absent", f"wanted {use}", f"pip install 'byocviz[{extra}]'")
    try:
        return Finding(package, "ok", version(package))
    except PackageNotFoundError:
        return Finding(package, "ok", "installed, without a version")


def _tvm() -> list[Finding]:
    if importlib.util.find_spec("tvm") is None:
        return [
            Finding(
                "tvm",
                "absent",
                "recordings open without it; making one needs it",
                "pip install 'byocviz[relax]'",
            )
        ]
    try:
        tvm = importlib.import_module("tvm")
    except Exception as error:
        return [
            Finding(
                "tvm",
                "broken",
                f"{type(error).__name__}: {str(error)[:300]}",
                "Reinstall it: pip install --force-reinstall 'byocviz[relax]'",
            )
        ]
    found = [Finding("tvm", "ok", f"{tvm.__version__} ({tvm.__path__[0]})")]
    if importlib.util.find_spec("tvm.relax") is None:
        found.append(
            Finding(
                "tvm.relax",
                "absent",
                "this TVM has no Relax",
                "pip install 'byocviz[relax]' in an environment of its own",
            )
        )
        return found
    from byocviz.backends.tvm_table import loadable

    enabled = [kind for kind in ("llvm", "cuda", "vulkan", "opencl") if tvm.runtime.enabled(kind)]
    found.append(Finding("tvm targets", "ok", ", ".join(enabled) or "none"))
    try:
        importlib.import_module("tvm.relax.backend.contrib.tensorrt")
        found.append(Finding("tvm's TensorRT table", "ok", "tvm.relax.backend.contrib.tensorrt"))
    except Exception as error:
        found.append(
            Finding(
                "tvm's TensorRT table",
                "absent",
                str(error)[:200],
                "pip install --upgrade 'apache-tvm>=0.26'",
            )
        )
    found.append(Finding("tvm pattern tables", "ok", ", ".join(loadable()) or "none"))
    native = _native_codegens()
    found.append(
        Finding(
            "tvm native codegens",
            "ok" if native else "absent",
            ", ".join(native) or "none",
            "" if native else "None is needed to record.",
        )
    )
    gpu = bool(tvm.cuda(0).exist) if "cuda" in enabled else False
    found.append(Finding("GPU that TVM sees", "ok" if gpu else "absent", "yes" if gpu else "none"))
    return found


def _native_codegens() -> list[str]:
    """The codegens that this TVM was built with, as ``relax.ext.<name>``."""
    import tvm_ffi

    prefix = "relax.ext."
    names = tvm_ffi.registry.list_global_func_names()
    return sorted(name.removeprefix(prefix) for name in names if name.startswith(prefix))
