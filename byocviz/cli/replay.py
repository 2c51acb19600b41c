"""``byocviz replay``: present a recording, without TVM, a GPU or a network."""

from __future__ import annotations

import argparse
from typing import Any

from byocviz.cli.shared import readable
from byocviz.errors import ByocvizError


def add(commands: Any) -> None:
    """Make the command known."""
    parser = commands.add_parser(
        "replay",
        help="present a recording on a stage, from stop to stop with one key; needs no TVM",
    )
    parser.add_argument("recording", help="a .byocviz file, or a page that byocviz wrote")
    parser.add_argument(
        "--stops",
        metavar="FILE",
        help="a YAML file of stops; by default those of the recording, else each step that "
        "changed something, and the results",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="write the page here; by default to a temporary place, and a browser opens it",
    )
    parser.add_argument("--step", help="where it begins")
    parser.add_argument(
        "--autoplay",
        nargs="?",
        type=float,
        const=True,
        default=False,
        metavar="SECONDS",
        help="go on by itself; each stop stays as long as it says, else so many seconds",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from byocviz._replay import replay

    if arguments.output is not None:
        _page(arguments.output)
    stops = None if arguments.stops is None else readable(arguments.stops)
    try:
        replay(
            readable(arguments.recording),
            stops,
            file=arguments.output,
            step=arguments.step,
            autoplay=arguments.autoplay,
            # Who names a file wants to take it along.
            open_browser=None if arguments.output is None else False,
        )
    except ValueError as error:
        if isinstance(error, ByocvizError):
            raise
        raise ByocvizError(f"--{error}.", "As in: --autoplay 10") from error
    return 0


def _page(output: str) -> None:
    """Refuse what is no page before anything is read for it."""
    from byocviz.recording.atomic import named, usable

    path = named(output, ".html")
    if path.suffix.lower() not in (".html", ".htm"):
        raise ByocvizError(
            f"{path}: a replay is a page, and {path.suffix!r} is none.",
            "Name a file that ends in .html.",
        )
    usable(path)
