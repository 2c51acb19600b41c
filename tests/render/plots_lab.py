"""What the tests of plots share: data to be drawn, and what holds of every figure."""

from __future__ import annotations

import base64
import io
import itertools
from typing import Any

import msgspec
from hypothesis import strategies as st
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from PIL import Image

from byocviz.recording import Recording
from byocviz.recording.printable import printable
from byocviz.recording.results import (
    BuildInfo,
    Detected,
    Found,
    Latency,
    Part,
    Photo,
    Results,
    Variant,
)
from tests.recording.strategies import names

KINDS = ("tvm", "byoc", "runtime", "part", "another")


def png(width: int, height: int) -> str:
    """A picture of that size, as a data URL."""
    data = io.BytesIO()
    Image.new("RGB", (width, height), "#886644").save(data, "PNG")
    return f"data:image/png;base64,{base64.b64encode(data.getvalue()).decode()}"


def with_results(recording: Recording, **results: Any) -> Recording:
    return msgspec.structs.replace(recording, results=Results(**results))


# -- strategies

any_seconds = st.one_of(
    st.none(), st.floats(1e-6, 10.0), st.sampled_from([0.0, 1e-9, 1e6, -1.0, 1e300])
)


@st.composite
def variants(draw: st.DrawFn) -> Variant:
    median = draw(any_seconds)
    parts = draw(st.lists(st.tuples(st.just("TVM") | names, st.floats(0, 1)), max_size=15))
    return Variant(
        draw(names),
        draw(st.sampled_from(KINDS)),
        draw(st.sampled_from(["", "", "as imported", "x" * 300, "$\\frac{$"])),
        first=draw(any_seconds),
        median=median,
        p10=draw(any_seconds),
        p90=draw(any_seconds),
        cannot=draw(st.sampled_from(["", "", "", "NonMaxSuppression", "$x$ " * 60, "\x1b[31m"])),
        subgraphs=draw(st.none() | st.integers(0, 10**6)),
        boundary_bytes=draw(st.none() | st.integers(0, 2**50)),
        coverage_ops=draw(st.none() | st.floats(0, 1)),
        parts=[Part(name, value) for name, value in parts],
        note=draw(names),
    )


latencies = st.builds(
    Latency,
    st.lists(variants(), min_size=1, max_size=12),
    st.integers(0, 1000),
    st.integers(0, 10),
    st.sampled_from(["", "2025-11-03T14:22:05+00:00", "\u202ex"]),
    st.dictionaries(names, names, max_size=5),
    names,
)
builds = st.none() | st.builds(
    BuildInfo, runtime=names, title=names, stands_in_for=names, why=names, machine=st.just({})
)
_side = st.floats(-1e4, 1e4) | st.sampled_from([float("nan"), float("inf")])
founds = st.builds(Found, names, st.floats(0, 1), st.tuples(_side, _side, _side, _side))


@st.composite
def photos(draw: st.DrawFn) -> Photo:
    width, height = draw(st.integers(1, 5000)), draw(st.integers(1, 5000))
    image = draw(
        st.sampled_from(["", png(16, 9), "data:image/png;base64,AAAA", "data:text/html,<b>"])
    )
    detected = [
        Detected(
            draw(st.sampled_from(["TVM alone", "TVM + ONNX Runtime", "$x$", ""])),
            draw(st.sampled_from(KINDS)),
            draw(st.lists(founds, max_size=6)),
            draw(st.none() | st.floats(0, 1)),
            draw(st.none() | st.floats(0, 1e4)),
            draw(st.just("") | names),
        )
        for _ in range(draw(st.integers(0, 3)))
    ]
    return Photo(draw(names), width, height, image, detected)


# -- what a figure shows


def texts(figure: Figure) -> list[Text]:
    """All text that can be seen."""
    return [text for text in figure.findobj(Text) if text.get_visible() and text.get_text()]


def words(figure: Figure) -> str:
    """The same as one text, lines in the order in which they were drawn."""
    return "\n".join(text.get_text() for text in texts(figure))


def axes_named(figure: Figure, label: str) -> list[Any]:
    hosts = figure.axes
    return [ax for host in hosts for ax in host.child_axes if ax.get_label() == label]


def patches(axes: Any, label: str) -> list[Rectangle]:
    return [patch for patch in axes.patches if patch.get_label() == label]


def check(figure: Figure, within: Any = None) -> None:
    """Nothing is cut off, lies on something else, or is read as anything but plain text.

    ``within`` is the axes that were given, the whole figure by default.
    """
    box = figure.bbox if within is None else within.get_window_extent()
    placed = []
    for text in texts(figure):
        assert not text.get_parse_math()
        assert not text.get_usetex()
        assert "DejaVu Sans" in text.get_fontfamily()
        said = text.get_text()
        assert printable(said) == said
        extent = text.get_window_extent()
        assert box.x0 - 1 <= extent.x0 <= extent.x1 <= box.x1 + 1, said
        assert box.y0 - 1 <= extent.y0 <= extent.y1 <= box.y1 + 1, said
        # A line's extent has room for accents, which may reach into the next line's.
        air = extent.height * 0.2
        placed.append((said, extent.x0, extent.y0 + air, extent.x1, extent.y1 - air))
    for a, b in itertools.combinations(placed, 2):
        apart = a[3] <= b[1] + 1 or b[3] <= a[1] + 1 or a[4] <= b[2] or b[4] <= a[2]
        assert apart, (a, b)
