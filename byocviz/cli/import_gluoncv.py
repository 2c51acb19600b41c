"""``byocviz import-gluoncv``: a network of GluonCV's model zoo as an ONNX file."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from byocviz.cli.shared import readable, say_saved
from byocviz.errors import ByocvizError


def add(commands: Any) -> None:
    """Make the command known."""
    parser = commands.add_parser(
        "import-gluoncv",
        help="write a network of GluonCV's model zoo as ONNX (needs byocviz[gluoncv])",
    )
    parser.add_argument("name", help="as GluonCV calls it: ssd_512_resnet50_v1_coco")
    parser.add_argument("-o", "--output", metavar="FILE", help="default: NAME.onnx")
    parser.add_argument(
        "--no-pretrained",
        action="store_true",
        help="seeded random weights, where the model zoo is not reached",
    )
    parser.add_argument("--weights", metavar="FILE.params", help="weights in place of the zoo's")
    parser.add_argument("--seed", type=int, default=0, help="of the random weights (0)")
    parser.add_argument(
        "--shape",
        metavar="1,3,512,512",
        type=_shape,
        help="of the input (default: what the network was made for)",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Make the network, write it, say where."""
    path = _target(arguments.output or f"{arguments.name}.onnx")
    if arguments.weights:
        readable(arguments.weights)
    from byocviz.models.gluon_export import export_gluoncv

    written = export_gluoncv(
        path,
        arguments.name,
        pretrained=not arguments.no_pretrained,
        weights=arguments.weights,
        seed=arguments.seed,
        shape=arguments.shape,
    )
    say_saved(written)
    return 0


def _target(name: str) -> Path:
    """The file to write, before the network is made."""
    path = Path(name)
    if path.suffix.lower() != ".onnx":
        raise ByocvizError(
            f"{name} does not end in .onnx.", "Name the file to write: -o model.onnx"
        )
    if path.exists() and not path.is_file():
        raise ByocvizError(f"{name} is no file.", "Name a file: -o model.onnx")
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise ByocvizError(
            f"{path.parent} is no folder that can be written to.",
            "Name a file in one that is: -o model.onnx",
        )
    return path


def _shape(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(one) for one in text.split(","))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not like 1,3,512,512") from error
