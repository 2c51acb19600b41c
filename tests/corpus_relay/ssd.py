"""GluonCV's SSD, that of the TVMConf 2020 demo, with random weights: its own lie on the net."""

from __future__ import annotations

import importlib.util
from functools import lru_cache
from typing import Any

import pytest

NAME = "ssd_512_resnet50_v1_coco"
OPERATORS = 676
"""With gluoncv 0.4 and 0.5; later ones build another graph."""
CONVOLUTIONS = 73


together = pytest.mark.xdist_group("gluoncv")
"""For the tests that use it: in one process it is made once."""


def available() -> bool:
    return all(importlib.util.find_spec(name) is not None for name in ("mxnet", "gluoncv"))


@lru_cache
def model() -> Any:
    """The network as byocviz imports it, its weights seeded; made once a process, it takes long."""
    import byocviz

    return byocviz.models.gluoncv(NAME, pretrained=False)


@lru_cache
def recording() -> Any:
    """The network through TensorRT's table."""
    import byocviz

    made = model()
    return byocviz.record(made.mod, params=made.params, title=made.name, progress=False)


def load() -> tuple[Any, Any]:
    """The Relay module and its weights."""
    made = model()
    return made.mod, made.params
