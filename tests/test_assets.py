from __future__ import annotations

import pytest

from byocviz import _assets
from byocviz.errors import ByocvizError


def test_a_bundled_file_is_found():
    assert _assets.asset("coffee.jpg").is_file()


def test_a_wheel_holds_them_inside_the_package(tmp_path, monkeypatch):
    package = tmp_path / "byocviz"
    (package / "assets").mkdir(parents=True)
    (package / "assets" / "a.txt").write_text("inside")
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "a.txt").write_text("beside")
    (tmp_path / "assets" / "b.txt").write_text("beside")
    monkeypatch.setattr(_assets, "_PACKAGE", package)
    assert _assets.asset("a.txt").read_text() == "inside"
    assert _assets.asset("b.txt").read_text() == "beside"


def test_a_missing_file_names_both_places():
    with pytest.raises(ByocvizError, match=r"(?s)nothing.bin.*git checkout"):
        _assets.asset("nothing.bin")


@pytest.mark.parametrize("name", ["", ".", "..", "../LICENSE", "/etc/passwd", "a/b"])
def test_only_plain_names(name):
    with pytest.raises(ByocvizError, match="not the name of a bundled file"):
        _assets.asset(name)
