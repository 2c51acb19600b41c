"""What plots are made of: text that fits, words for times, pictures from strangers."""

from __future__ import annotations

import base64
import io
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from byocviz.recording.printable import printable
from byocviz.recording.results import Photo
from byocviz.render.plots import _demo, _photo, _words
from byocviz.render.plots._pen import MISSING, Pen, clean
from byocviz.render.plots._pictures import SIDE, Unreadable, decode
from tests.recording.strategies import names
from tests.render.plots_lab import png

PEN = Pen(150)


@given(names | st.text(max_size=80), st.floats(20, 300), st.floats(5, 20), st.booleans())
def test_a_line_fits_its_room(text: str, room: float, size: float, bold: bool) -> None:
    line = PEN.fit(text, room, size, bold)
    assert PEN.width(line, size, bold) <= max(room, PEN.width("...", size, bold))
    assert line == clean(text) or line.endswith("...")


@given(names | st.text(max_size=200), st.floats(40, 300), st.floats(5, 12), st.integers(1, 4))
def test_lines_fit_and_lose_nothing_but_the_end(
    text: str, room: float, size: float, lines: int
) -> None:
    made = PEN.wrap(text, room, size, lines)
    assert len(made) <= lines
    assert all(made)
    assert all(PEN.width(line, size) <= room for line in made)
    shown = "".join("".join(made).split())
    whole = "".join(clean(text).split())
    assert shown == whole or (shown.endswith("...") and whole.startswith(shown[:-3]))


@given(st.text(max_size=50))
def test_what_no_font_has_is_replaced(text: str) -> None:
    assert printable(clean(text)) == clean(text)
    assert MISSING in clean("\U0001f600") or clean("\U0001f600") == "\U0001f600"
    assert len(clean(text * 1000)) <= 10 * 300


@given(st.floats(1e-9, 1e11))
def test_times_keep_three_digits(ms: float) -> None:
    said = _words.said(ms)
    assert said.endswith(" ms")
    assert float(said[:-3].replace(",", "")) == pytest.approx(ms, rel=0.006)
    assert len(said) <= 14


@pytest.mark.parametrize(
    ("ms", "said"),
    [
        (0, "0 ms"),
        (0.01234, "0.0123 ms"),
        (0.9996, "1.00 ms"),
        (1.234, "1.23 ms"),
        (9.996, "10.0 ms"),
        (11.64, "11.6 ms"),
        (99.96, "100 ms"),
        (552.9, "553 ms"),
        (12345, "12,345 ms"),
    ],
)
def test_times_as_people_write_them(ms: float, said: str) -> None:
    assert _words.said(ms) == said


@pytest.mark.parametrize("seconds", [None, -1.0, float("nan"), float("inf"), 1e300])
def test_what_is_no_duration_is_unknown(seconds: float | None) -> None:
    assert _words.milliseconds(seconds) is None


def test_how_times_compare() -> None:
    assert _words.faster(47, 1) == "47× faster"
    assert _words.faster(1, 1.3) == "1.3× slower"
    assert _words.faster(1, 1.01) == "same"
    assert _words.faster(0, 1) == _words.faster(1, 0) == "?"


# -- pictures


def _png_header(width: int, height: int) -> str:
    """A PNG that claims a size and holds next to nothing."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    data = b"\x89PNG\r\n\x1a\n" + chunk(
        b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    )
    data += chunk(b"IDAT", zlib.compress(b"\0" * 1000)) + chunk(b"IEND", b"")
    return f"data:image/png;base64,{base64.b64encode(data).decode()}"


def test_a_picture_is_what_was_put_in() -> None:
    array = decode(png(7, 5))
    assert array.shape == (5, 7, 3)
    assert tuple(array[0, 0]) == (0x88, 0x66, 0x44)
    data = io.BytesIO()
    Image.new("L", (3, 2)).save(data, "JPEG")
    url = f"data:image/jpeg;base64,{base64.b64encode(data.getvalue()).decode()}"
    assert decode(url).shape == (2, 3, 3)
    assert decode(png(SIDE, 1)).shape == (1, SIDE, 3)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("", "not kept"),
        ("https://example.invalid/cat.png", "data URL"),
        ("data:image/svg+xml;base64,AAAA", "data URL"),
        ("data:image/png;base64,????", "cannot be read"),
        ("data:image/png;base64,AAAA", "cannot be read"),
        (png(4, 4).replace("png", "jpeg"), "cannot be read"),
        (png(60, 60)[:-60], "cannot be read"),
        (_png_header(SIDE + 1, 2), "too large"),
        (_png_header(10_000, 9_000), "too large"),  # Pillow warns of it
        (_png_header(50_000, 50_000), "too large"),  # Pillow refuses it
        (_png_header(4000, 4000), "cannot be read"),
    ],
)
@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_a_bad_picture_is_none(url: str, why: str) -> None:
    with pytest.raises(Unreadable, match=why):
        decode(url)


@given(st.lists(st.tuples(st.integers(1, 5000), st.integers(1, 5000)), min_size=1, max_size=4))
def test_photos_are_arranged_apart_and_within(sizes: list[tuple[int, int]]) -> None:
    photos = [Photo("", width, height) for width, height in sizes]
    areas = _demo.arranged(photos, 100, 20, 300, 400, 15)
    assert len(areas) == len(photos)
    for photo, (x0, y0, x1, y1) in zip(photos, areas, strict=True):
        assert 99.9 <= x0 < x1 <= 400.1
        assert 19.9 <= y0 - 15 < y1 <= 400.1
        assert (x1 - x0) / (y1 - y0) == pytest.approx(_photo.proportion(photo))
    for number, a in enumerate(areas):
        for b in areas[:number]:
            assert a[0] >= b[2] or b[0] >= a[2] or a[1] >= b[3] or b[1] >= a[3]
