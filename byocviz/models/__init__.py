"""Models in: ONNX, PyTorch, TFLite and modules that TVM saved, as a Relax ``IRModule``; networks of
GluonCV as a Relay one.

Nothing heavy is imported before a name is used: TVM, ONNX and PyTorch come with their loader.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from byocviz.models import ssd as ssd
    from byocviz.models._detector import detector as detector
    from byocviz.models._load import load as load
    from byocviz.models.gluon import gluoncv as gluoncv
    from byocviz.models.gluon_export import export_gluoncv as export_gluoncv
    from byocviz.models.onnx import from_onnx as from_onnx
    from byocviz.models.tflite import from_tflite as from_tflite
    from byocviz.models.torch import from_torch as from_torch
    from byocviz.models.tvm_module import from_tvm as from_tvm

_NAMES = {
    "load": "byocviz.models._load",
    "export_gluoncv": "byocviz.models.gluon_export",
    "gluoncv": "byocviz.models.gluon",
    "detector": "byocviz.models._detector",
    "from_onnx": "byocviz.models.onnx",
    "from_torch": "byocviz.models.torch",
    "from_tflite": "byocviz.models.tflite",
    "from_tvm": "byocviz.models.tvm_module",
}

__all__ = [
    "detector",
    "export_gluoncv",
    "from_onnx",
    "from_tflite",
    "from_torch",
    "from_tvm",
    "gluoncv",
    "load",
    "ssd",
]


def __getattr__(name: str) -> Any:
    if name == "ssd":
        return importlib.import_module("byocviz.models.ssd")
    if name in _NAMES:
        value = getattr(importlib.import_module(_NAMES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
