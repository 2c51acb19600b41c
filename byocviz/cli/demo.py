"""``byocviz demo``: the bundled SSD, all the way."""

from __future__ import annotations

import argparse
from typing import Any

from byocviz.building.names import RUNTIMES
from byocviz.cli.shared import json_flag, print_json, say_saved, summary_data, writable


def add(commands: Any) -> None:
    """Make the command known."""
    parser = commands.add_parser(
        "demo",
        help="the bundled SSD (MobileNetV2, COCO): recorded, built, timed, and what it finds",
    )
    parser.add_argument(
        "-o",
        "--output",
        default="ssd.byocviz",
        help="where to save the recording; its page (.html) and figure (.png) lie beside it "
        "(default: ssd.byocviz)",
    )
    parser.add_argument(
        "--runtime",
        default="auto",
        choices=["auto", *RUNTIMES],
        help="what executes the subgraphs; auto: TensorRT where it can run, else ONNX Runtime in "
        "its place",
    )
    parser.add_argument("--no-build", action="store_true", help="record only")
    parser.add_argument(
        "--verify",
        action="store_true",
        help="also compile and run each step on the CPU (some minutes)",
    )
    json_flag(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the demo, print what it found, say which files it wrote."""
    from byocviz.demo import demo

    found = demo(
        writable(arguments.output),
        verify=arguments.verify,
        build=not arguments.no_build,
        runtime=arguments.runtime,
    )
    if arguments.json:
        print_json({**summary_data(found.recording), "demo": found.figures})
    else:
        from rich.text import Text

        from byocviz.render.text import print_to

        print_to(found.recording)
        print_to(Text("\n" + found.text()))
    for path in (found.path, found.page, found.picture):
        if path is not None:
            say_saved(path)
    return 1 if found.recording.failed else 0
