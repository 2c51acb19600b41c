"""``byocviz show``: a recording as text, as a page, or a step of it as a figure."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from byocviz.cli.shared import json_flag, print_json, readable, say, say_saved
from byocviz.errors import ByocvizError

if TYPE_CHECKING:
    from byocviz.recording import Recording


def add(commands: Any) -> None:
    """Make the command known."""
    parser = commands.add_parser(
        "show", help="print a recording as text, or write it as a page or figure"
    )
    parser.add_argument("recording", help="a .byocviz file, or a model to record")
    parser.add_argument(
        "-o",
        "--output",
        help="write a page that opens in any browser (.html), or with --step a figure of it "
        "(.svg, .png or .dot)",
    )
    parser.add_argument(
        "--step",
        help="the IR text of every function at this step; with -o: where the page opens, or what "
        "the figure is of",
    )
    parser.add_argument("--function", help="with --step: this function alone")
    json_flag(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from byocviz._show import recording_of

    if arguments.function is not None and arguments.step is None:
        raise ByocvizError(
            "--function needs --step.", "byocviz show FILE --step merge --function main"
        )
    if arguments.output is not None:
        _page_or_figure(arguments.output)
    recording = recording_of(readable(arguments.recording))
    if arguments.output is not None:
        path = _write(recording, arguments)
        if arguments.json:
            say(recording, as_json=True)
        say_saved(path)
        return 0
    if arguments.step is not None:
        return _show_step(recording, arguments)
    say(recording, arguments.json)
    return 0


def _page_or_figure(output: str) -> None:
    """Refuse what `_write` could not write, before a model is recorded for it."""
    from byocviz.recording.atomic import named, usable

    path = named(output, ".html")
    if path.suffix.lower() not in (".html", ".htm", ".svg", ".png", ".dot"):
        raise ByocvizError(
            f"{path}: what -o writes is told by its suffix, and {path.suffix!r} is none that it "
            "knows.",
            "Name a file that ends in .html, .svg, .png or .dot.",
        )
    usable(path)


def _write(recording: Recording, arguments: argparse.Namespace) -> Path:
    """The page or figure that -o asks for, by its suffix."""
    path = Path(arguments.output)
    step: str = arguments.step
    function: str | None = arguments.function
    kind = path.suffix.lower()
    if kind in (".svg", ".png", ".dot") and step is None:
        raise ByocvizError(
            f"A figure is of one step: {path} needs --step.",
            "Steps: " + ", ".join(one.name for one in recording.steps),
        )
    if kind == ".svg":
        return recording.to_svg(step, function, path=path)
    if kind == ".png":
        return recording.to_png(step, function, path=path)
    if kind == ".dot":
        from byocviz.recording.atomic import write

        return write(path, recording.to_dot(step, function).encode("utf-8"))
    if function is not None:
        raise ByocvizError(
            "A page holds every function: --function cannot go with it.",
            "Leave it out, or write a figure: -o figure.svg",
        )
    return recording.to_html(path, step=step)


def _show_step(recording: Recording, arguments: argparse.Namespace) -> int:
    from byocviz.recording.printable import printable

    step = recording.step(arguments.step)
    functions = [f for f in step.functions if arguments.function in (None, f.name)]
    if arguments.function is not None and not functions:
        raise ByocvizError(
            f"The step {step.name!r} has no function {arguments.function!r}.",
            "Its functions: " + ", ".join(f.name for f in step.functions[:50]),
        )
    if arguments.json:
        print_json({"step": step, "texts": {f.name: recording.texts[f.text] for f in functions}})
        return 0
    for function in functions:
        lines = recording.texts[function.text].splitlines()
        print("\n".join(printable(line, limit=100_000) for line in lines), end="\n\n")
    return 0
