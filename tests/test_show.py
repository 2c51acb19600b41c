"""`byocviz.show` in scripts, by the command and in a notebook's kernel."""

from __future__ import annotations

import base64
import contextlib
import gzip
import html
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import byocviz
from byocviz._show import recording_of
from byocviz.cli import main
from byocviz.errors import MissingPackage, ModelError, RecordingError, StepMissing
from byocviz.recording import Recording
from byocviz.render.html import VIEWER
from tests.recording.strategies import built

pytestmark = pytest.mark.skipif(
    not (VIEWER / "dist" / "viewer.js").is_file(), reason="the viewer's bundle was not built"
)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    return built(20).save(tmp_path / "saved")


def held(page: str) -> dict[str, object]:
    """The recording that a page holds."""
    found = re.search(r'id="byocviz-recording">([^<]*)<', page)
    assert found
    whole: dict[str, object] = json.loads(gzip.decompress(base64.b64decode(found[1])))
    return whole


def script(code: str, tmp_path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a script as a person would, without a display unless ``environment`` names one."""
    known = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")}
    known.pop("BROWSER", None)
    file = tmp_path / "script.py"
    file.write_text(code)
    return subprocess.run(
        [sys.executable, str(file)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**known, "PYTHONPATH": str(Path(byocviz.__file__).parent.parent), **environment},
    )


def browser(tmp_path: Path) -> tuple[str, Path]:
    """A browser that writes down what it opens and stays open; and where it writes."""
    program, log = tmp_path / "browser", tmp_path / "opened"
    program.write_text(
        f'#!/bin/sh\nexec >/dev/null 2>&1\necho "$$ $1" > "{log}.new"\n'
        f'mv "{log}.new" "{log}"\nexec sleep 300\n'
    )
    program.chmod(0o755)
    return f"{program} %s", log


def closed(log: Path) -> str:
    """What the browser opened; it is closed."""
    number, _, opened = log.read_text().strip().partition(" ")
    with contextlib.suppress(ProcessLookupError):
        os.kill(int(number), signal.SIGTERM)
    return opened


# -- in a script


def test_a_script_writes_the_page_and_prints_its_path(saved: Path, tmp_path: Path) -> None:
    code = f"import byocviz\npath = byocviz.show({str(saved)!r})\nprint('returned', path)\n"
    done = script(code, tmp_path, TMPDIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    path = Path(done.stdout.rpartition("returned ")[2].strip())
    assert path.parent.parent == tmp_path
    assert path.suffix == ".html"
    assert f"View written to {path} (open it in a browser)" in done.stdout
    assert "subgraphs" in done.stdout
    assert done.stdout.index("subgraphs") < done.stdout.index("View written")
    assert held(path.read_text(encoding="utf-8"))["schema"]


def test_a_browser_opens_it_where_there_is_a_display(saved: Path, tmp_path: Path) -> None:
    program, log = browser(tmp_path)
    out = tmp_path / "out.html"
    code = f"import byocviz\nbyocviz.show({str(saved)!r}, file={str(out)!r}, open_browser=%s)\n"
    # The script ends while the browser stays open.
    done = script(code % None, tmp_path, DISPLAY=":99", BROWSER=program)
    assert done.returncode == 0, done.stderr
    assert "opened in the browser" in done.stdout
    assert closed(log) == out.resolve().as_uri()
    log.unlink()
    done = script(code % False, tmp_path, DISPLAY=":99", BROWSER=program)
    assert "open it in a browser" in done.stdout
    assert not log.exists()
    done = script(code % None, tmp_path, BROWSER=program)
    assert "open it in a browser" in done.stdout
    assert not log.exists()
    done = script(code % True, tmp_path, BROWSER=program)
    assert "opened in the browser" in done.stdout
    assert closed(log) == out.resolve().as_uri()


def test_a_browser_of_the_terminal_is_left_alone(saved: Path, tmp_path: Path) -> None:
    program, log = browser(tmp_path)
    (tmp_path / "browser").rename(tmp_path / "w3m")
    out = tmp_path / "out.html"
    code = f"import byocviz\nbyocviz.show({str(saved)!r}, file={str(out)!r})\n"
    done = script(code, tmp_path, DISPLAY=":99", BROWSER=program.replace("browser %s", "w3m %s"))
    assert "open it in a browser" in done.stdout
    assert not log.exists()


def test_what_can_be_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from tests.corpus import by_name

    module = by_name("tutorial_without_bias").build()
    path = byocviz.show(module, file=tmp_path / "module", open_browser=False, step="merge")
    assert path == tmp_path / "module.html"
    assert '"step":"merge"' in path.read_text(encoding="utf-8")
    recording = built(9)
    assert recording_of(recording) is recording
    renamed = recording.save(tmp_path / "a").rename(tmp_path / "b.bin")
    assert recording_of(str(renamed)) == recording
    with pytest.raises(ModelError):
        byocviz.show(42)
    with pytest.raises(RecordingError, match=r"absent\.byocviz"):
        byocviz.show(tmp_path / "absent.byocviz")
    with pytest.raises(ModelError, match=r"absent\.onnx"):
        byocviz.show(tmp_path / "absent.onnx")
    capsys.readouterr()
    with pytest.raises(StepMissing, match="'fuse'"):
        byocviz.show(recording, step="fuse")
    assert capsys.readouterr().out == ""


def test_a_missing_bundle_is_said_after_the_summary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("byocviz.render.html.VIEWER", tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(MissingPackage, match="run build"):
        byocviz.show(built(9))
    assert "subgraphs" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("title", ["../../etc/x", "a/b\\c", "\x00\u202e", "", "." * 300, "名前"])
def test_a_title_is_no_path(title: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    path = byocviz.show(Recording(title=title), open_browser=False)
    assert path is not None
    assert path.parent.parent == tmp_path
    assert path.is_file()


def test_a_page_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    recording = built(9)
    path = recording.to_html(tmp_path / "page", step="merge")
    assert path == tmp_path / "page.html"
    before = path.read_bytes()
    path.chmod(0o600)
    assert recording.to_html(path, step="merge").read_bytes() == before
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(RecordingError, match="cannot be written"):
        recording.to_html(tmp_path / "absent" / "page.html")
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(RecordingError, match="cannot be written"):
        recording.to_html(tmp_path / "folder.html")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["folder.html", "page.html"]


# -- by the command


def test_the_command_writes_pages_and_figures(
    saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "o.html"
    assert main(["show", str(saved), "-o", str(page), "--step", "merge"]) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == f"Saved {page}\n"
    assert '"step":"merge"' in page.read_text(encoding="utf-8")
    assert main(["show", str(saved), "-o", str(tmp_path / "o.dot"), "--step", "merge"]) == 0
    assert (tmp_path / "o.dot").read_text(encoding="utf-8").startswith("digraph")
    assert main(["show", str(saved), "-o", str(page), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["backend"] == "tensorrt"
    for arguments, word in (
        (["-o", "x.svg"], "needs --step"),
        (["-o", "x.pdf"], ".png or .dot"),
        (["-o", "x.html", "--step", "merge", "--function", "main"], "--function"),
        (["-o", "x.html", "--step", "fuse"], "fuse"),
        (["-o", "x.dot", "--step", "merge", "--function", "nope"], "nope"),
        (["-o", str(tmp_path / "absent" / "x.html")], "cannot be written"),
    ):
        assert main(["show", str(saved), *arguments]) == 1
        assert word in capsys.readouterr().err
    assert not Path("x.html").exists()


# -- in a notebook


def test_a_notebook_displays_it_inline(saved: Path, tmp_path: Path) -> None:
    pytest.importorskip("ipykernel")
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(kernel_name="python3", cwd=str(tmp_path))
    shown: list[dict[str, str]] = []
    streams: list[str] = []

    def message(received: dict[str, dict[str, object]]) -> None:
        content = received["content"]
        if received["header"]["msg_type"] in ("display_data", "execute_result"):
            shown.append(content["data"])  # type: ignore[arg-type]
        elif received["header"]["msg_type"] in ("stream", "error"):
            streams.append(str(content))

    root = Path(byocviz.__file__).parent.parent
    code = f"import sys; sys.path.insert(0, {str(root)!r})\nimport byocviz\n"
    try:
        client.execute_interactive(
            code + f"byocviz.show({str(saved)!r}, step='merge')", output_hook=message, timeout=120
        )
        assert streams == []
        assert len(shown) == 1
        frame = shown[0]["text/html"]
        assert shown[0]["text/plain"].startswith("<Recording")
        found = re.fullmatch(r'<iframe srcdoc="([^"]*)" sandbox="([^"]*)"[^<>]*></iframe>', frame)
        assert found
        assert "allow-same-origin" not in found[2]
        page = html.unescape(found[1])
        assert page.startswith("<!doctype html>")
        assert '"step":"merge"' in page
        out = tmp_path / "out.html"
        client.execute_interactive(
            f"path = byocviz.show({str(saved)!r}, file={str(out)!r})",
            output_hook=message,
            timeout=120,
        )
        assert len(shown) == 2
        assert "View written to" in "".join(streams)
        assert out.is_file()
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
