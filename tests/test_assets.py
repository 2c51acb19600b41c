from __future__ import annotations

import msgspec
import pytest

import byocviz
from byocviz import _assets
from byocviz.errors import ByocvizError
from byocviz.models import ssd
from byocviz.recording.talk import load_talk


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


def test_the_recording_is_whole_says_where_it_is_from_and_names_no_place():
    recording = byocviz.load(_assets.asset("ssd.byocviz"))
    assert [step.name for step in recording.steps if step.error] == []
    assert recording.steps[0].profile.total == 705
    results = recording.results
    assert results.latency.machine["processor"]
    assert results.latency.made
    assert results.build.stands_in_for == "TensorRT"
    assert {photo.name for photo in results.photos} == set(ssd.photos())
    assert _assets.asset("ssd.byocviz").stat().st_size < 300_000
    plain = msgspec.json.encode(recording)
    for top in ("home", "root", "tmp", "work", "Users"):
        assert f"/{top}/".encode() not in plain


def test_the_talk_names_nothing_that_the_recording_lacks():
    recording = byocviz.load(_assets.asset("ssd.byocviz"))
    talk = load_talk(_assets.asset("ssd.yaml"), recording)
    assert talk.problems == []
    assert len(talk.stops) >= 8
