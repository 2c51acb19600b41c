"""GluonCV in: a network of its model zoo, straight to Relay."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from byocviz._install import with_relay
from byocviz.errors import MissingPackage, ModelError
from byocviz.models._common import first_lines
from byocviz.models._detector import Detector
from byocviz.models.gluon_network import INPUT, SSD, Network, network

if TYPE_CHECKING:
    import numpy as np
    import tvm

    from byocviz.models.ssd import Detection


@dataclass(frozen=True)
class GluonModel:
    """A network of GluonCV as a Relay module.

    ``mod`` has the function ``main``, whose parameters are the input and the weights; ``params``
    holds the weights by name, as ``relay.build(mod, params=params)`` takes them.
    """

    name: str
    mod: tvm.IRModule
    params: dict[str, Any]
    network: Network
    """The same in MXNet: its outputs are what a build of it is held against."""

    @property
    def input(self) -> str:
        """The name of the input."""
        return INPUT

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Of the input: batch, channels, height, width."""
        return self.network.shape

    @property
    def classes(self) -> tuple[str, ...]:
        """The model's own names of its classes, by class id."""
        return self.network.classes

    @property
    def detector(self) -> Detector:
        """How photos go in and boxes come out. Raises `ModelError` for another kind of network."""
        if self.network.detector is None:
            raise ModelError(
                f"{self.name} finds no boxes.",
                "Detectors are GluonCV's ssd_... and yolo3_...; for others write what goes before "
                "and after yourself.",
            )
        return self.network.detector

    def bound(self) -> tvm.IRModule:
        """``mod`` with the weights as constants in ``main``, whose one parameter is the input."""
        from tvm.ir import IRModule
        from tvm.relay.build_module import bind_params_by_name

        made = IRModule(self.mod.functions, self.mod.type_definitions)
        made["main"] = bind_params_by_name(self.mod["main"], self.params)
        return made

    def preprocess(self, image: str | os.PathLike[str] | Any) -> np.ndarray:
        """A photo as the input. See `Detector.preprocess`."""
        return self.detector.preprocess(image)

    def postprocess(
        self, outputs: Sequence[Any], size: tuple[int, int], threshold: float = 0.3
    ) -> list[Detection]:
        """Boxes of the outputs. See `Detector.postprocess`."""
        return self.detector.postprocess(outputs, size, threshold)


def gluoncv(
    name: str = SSD,
    *,
    pretrained: bool = True,
    weights: str | os.PathLike[str] | None = None,
    seed: int = 0,
    shape: Sequence[int] | None = None,
) -> GluonModel:
    """A network of GluonCV's model zoo as a Relay module, by ``relay.frontend.from_mxnet``.

    ``pretrained`` weights are fetched by GluonCV where the machine reaches its model zoo.
    ``weights`` is a ``.params`` file to take in their place. With ``pretrained=False`` they are
    random: the same ones for the same ``seed``, with batch norms of positive variance, so that
    results are finite. ``shape`` is the input's, (1, 3, height, width) in pixels; by default what
    the name says for an SSD, 416 x 416 for YOLO, 224 x 224 for others.

    Raises `ModelError` for an unknown network, weights that cannot be had or read, a shape that
    does not fit, and a network that TVM cannot import; `MissingPackage` where GluonCV, MXNet or
    TVM's Relay is not installed.
    """
    # Before MXNet: without Relay the network is not worth making.
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from tvm import relay
    except ImportError as error:
        raise MissingPackage(
            f"TVM with Relay (0.19 or older) is not installed, or does not import "
            f"({first_lines(error, 120)}); it is needed to import a network of GluonCV.",
            f"In an environment of its own: {with_relay()}",
        ) from error
    made = network(name, pretrained=pretrained, weights=weights, seed=seed, shape=shape)
    try:
        mod, params = relay.frontend.from_mxnet(made.block, {INPUT: made.shape})
    except Exception as error:  # OpError for an operator without a converter, TVMError for the rest
        raise ModelError(
            f"TVM cannot import {name}: {first_lines(error, 300)}",
            "Take another network; those of detection need TVM's vision operators.",
        ) from error
    return GluonModel(name, mod, params, made)
