"""What plots are drawn on: a rectangle measured in points, in a figure of its own or in someone
else's axes, without pyplot and without any of its settings.

Imports matplotlib.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.patheffects import Normal, withStroke

from byocviz.errors import ArgumentError
from byocviz.recording.printable import printable
from byocviz.recording.schema import RecordingData
from byocviz.render.palette import Theme, theme
from byocviz.render.plots._pen import LINE, Pen, families

DPI = 150
MARGIN = 18.0
TITLE, HEAD, BODY, SMALL, TINY = 16.0, 11.0, 10.0, 8.5, 7.5
"""Sizes of text."""


class PlotFigure(Figure):  # type: ignore[misc]  # matplotlib's types are not followed
    """A matplotlib Figure that a notebook shows though pyplot knows nothing of it."""

    def _repr_png_(self) -> bytes:
        from io import BytesIO

        made = BytesIO()
        self.savefig(made, format="png")
        return made.getvalue()


class Ink(NamedTuple):
    """How a bar or a swatch is filled."""

    face: str
    hatch: str = ""
    stroke: str = ""
    """Of the hatch and of the outline; the page's colour where it is empty."""
    width: float = 0.0
    """Of the outline."""


class Key(NamedTuple):
    """An entry of a legend: a swatch (`Ink`) or a marker's name, and its text."""

    mark: Ink | str
    text: str


def inks(colours: Theme) -> dict[str, Ink]:
    """The fills of all plots: what runs on TVM is grey and striped, whatever else it is."""
    paints = colours.paints
    return {
        "tvm": Ink(paints["tvm"].line, "////"),
        "byoc": Ink(paints["b0"].line),
        "runtime": Ink(paints["b1"].line, "..."),
        "part": Ink(paints["b1"].fill, "\\\\\\\\", paints["b1"].line, 1.0),
        "macs": Ink(paints["b1"].fill, "\\\\\\\\", paints["b1"].line, 1.0),
    }


class Board:
    """A host axes whose data coordinates are points from its lower left corner."""

    def __init__(self, host: Any, colours: Theme, *, paper: bool = False) -> None:
        host.set_axis_off()
        self.host = host
        if self.figure.get_layout_engine() is not None:
            self.figure.draw_without_rendering()  # only then it is known how large the axes are
        box, figure = host.get_position(), host.figure
        # A SubFigure has the resolution and, through its bbox, the size of its part.
        dpi = figure.dpi
        self.colours = colours
        self.inks = inks(colours)
        self.width = box.width * figure.bbox.width * 72 / dpi
        self.height = box.height * figure.bbox.height * 72 / dpi
        self.pen = Pen(dpi)
        host.set_xlim(0, self.width)
        host.set_ylim(0, self.height)
        if paper:
            self.rectangle(0, 0, self.width, self.height, Ink(colours.page), zorder=-2)

    @property
    def figure(self) -> Any:
        """The figure, of a SubFigure the one that it lies in."""
        figure = self.host.figure
        while not isinstance(figure, Figure):
            figure = figure.figure
        return figure

    def text(
        self,
        x: float,
        y: float,
        text: str,
        size: float = BODY,
        *,
        colour: str = "",
        ha: str = "left",
        va: str = "baseline",
        bold: bool = False,
        italic: bool = False,
        axes: Any = None,
        halo: bool = False,
        **more: Any,
    ) -> Any:
        """A line of text that is `clean` and was made to fit; never read as mathematics.

        ``halo`` keeps the lines of a grid away from it.
        """
        if halo:
            more["path_effects"] = self.halo(3)
        return (axes or self.host).text(
            x,
            y,
            text,
            fontsize=size,
            color=colour or self.colours.ink,
            ha=ha,
            va=va,
            fontfamily=families(),
            fontweight="bold" if bold else "normal",
            fontstyle="italic" if italic else "normal",
            parse_math=False,
            usetex=False,
            **more,
        )

    def paragraph(
        self, x: float, top: float, lines: Sequence[str], size: float, **look: Any
    ) -> float:
        """Lines from ``top`` down; returns where the next thing can begin."""
        for line in lines:
            self.text(x, top - size, line, size, **look)
            top -= size * LINE
        return top

    def rectangle(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        ink: Ink,
        *,
        axes: Any = None,
        **more: Any,
    ) -> Any:
        """A filled rectangle, in points or in the data of ``axes``."""
        patch = Rectangle(
            (x, y),
            width,
            height,
            facecolor=ink.face,
            edgecolor=ink.stroke or self.colours.page,
            linewidth=ink.width,
            hatch=ink.hatch or None,
            **more,
        )
        (axes or self.host).add_patch(patch)
        return patch

    def line(
        self, x: Sequence[float], y: Sequence[float], colour: str = "", width: float = 0.8
    ) -> None:
        self.host.plot(
            x, y, color=colour or self.colours.edge, linewidth=width, marker="", linestyle="-"
        )

    def axes(self, x: float, y: float, width: float, height: float, label: str) -> Any:
        """Axes within, without a frame; ``label`` names them (``host.child_axes``)."""
        made = self.host.inset_axes([x, y, width, height], transform=self.host.transData)
        made.set_label(label)
        made.set_facecolor("none")
        made.grid(False)
        made.set_axisbelow(True)
        for spine in made.spines.values():
            spine.set_visible(False)
        made.tick_params(
            axis="both",
            which="both",
            length=0,
            labelbottom=False,
            labeltop=False,
            labelleft=False,
            labelright=False,
        )
        return made

    def ticks(self, axes: Any, which: str, form: Callable[[float], str], size: float) -> None:
        """Labels at the ticks of the axis ``x`` or ``y``, and a line at each but the first.

        Drawn here, for an axis' own labels follow settings of pyplot, LaTeX among them.
        """
        across = which == "x"
        axis, draw = (axes.xaxis, axes.axvline) if across else (axes.yaxis, axes.axhline)
        low, high = sorted(axis.get_view_interval())
        box = axes.get_window_extent()
        to_board = self.host.transData.inverted()
        end = -1.0
        for at in axis.get_majorticklocs():
            if not low <= at <= high:
                continue
            if at > low:
                self.grid_line(draw, at, 0.35)
            place = axes.transData.transform((at, axes.get_ylim()[0]) if across else (0, at))
            x, y = to_board.transform((place[0], box.y0) if across else (box.x0, place[1]))
            x, y = (x, y - size * LINE) if across else (x - 5, y - size * 0.36)
            half = self.pen.width(form(at), size) / 2
            if (x - half <= end + 3) if across else (y <= end):
                continue  # no room beside, or above, the label before it
            end = x + half if across else y + size * LINE
            ha = "center" if across else "right"
            self.text(x, y, form(at), size, colour=self.colours.muted, ha=ha)

    def grid_line(self, draw: Callable[..., Any], at: float, alpha: float) -> None:
        """Behind everything; ``draw`` is ``axvline`` or ``axhline`` of some axes."""
        look = {"linestyle": "-", "marker": "", "linewidth": 0.7, "zorder": 0.5}
        draw(at, color=self.colours.edge, alpha=alpha, **look)

    def keys(
        self, keys: Sequence[Key], x: float, top: float, room: float, size: float = SMALL
    ) -> float:
        """A legend in as few rows as ``room`` allows; returns where the next thing can begin."""
        at, line = x, size * 1.7
        for key in keys:
            text = self.pen.fit(key.text, room - 26, size)
            wide = 26 + self.pen.width(text, size)
            if at > x and at + wide > x + room:
                at, top = x, top - line
            self._mark(key.mark, at, top - line * 0.5)
            self.text(
                at + 24, top - line * 0.5 - size * 0.36, text, size, colour=self.colours.muted
            )
            at += wide + 14
        return top - line if keys else top

    def _mark(self, mark: Ink | str, x: float, y: float) -> None:
        if isinstance(mark, Ink):
            self.rectangle(x, y - 4, 18, 8, mark)
        elif mark == "whisker":
            self.whisker(self.host, x + 1, x + 17, y)
        else:
            self.dot(self.host, x + 9, y, mark)

    def whisker(self, axes: Any, low: float, high: float, y: float) -> None:
        """A line with ends, that is seen on a bar and beside it."""
        axes.plot(
            [low, high],
            [y, y],
            color=self.colours.ink,
            linewidth=1.2,
            linestyle="-",
            marker="|",
            markersize=7,
            markeredgewidth=1.2,
            zorder=5,
            path_effects=self.halo(2.6),
        )

    def dot(self, axes: Any, x: float, y: float, marker: str = "o") -> None:
        """A hollow marker."""
        axes.plot(
            [x],
            [y],
            marker=marker,
            markersize=6.5,
            markerfacecolor=self.colours.page,
            markeredgecolor=self.colours.ink,
            markeredgewidth=1.2,
            linestyle="",
            zorder=6,
            clip_on=False,
        )

    def halo(self, width: float) -> list[Any]:
        """Path effects: a rim in the page's colour."""
        return [withStroke(linewidth=width, foreground=self.colours.page), Normal()]


