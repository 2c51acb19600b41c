"""GluonCV's SSD, that of the TVMConf 2020 demo, with random weights: its own lie on the net."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np

NAME = "ssd_512_resnet50_v1_coco"
OPERATORS = 676
"""With gluoncv 0.4 and 0.5; later ones build another graph."""
CONVOLUTIONS = 73


def available() -> bool:
    return all(importlib.util.find_spec(name) is not None for name in ("mxnet", "gluoncv"))


def network(seed: int = 0) -> Any:
    """The network, its weights seeded; statistics of batch norms are such that nothing is NaN."""
    if not hasattr(np, "bool"):
        np.bool = bool  # mxnet 1.9 still says it
    import mxnet
    from gluoncv import model_zoo

    mxnet.random.seed(seed)
    np.random.seed(seed)
    net = model_zoo.get_model(NAME, pretrained=False, pretrained_base=False)
    net.initialize()
    net(mxnet.nd.zeros((1, 3, 512, 512)))
    chance = np.random.default_rng(seed)
    for name, param in net.collect_params().items():
        if name.endswith(("running_var", "moving_var")):
            param.set_data(mxnet.nd.array(chance.uniform(0.5, 1.5, param.shape)))
        elif name.endswith(("running_mean", "moving_mean")):
            param.set_data(mxnet.nd.array(chance.normal(0, 0.1, param.shape)))
    return net


def load(seed: int = 0) -> tuple[Any, Any]:
    """The Relay module and its weights, by TVM's importer."""
    from tvm import relay

    return relay.frontend.from_mxnet(network(seed), {"data": (1, 3, 512, 512)})
