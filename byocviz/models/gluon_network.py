"""A network of GluonCV's model zoo with weights: pretrained, out of a file, or seeded."""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import io
import math
import os
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from byocviz._install import with_relay
from byocviz.errors import ArgumentError, MissingPackage, ModelError
from byocviz.models._common import check_file, first_lines
from byocviz.models._detector import Detector

if TYPE_CHECKING:
    import numpy as np

SSD = "ssd_512_resnet50_v1_coco"
"""The network of TVM's BYOC demo of 2020."""

INPUT = "data"
"""The name that GluonCV's networks give their input."""

# GluonCV's presets for photos: means and standard deviations of ImageNet's RGB values, 0 to 1.
_MEAN = (0.485, 0.456, 0.406)
_STD = (0.229, 0.224, 0.225)

_PREDICTS = 0.1
"""Variance of what predicts classes and boxes, where other layers have 2."""


@dataclass(frozen=True)
class Network:
    """A GluonCV network whose weights are set."""

    name: str
    block: Any
    """The ``mxnet.gluon.HybridBlock``."""
    shape: tuple[int, int, int, int]
    """Of the input: batch, channels, height, width."""
    classes: tuple[str, ...]
    """By class id; empty where the network names none."""
    detector: Detector | None
    """How photos go in and boxes come out; None for a network that is no detector."""

    def run(self, data: np.ndarray) -> list[np.ndarray]:
        """MXNet's own outputs, for float32 data of `shape`."""
        import mxnet

        outputs = self.block(mxnet.nd.array(data))
        listed = outputs if isinstance(outputs, (list, tuple)) else [outputs]
        return [one.asnumpy() for one in listed]

    def parameters(self) -> dict[str, Any]:
        """MXNet's arrays by parameter name."""
        return {name: one.data() for name, one in self.block.collect_params().items()}


def network(
    name: str = SSD,
    *,
    pretrained: bool = True,
    weights: str | os.PathLike[str] | None = None,
    seed: int = 0,
    shape: Sequence[int] | None = None,
) -> Network:
    """A network of the model zoo with weights. See `byocviz.models.gluoncv` for the arguments."""
    mxnet, gluoncv = frameworks()
    if not isinstance(name, str):
        raise ArgumentError(
            f"A network of GluonCV is named by text, not by {type(name).__name__}.",
            'Give its name, as byocviz.models.gluoncv("ssd_512_resnet50_v1_coco").',
        )
    wanted = _shape(name, shape)
    known = sorted(gluoncv.model_zoo.get_model_list())
    if name.lower() not in known:
        close = difflib.get_close_matches(name.lower(), known, 5, 0.3)
        raise ModelError(
            f"GluonCV {gluoncv.__version__} has no network {name!r}.",
            f"Close to it: {', '.join(close)}." if close else "See gluoncv.model_zoo.",
        )
    # A counter numbers the blocks of a process: started anew, names depend on the network alone.
    with _quiet(), mxnet.name.NameManager():
        block = _made(gluoncv, name.lower(), pretrained and weights is None)
        if weights is None and not pretrained:
            _seeded(mxnet, block, name, wanted, seed)
        else:
            if weights is not None:
                _loaded(block, name, weights)
            _sized(mxnet, block, name, wanted)
    classes = tuple(str(c) for c in getattr(block, "classes", None) or ())
    finds = re.match(r"(ssd|yolo3?)_", name.lower()) and classes
    how = Detector(
        network=name,
        input=INPUT,
        height=wanted[2],
        width=wanted[3],
        classes=classes,
        mean=_MEAN,
        std=_STD,
    )
    return Network(name, block, wanted, classes, how if finds else None)


def frameworks() -> tuple[Any, Any]:
    """The modules ``mxnet`` and ``gluoncv``. Raises `MissingPackage`."""
    try:
        with _quiet():
            import gluoncv
            import mxnet
    except ImportError as error:
        raise MissingPackage(
            "GluonCV and MXNet are not both installed; they are needed to take a network of the "
            f"model zoo ({first_lines(error, 120)}).",
            f"Neither goes with the NumPy of Relax; in an environment of their own: {with_relay()}",
        ) from error
    except Exception as error:  # MXNet 1.9 uses names that newer NumPys have dropped
        raise MissingPackage(
            f"GluonCV and MXNet are installed and cannot be imported: {first_lines(error, 200)}",
            f"MXNet 1.9 needs NumPy 1.23, in an environment of its own: {with_relay()}",
        ) from error
    return mxnet, gluoncv


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without the deprecation warnings of packages that no longer change, nor their prints."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


