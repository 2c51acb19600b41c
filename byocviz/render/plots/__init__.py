"""Plots of a recording, as matplotlib figures: ``byocviz.plots.latency(recording)``.

Each function returns a `matplotlib.figure.Figure` made without pyplot: nothing is shown, no
backend is chosen and nothing has to be closed; a notebook draws what a cell returns, and
``figure.savefig(path)`` writes it. With ``ax`` it draws into someone's own figure, takes the
whole of those axes and returns their figure. ``theme`` is ``"light"`` or ``"dark"``.

All raise `MissingPackage` where matplotlib (the extra ``plots``) is not installed, `StepMissing`
where the recording lacks what is to be drawn, `ArgumentError` for an ``ax`` that is no axes or
too small to read, and ValueError for another theme. Importing this imports no matplotlib.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from byocviz.errors import missing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from byocviz.recording import RecordingData, Step

__all__ = ["coverage", "demo", "detections", "latency", "op_profile"]


def latency(recording: RecordingData, *, ax: Axes | None = None, theme: str = "light") -> Figure:
    """The latency comparison: medians as bars, from the 10th to the 90th percentile as whiskers.

    Beside each bar stand how it compares with TVM alone, the number of subgraphs and the bytes
    that cross their boundary; "cannot: ..." stands in place of a bar. The first run is a hollow
    marker. Where a variant's parts were timed, its bar is split in their proportion. Times are in
    ms; the axis is logarithmic, and says so, where the longest median is over 20 times the
    shortest. At most 48 variants are drawn.
    """
    _need("to plot a latency comparison")
    from byocviz.render.plots import _latency

    _latency.needed(recording)
    return _drawn(_latency, ax, theme, 720, recording)


def coverage(recording: RecordingData, *, ax: Axes | None = None, theme: str = "light") -> Figure:
    """The share of operators and of multiply-accumulates (MACs) on the backend after each step,
    with the subgraphs and the bytes that cross their boundary, in and out. "?" is unknown.

    At most 12 steps are drawn.
    """
    _need("to plot coverage")
    from byocviz.render.plots import _coverage

    _coverage.needed(recording)
    return _drawn(_coverage, ax, theme, 760, recording)


def op_profile(
    recording: RecordingData,
    step: str | Step | None = None,
    top: int = 15,
    *,
    ax: Axes | None = None,
    theme: str = "light",
) -> Figure:
    """The operators of a step (the last that succeeded) by kind: how many are on the backend and
    how many on TVM, and beside that their multiply-accumulates; unknown ones are "?".

    The ``top`` most frequent kinds, 1 to 40, have a bar of their own. Raises `StepMissing` for a
    step that is not there or failed, `ArgumentError` for another ``top``.
    """
    _need("to plot an operator profile")
    from byocviz.render.plots import _op_profile

    profile = _op_profile.profile_of(recording, step, top)
    return _drawn(_op_profile, ax, theme, 800, recording, profile)


def detections(
    recording: RecordingData,
    photo: str | Sequence[str] | None = None,
    variants: str | Sequence[str] | None = None,
    *,
    ax: Axes | None = None,
    theme: str = "light",
) -> Figure:
    """What each variant found in each photo: a row a photo, a column a variant, and below each
    picture whether it is the same as the first variant's, or by how much it differs.

    ``photo`` and ``variants`` are names; all by default, of which at most 6 photos and 5 variants
    are drawn. Raises `StepMissing` for a name that is not there. A picture that is missing,
    damaged, or larger than 4096 x 4096 pixels is left blank and says so.
    """
    _need("to draw detections")
    from byocviz.render.plots import _detections

    chosen = _detections.chosen(recording, photo, variants)
    return _drawn(_detections, ax, theme, 0, recording, chosen)


def demo(recording: RecordingData, *, ax: Axes | None = None, theme: str = "light") -> Figure:
    """One figure for a slide, 16:9: the latency comparison, and beside it what the partitioned
    module found in the photos, with a line on whether all variants find the same.

    Where only one of the two is in the recording it has the figure for itself.
    """
    _need("to draw the demo's figure")
    from byocviz.render.plots import _demo

    _demo.needed(recording)
    return _drawn(_demo, ax, theme, _demo.WIDTH, recording)


def _need(why: str) -> None:
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise missing("matplotlib", "plots", why) from error


def _drawn(kind: Any, ax: Axes | None, theme: str, width: float, *what: Any) -> Figure:
    """A board for a plot, and the plot on it. ``kind`` is one of the modules beside this."""
    from byocviz.render.palette import theme as colours
    from byocviz.render.plots import _board

    if ax is None:
        wide, high = kind.size_for(*what, _board.measure(), width, colours(theme))
        board = _board.own(wide, high, theme)
    else:
        board = _board.given(ax, theme, kind.LEAST)
    kind.draw(board, *what)
    figure: Figure = board.figure
    return figure
