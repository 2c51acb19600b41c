"""`byocviz.replay` and its command: from any file to a page that presents, without TVM."""

from __future__ import annotations

import base64
import gzip
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

import byocviz
from byocviz._replay import talk_of
from byocviz.cli import main
from byocviz.errors import MissingPackage, RecordingError, StepMissing
from byocviz.recording import Recording
from byocviz.recording.stops import Stop, stops_of, with_stops
from byocviz.render.html import VIEWER, to_html
from byocviz.render.replay import from_html, is_page
from tests.recording.strategies import built
from tests.test_show import held, script

pytestmark = pytest.mark.skipif(
    not (VIEWER / "dist" / "viewer.js").is_file(), reason="the viewer's bundle was not built"
)

TALK = "seconds: 2\nstops:\n- {step: import, note: first}\n- {step: merg, note: second}\n"


@pytest.fixture(scope="module")
def recording() -> Recording:
    return built(20)


@pytest.fixture
def saved(recording: Recording, tmp_path: Path) -> Path:
    return recording.save(tmp_path / "saved")


def options(page: str) -> dict[str, object]:
    """What the page is told."""
    found = re.search(r'id="byocviz-options">([^<]*)<', page)
    assert found
    whole: dict[str, object] = json.loads(found[1])
    return whole


def swapped(page: str, element: str, data: bytes) -> str:
    """The page with other data in one of its elements."""
    packed = base64.b64encode(gzip.compress(data)).decode()
    return re.sub(rf'(id="{element}">)[^<]*', lambda m: m.group(1) + packed, page, count=1)


