"""What the commands share: printing, and files that are read and written."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from byocviz.errors import ByocvizError

if TYPE_CHECKING:
    from byocviz.recording import Recording


def json_flag(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON for a script")


def print_json(value: Any) -> None:
    text = msgspec.json.format(msgspec.json.encode(value, enc_hook=str), indent=2).decode()
    print(text)


def summary_data(recording: Recording) -> dict[str, Any]:
    """What ``--json`` prints of a recording: its tables as rows, without IR text and graphs."""
    from byocviz.recording import tables

    rows = tables(recording)
    return {
        "title": recording.title,
        "created": recording.created,
        "made_with": recording.made_with,
        "backend": recording.backend.name,
        "entry": recording.entry,
        "steps": rows.steps,
        "rewrites": rows.rewrites,
        "subgraphs": rows.subgraphs,
        "reasons": rows.reasons,
        "separations": rows.separations,
        "blockers": rows.blockers if recording.what_if is not None else None,
        "results": recording.results,
    }


def say(recording: Recording, as_json: bool) -> None:
    if as_json:
        print_json(summary_data(recording))
    else:
        from byocviz.render.text import print_to

        print_to(recording)


def say_saved(path: Path) -> None:
    from byocviz.recording.printable import printable

    print(f"Saved {printable(str(path))}", file=sys.stderr)


def writable(output: str) -> Path:
    """The file to save to, before an hour's work is done for it. Refuses to write a recording
    over what is none: most likely it is somebody's model."""
    from byocviz.recording.atomic import usable
    from byocviz.recording.file import MAGIC, target

    if os.path.isdir(output):
        raise ByocvizError(f"{output} is a folder.", "Name a file: -o model.byocviz")
    path = usable(target(output))
    if path.is_file():
        with path.open("rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise ByocvizError(
                    f"{path} is there and is no recording; it is left as it is.",
                    "Name another file with -o, one that ends in .byocviz.",
                )
    return path


def page_to_write(output: str) -> Path:
    """The page to write. Raises where it could not be, before anything is done for it."""
    from byocviz.recording.atomic import named, usable

    path = named(output, ".html")
    if path.suffix.lower() not in (".html", ".htm"):
        raise ByocvizError(
            f"{path} is no page by its suffix, {path.suffix!r}.", "Name a file that ends in .html."
        )
    return usable(path)


def figure_to_write(output: str) -> Path:
    """The figure to write by matplotlib, .png by default. Raises where it could not be."""
    from byocviz.errors import missing
    from byocviz.recording.atomic import named, usable

    try:
        from matplotlib.backend_bases import FigureCanvasBase
    except ImportError as error:
        raise missing("matplotlib", "plots", "to draw a figure") from error
    path = named(output, ".png")
    # Bare pixels are no figure to look at, and PGF needs LaTeX.
    known = set(FigureCanvasBase.get_supported_filetypes()) - {"pgf", "raw", "rgba"}
    if path.suffix.lower().lstrip(".") not in known:
        raise ByocvizError(
            f"{path} cannot be written: {path.suffix!r} is no format of figures.",
            "Name a file that ends in " + ", ".join(f".{name}" for name in sorted(known)) + ".",
        )
    return usable(path)


def readable(path: str) -> str:
    """Refuse what could be waited for without end; what else is wrong, its reader says."""
    if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
        raise ByocvizError(f"{path} is a device or pipe, not a file.", "Name a file.")
    return path
