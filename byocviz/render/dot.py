"""A step as a Graphviz figure, for papers and slides.

The text (DOT) needs nothing but the recording. SVG and PNG are made by the program ``dot``
through the Python package graphviz.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import overload

from byocviz.errors import ByocvizError, MissingPackage, StepMissing, missing
from byocviz.recording.atomic import write
from byocviz.recording.printable import printable
from byocviz.recording.recording import Recording
from byocviz.recording.schema import FunctionView, Step
from byocviz.render.dot_text import Look, Writer

DIRECTIONS = ("TB", "LR")
_BY_THEMSELVES = ("entry", "function")


def to_dot(
    recording: Recording,
    step: str | Step,
    function: str | None = None,
    *,
    theme: str = "light",
    direction: str = "TB",
    legend: bool = True,
) -> str:
    """The figure of a step as DOT.

    Operators are coloured by where they run and say so; composite functions, regions, branches
    and functions are boxes, outlined subgraphs single nodes with their figures. ``function`` is
    the one to draw, an outlined subgraph's say; by default the entry and every other function
    that is not a subgraph, each in a frame. ``theme`` is ``"light"`` or ``"dark"``, ``direction``
    ``"TB"`` (downwards) or ``"LR"``; ``legend`` puts title, figures and colours below.

    Linear in the size of the step. Raises `StepMissing` for a step or function that the recording
    does not have or that is not drawn by itself, ValueError for another theme or direction.
    """
    return _text(recording, step, function, Look(theme, direction, legend))


@overload
def to_svg(
    recording: Recording,
    step: str | Step,
    function: str | None = None,
    *,
    path: None = None,
    theme: str = "light",
    direction: str = "TB",
    legend: bool = True,
) -> str: ...


@overload
def to_svg(
    recording: Recording,
    step: str | Step,
    function: str | None = None,
    *,
    path: str | os.PathLike[str],
    theme: str = "light",
    direction: str = "TB",
    legend: bool = True,
) -> Path: ...


def to_svg(
    recording: Recording,
    step: str | Step,
    function: str | None = None,
    *,
    path: str | os.PathLike[str] | None = None,
    theme: str = "light",
    direction: str = "TB",
    legend: bool = True,
) -> str | Path:
    """`to_dot` as SVG: its text, or the ``path`` that it was written to.

    Raises as `to_dot` does; `MissingPackage` where the package graphviz or the program ``dot`` is
    not installed; `ByocvizError` where ``dot`` fails or the file cannot be written.
    """
    data = _draw(_text(recording, step, function, Look(theme, direction, legend)), "svg")
    return data.decode("utf-8") if path is None else write(path, data)


@overload
def to_png(
    recording: Recording,
    step: str | Step,
    function: str | None = None,
    *,
    path: None = None,
    dpi: int = 200,
    theme: str = "light",
    direction: str = "TB",
    legend: bool = True,
) -> bytes: ...


@overload
def to_png(
    recording: Recording,
    step: str | Step,
    function: str | None = None,
    *,
    path: str | os.PathLike[str],
    dpi: int = 200,
    theme: str = "light",
    direction: str = "TB",
    legend: bool = True,
) -> Path: ...


def to_png(
    recording: Recording,
    step: str | Step,
    function: str | None = None,
    *,
    path: str | os.PathLike[str] | None = None,
    dpi: int = 200,
    theme: str = "light",
    direction: str = "TB",
    legend: bool = True,
) -> bytes | Path:
    """`to_dot` as PNG with ``dpi`` dots an inch (10 to 1200): its bytes, or the ``path`` that it
    was written to. Graphviz scales a picture down that would pass 32,767 pixels.

    Raises as `to_svg` does, and ValueError for another ``dpi``.
    """
    if not 10 <= dpi <= 1200:
        raise ValueError(f"dpi is {dpi!r}; it can be 10 to 1200")
    look = Look(theme, direction, legend, dpi)
    data = _draw(_text(recording, step, function, look), "png")
    return data if path is None else write(path, data)


def _text(recording: Recording, step: str | Step, function: str | None, look: Look) -> str:
    if look.direction not in DIRECTIONS:
        raise ValueError(f"direction is {look.direction!r}; it can be 'TB' or 'LR'")
    chosen = recording.step(step) if isinstance(step, str) else step
    return Writer(recording, chosen, _views(chosen, function), look).text()


def _views(step: Step, function: str | None) -> list[FunctionView]:
    drawn = [view for view in step.functions if view.graph is not None]
    if function is None:
        own = [view for view in drawn if view.kind in _BY_THEMSELVES]
        return sorted(own, key=lambda view: view.kind != "entry")
    for view in drawn:
        if view.name == function:
            return [view]
    names = ", ".join(printable(view.name, limit=60) for view in drawn[:20]) or "none"
    known = any(view.name == function for view in step.functions)
    what = "is not drawn by itself" if known else "does not exist"
    raise StepMissing(
        f"At the step {step.name!r}, function {printable(function, limit=60)!r} {what}.",
        f"Drawn by themselves: {names}." + (" ..." if len(drawn) > 20 else ""),
    )


def _draw(text: str, kind: str) -> bytes:
    try:
        import graphviz
    except ImportError as error:
        raise missing(
            "The Python package graphviz", "graphviz", f"to draw {kind.upper()}"
        ) from error
    try:
        return bytes(graphviz.pipe("dot", kind, text.encode("utf-8"), quiet=True))
    except graphviz.ExecutableNotFound as error:
        raise MissingPackage(
            f"Graphviz's program dot is not installed; it is needed to draw {kind.upper()}.",
            f"{_install()} Recording.to_dot() needs neither.",
        ) from error
    # The package's own is one of these; in its versions before 0.17 there is none.
    except (subprocess.CalledProcessError, OSError) as error:
        said = (getattr(error, "stderr", None) or b"").decode("utf-8", "replace").strip()
        raise ByocvizError(
            f"Graphviz's dot failed: {printable(said, lines=True, limit=1000) or error}.",
            "A graph too large for it: draw one function, or use Recording.to_html().",
        ) from error


def _install() -> str:
    """How to get ``dot`` on this platform."""
    if sys.platform == "darwin":
        return "brew install graphviz, or conda install -c conda-forge graphviz."
    if sys.platform == "win32":
        return "winget install Graphviz.Graphviz, or conda install -c conda-forge graphviz."
    return (
        "apt-get install graphviz (Debian, Ubuntu), dnf install graphviz (Fedora), or "
        "conda install -c conda-forge graphviz."
    )