def key_rows(keys: Sequence[Key], pen: Pen, room: float, size: float = SMALL) -> int:
    """How many rows `Board.keys` takes."""
    rows, at = 0, 0.0
    for key in keys:
        wide = 26 + pen.width(pen.fit(key.text, room - 26, size), size)
        if rows == 0 or (at > 0 and at + wide > room):
            rows, at = rows + 1, 0.0
        at += wide + 14
    return rows


def measure() -> Pen:
    """A pen for a figure that is yet to be made: its height follows from what it must hold."""
    return Pen(DPI)


def own(width: float, height: float, name: str) -> Board:
    """A board in a new figure of that many points."""
    colours = theme(name)
    figure = PlotFigure(
        figsize=(width / 72, height / 72), dpi=DPI, facecolor=colours.page, layout="none"
    )
    FigureCanvasAgg(figure)
    return Board(figure.add_axes([0, 0, 1, 1], label="board"), colours)


def given(ax: Any, name: str, least: tuple[float, float]) -> Board:
    """A board in someone's axes, all of which it takes.

    Raises `ArgumentError` for what is no axes, and for axes smaller than ``least`` points.
    """
    if not isinstance(ax, Axes):
        raise ArgumentError(
            f"ax is a {printable(type(ax).__name__, limit=80)}, not a matplotlib Axes.",
            "Give one of figure.subplots(), or leave ax out for a figure of its own.",
        )
    colours = theme(name)
    board = Board(ax, colours, paper=True)
    if board.width < least[0] or board.height < least[1]:
        raise ArgumentError(
            f"ax is {board.width / 72:.1f} x {board.height / 72:.1f} inches, too small to read.",
            f"Give axes of at least {least[0] / 72:.1f} x {least[1] / 72:.1f} inches, or leave ax "
            "out for a figure of its own.",
        )
    return board


def titled(what: str, recording: RecordingData) -> str:
    """A plot's title."""
    return f"{what}: {recording.title}" if recording.title else what
