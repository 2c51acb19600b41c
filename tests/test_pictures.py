"""The README's pictures are those that the command makes, and small."""

from __future__ import annotations

import io
import random

import pytest
from PIL import Image

from tests import pictures


def test_all_are_there_and_small() -> None:
    names = [*pictures.NAMES]
    assert len(names) == len(set(names)) <= 4
    for name in names:
        path = pictures.ASSETS / f"{name}.webp"
        assert path.stat().st_size <= pictures.LARGEST
        with Image.open(path) as image:
            assert image.width >= 1200
            assert not image.getexif()


def test_a_picture_is_made_small_enough(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setattr(pictures, "ROOT", tmp_path)
    monkeypatch.setattr(pictures, "ASSETS", tmp_path)
    noise = Image.frombytes("RGB", (300, 300), random.Random(0).randbytes(270_000))
    png = io.BytesIO()
    noise.save(png, "PNG")
    assert pictures.write("noise", png.getvalue()).stat().st_size <= pictures.LARGEST
    monkeypatch.setattr(pictures, "LARGEST", 1000)
    with pytest.raises(SystemExit, match="it may have 1,000"):
        pictures.write("noise", png.getvalue())