def _shape(name: str, shape: Sequence[int] | None) -> tuple[int, int, int, int]:
    if shape is None:
        size = re.match(r"ssd_(\d+)_", name.lower())
        side = int(size[1]) if size else 416 if name.lower().startswith("yolo") else 224
        return (1, 3, side, side)
    given = tuple(shape)
    if len(given) != 4 or any(not isinstance(d, int) or isinstance(d, bool) for d in given):
        raise ArgumentError(
            f"The shape {shape!r} is not four whole numbers.",
            "Give batch, channels, height and width: shape=(1, 3, 512, 512).",
        )
    batch, channels, height, width = given
    if batch != 1 or channels != 3 or min(height, width) < 1:
        raise ArgumentError(
            f"A network of GluonCV takes one photo in RGB, not {list(given)}.",
            "Give batch, channels, height and width: shape=(1, 3, 512, 512).",
        )
    return (batch, channels, height, width)


def _made(gluoncv: Any, name: str, pretrained: bool) -> Any:
    make = gluoncv.model_zoo.get_model
    if not pretrained:
        try:
            # A detector fetches the weights of its base network unless told not to.
            return make(name, pretrained=False, pretrained_base=False)
        except TypeError:  # a classifier has no base
            return make(name, pretrained=False)
    try:
        return make(name, pretrained=True)
    except Exception as error:  # requests' errors, a checksum's, no weights of that name
        raise ModelError(
            f"The pretrained weights of {name} cannot be had: {first_lines(error, 300)}",
            "GluonCV fetches them from its model zoo, which this machine does not reach, or which "
            "has none for this network. Put them at ~/.mxnet/models, give a file of them "
            "(weights='file.params', --weights file.params), or take seeded random ones: "
            "pretrained=False (--no-pretrained).",
        ) from error


def _loaded(block: Any, name: str, weights: str | os.PathLike[str]) -> None:
    path = check_file(weights, "a .params file")
    try:
        block.load_parameters(str(path))
    except Exception as error:  # MXNetError for a damaged file, AssertionError for another network
        raise ModelError(
            f"{path} does not hold the weights of {name}: {first_lines(error, 300)}",
            "Give what block.save_parameters(file) wrote for this very network.",
        ) from error


def _sized(mxnet: Any, block: Any, name: str, shape: tuple[int, int, int, int]) -> None:
    """One run, which settles the shapes of weights that were not known."""
    try:
        outputs = block(mxnet.nd.zeros(shape))
        for one in outputs if isinstance(outputs, (list, tuple)) else [outputs]:
            one.wait_to_read()
    except Exception as error:  # MXNetError, or what a block's own Python raises
        raise ModelError(
            f"{name} does not run on an input of {list(shape)}: {first_lines(error, 300)}",
            "Give a shape that it was made for: shape=(1, 3, height, width).",
        ) from error


def _seeded(mxnet: Any, block: Any, name: str, shape: tuple[int, int, int, int], seed: int) -> None:
    """Random weights that depend on the seed and the parameter's name alone.

    GluonCV's own initialisation draws the statistics of some batch norms from around 0: a negative
    variance, whose root is no number. Here every variance is positive, and values neither die out
    nor grow over the layers.
    """
    block.initialize(mxnet.init.Zero())
    _sized(mxnet, block, name, shape)
    for key, parameter in block.collect_params().items():
        if isinstance(parameter, mxnet.gluon.Constant):
            continue  # anchors and the like are no weights
        values = _drawn(key, tuple(parameter.shape), seed)
        if values is not None:
            parameter.set_data(mxnet.nd.array(values))


def _drawn(name: str, shape: tuple[int, ...], seed: int) -> np.ndarray | None:
    """The values of a parameter; None leaves it as its layer starts it."""
    import numpy as np

    digest = hashlib.sha256(f"{seed} {name}".encode()).digest()
    random = np.random.default_rng(int.from_bytes(digest[:8], "little"))
    if name.endswith("_weight"):
        # He: keeps the variance through a ReLU. What predicts gets less: its scores shall differ.
        gain = _PREDICTS if "predictor" in name or "yolooutput" in name else 2.0
        spread = math.sqrt(gain / max(math.prod(shape[1:]), 1))
        values = random.standard_normal(shape) * spread
    elif name.endswith(("_bias", "_beta", "_running_mean", "_moving_mean")):
        values = random.standard_normal(shape) * 0.1
    elif name.endswith("_gamma"):
        values = random.uniform(0.5, 1.0, shape)
    elif name.endswith(("_running_var", "_moving_var")):
        values = random.uniform(0.5, 1.5, shape)
    else:
        return None
    return np.asarray(values, dtype=np.float32)