def test_the_page_presents(saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = byocviz.replay(saved, file=tmp_path / "talk", open_browser=False)
    assert path == tmp_path / "talk.html"
    assert options(path.read_text(encoding="utf-8")) == {"replay": {}}
    assert f"Replay written to {path} (open it in a browser)" in capsys.readouterr().out
    byocviz.replay(saved, file=path, step="merge", autoplay=True, open_browser=False)
    assert options(path.read_text(encoding="utf-8"))["replay"] == {"step": "merge", "auto": True}
    byocviz.replay(saved, file=path, autoplay=3, open_browser=False)
    assert options(path.read_text(encoding="utf-8"))["replay"] == {"auto": True, "seconds": 3}


def test_stops_of_a_file_are_played_and_what_is_wrong_is_said(
    saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    talk = tmp_path / "talk.yaml"
    talk.write_text(TALK)
    path = byocviz.replay(saved, talk, file=tmp_path / "talk.html", open_browser=False)
    said = "talk.yaml, line 4: no step 'merg'; the nearest is 'merge'."
    assert said in capsys.readouterr().out
    page = path.read_text(encoding="utf-8")
    assert options(page)["replay"] == {"problems": [said]}
    kept = held(page)["recording"]["extra"]["stops"]  # type: ignore[index]
    assert [one["note"] for one in kept] == ["first", "second"]
    assert kept[0]["seconds"] == 2
    assert byocviz.load(saved).extra == {}, "the recording is left as it is"


def test_stops_of_the_recording_are_played(recording: Recording) -> None:
    mine = with_stops(
        recording, [Stop("merge", "one"), Stop("fuse", "two"), Stop("prune", op=10**9)]
    )
    talk = talk_of(mine)
    assert stops_of(talk.recording) == stops_of(mine)
    assert talk.problems[0] == "Stop 2: no step 'fuse'; the nearest is 'prune'."
    assert talk.problems[1].startswith("Stop 3: no operator #1000000000")


def test_a_page_is_as_good_as_a_file(recording: Recording, tmp_path: Path) -> None:
    mine = with_stops(recording, [Stop("merge", "said </script> & <b>")])
    for replay in (None, {}):
        page = tmp_path / "page.html"
        page.write_text(to_html(mine, replay=replay), encoding="utf-8")
        assert is_page(page)
        assert from_html(page) == mine
        assert talk_of(page).recording == mine
    renamed = page.rename(tmp_path / "page.bin")
    assert talk_of(renamed).recording == mine
    assert not is_page(recording.save(tmp_path / "saved"))


def test_pages_that_cannot_be_replayed(recording: Recording, tmp_path: Path) -> None:
    whole = to_html(recording)
    plain = held(whole)
    page = tmp_path / "page.html"
    element = "byocviz-recording"
    for text, word in (
        ("<!doctype html><title>x</title>", "holds no recording"),
        ("", "holds no recording"),
        (re.sub(r'(id="byocviz-recording">).{40}', r"\1", whole), "does not unpack"),
        (re.sub(r'(id="byocviz-recording">[^<]{400})[^<]*', r"\1", whole), "damaged"),
        (swapped(whole, element, b"[]"), "follow the schema"),
        (swapped(whole, element, b"{}"), "follow the schema"),
        (swapped(whole, element, b"\xff"), "follow the schema"),
        (swapped(whole, element, b"[" * 3_000_000), "more lists"),
        (swapped(whole, element, b"[" * 900_000), "follow the schema"),
        (swapped(whole, element, msgspec.json.encode({**plain, "drawings": []})), "schema"),
        (swapped(whole, "byocviz-texts", b'{"a": 3}'), "follow the schema"),
        (swapped(whole, "byocviz-texts", b"{}"), "damaged"),
    ):
        page.write_text(text, encoding="utf-8")
        with pytest.raises(RecordingError, match=word):
            from_html(page)
    newer = msgspec.json.encode({"schema": 99, "recording": {"unknown": 1}})
    page.write_text(swapped(whole, element, newer), encoding="utf-8")
    with pytest.raises(RecordingError, match="schema 99") as error:
        from_html(page)
    assert "press Shift P" in error.value.mend
    page.write_text(whole, encoding="utf-8")
    with pytest.raises(RecordingError, match="larger than"):
        from_html(page, max_bytes=1000)
    bomb = swapped('<script id="byocviz-recording"></script>', element, b" " * 30_000_000)
    page.write_text(bomb, encoding="utf-8")
    with pytest.raises(RecordingError, match="unpacks to more"):
        from_html(page, max_bytes=1_000_000)


def test_what_is_wrong_is_raised_before_anything_is_written(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "out.html"
    with pytest.raises(StepMissing, match="'fuse'"):
        byocviz.replay(saved, step="fuse", file=target)
    for pause in (-1, 0.01, 1e9, float("nan"), float("inf")):
        with pytest.raises(ValueError, match=r"from 0\.1 to 3600"):
            byocviz.replay(saved, autoplay=pause, file=target)
    with pytest.raises(RecordingError, match="absent"):
        byocviz.replay(tmp_path / "absent.byocviz", file=target)
    with pytest.raises(RecordingError, match="no such file"):
        byocviz.replay(saved, tmp_path / "absent.yaml", file=target)
    (tmp_path / "talk.yaml").write_text(TALK)
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(MissingPackage, match=r"\[replay\]"):
        byocviz.replay(saved, tmp_path / "talk.yaml", file=target)
    assert not target.exists()


def test_no_stops_are_no_talk(saved: Path, tmp_path: Path) -> None:
    (tmp_path / "talk.yaml").write_text("# nothing yet\n")
    talk = talk_of(saved, tmp_path / "talk.yaml")
    assert stops_of(talk.recording) == []
    assert talk.problems == ["talk.yaml is empty.", "It holds no stops: others are played."]


# -- by the command


def test_the_command(saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    talk, out = tmp_path / "talk.yaml", tmp_path / "o.html"
    talk.write_text(TALK)
    assert (
        main(["replay", str(saved), "--stops", str(talk), "-o", str(out), "--step", "merge"]) == 0
    )
    assert "line 4: no step 'merg'" in capsys.readouterr().out
    assert options(out.read_text(encoding="utf-8"))["replay"]["step"] == "merge"  # type: ignore[index]
    assert main(["replay", str(out), "-o", str(out), "--autoplay", "5"]) == 0
    assert options(out.read_text(encoding="utf-8"))["replay"] == {"auto": True, "seconds": 5.0}
    newer = saved.read_bytes().replace(b'"schema":1', b'"schema":9')
    (tmp_path / "newer.byocviz").write_bytes(newer)
    (tmp_path / "a.txt").write_text("text")
    capsys.readouterr()
    for arguments, word in (
        ([str(saved), "-o", "x.svg"], "a replay is a page"),
        ([str(saved), "-o", str(tmp_path / "absent" / "x.html")], "cannot be written"),
        ([str(saved), "--step", "fuse", "-o", str(out)], "fuse"),
        ([str(saved), "--autoplay", "-5", "-o", str(out)], "from 0.1 to 3600"),
        ([str(tmp_path / "newer.byocviz"), "-o", str(out)], "pip install --upgrade"),
        ([str(tmp_path / "a.txt"), "-o", str(out)], "not a recording"),
        ([str(tmp_path), "-o", str(out)], "cannot be read"),
        ([str(saved), "--stops", str(tmp_path), "-o", str(out)], "cannot be read"),
        ([str(saved), "--stops", str(saved), "-o", str(out)], "no YAML"),
        ([str(saved), "--stops", "/dev/null", "-o", str(out)], "device or pipe"),
    ):
        assert main(["replay", *arguments]) == 1, arguments
        assert word in capsys.readouterr().err, arguments


def test_it_imports_no_tvm_and_nothing_else_that_is_heavy(saved: Path, tmp_path: Path) -> None:
    (tmp_path / "talk.yaml").write_text(TALK)
    code = f"""
import sys
HEAVY = ("tvm", "onnx", "onnxruntime", "numpy", "matplotlib", "IPython", "PIL", "torch", "rich")
for name in HEAVY:
    sys.modules[name] = None
import byocviz
byocviz.replay({str(saved)!r}, {str(tmp_path / "talk.yaml")!r}, file={str(tmp_path / "a.html")!r})
byocviz.replay({str(tmp_path / "a.html")!r}, file={str(tmp_path / "b.html")!r})
"""
    done = script(code, tmp_path)
    assert done.returncode == 0, done.stderr
    first, second = (
        held((tmp_path / name).read_text(encoding="utf-8")) for name in ("a.html", "b.html")
    )
    assert first == second


def test_the_command_runs_by_itself(saved: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "byocviz", "replay", str(saved), "-o", str(tmp_path / "c.html")],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "c.html").is_file()


def test_a_file_of_mistakes_is_read_no_longer_than_they_are_said(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from byocviz.recording import stops, talk

    looked: list[str] = []

    def unknown(what: str, name: str, known: Any) -> str:
        looked.append(name)
        return stops.unknown(what, name, known)

    monkeypatch.setattr(talk, "unknown", unknown)
    keys = ", ".join(f"k{number}: 1" for number in range(3000))
    rows = "\n".join(f"- select: nobody{number}" for number in range(900))
    (tmp_path / "talk.yaml").write_text(f"- {{{keys}}}\n{rows}\n")
    read = talk_of(saved, tmp_path / "talk.yaml")
    assert len(stops_of(read.recording)) == 901
    assert len(looked) == len(read.problems) - 1 == 100
