"""The page as text; what a browser makes of it is in tests/viewer."""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
from pathlib import Path

import msgspec
import pytest

from byocviz.errors import MissingPackage, StepMissing
from byocviz.recording import Recording
from byocviz.recording.schema import Operator, Step
from byocviz.render import html as page

BUNDLE = page.Bundle("window.x = 1", "body { color: red }", "self.y = 2", "AAAA")


@pytest.fixture(autouse=True)
def small_bundle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "bundle", lambda: BUNDLE)


def recording(title: str = "a title") -> Recording:
    return Recording(
        title=title,
        ops={0: Operator(0, "relax.add")},
        steps=[Step("import")],
        texts={"k": "the text"},
    )


def piece(text: str, ident: str) -> bytes:
    found = re.search(rf'id="{ident}">([^<]*)<', text)
    assert found
    return gzip.decompress(base64.b64decode(found.group(1)))


def test_the_policy_names_the_script_by_its_hash() -> None:
    text = page.to_html(recording())
    script = re.findall(r"<script>(.*?)</script>", text, re.S)
    assert script == [BUNDLE.script]
    digest = base64.b64encode(hashlib.sha256(script[0].encode()).digest()).decode()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy
    assert f"&#x27;sha256-{digest}&#x27;" in policy.group(1)
    assert "default-src &#x27;none&#x27;" in policy.group(1)
    assert "script-src &#x27;unsafe-inline&#x27;" not in policy.group(1)


def test_the_data_is_all_there_and_the_texts_apart() -> None:
    text = page.to_html(recording())
    data = msgspec.json.decode(piece(text, "byocviz-recording"))
    assert data["recording"]["ops"]["0"]["name"] == "relax.add"
    assert "texts" not in data["recording"]
    assert msgspec.json.decode(piece(text, "byocviz-texts")) == {"k": "the text"}


def test_the_same_recording_gives_the_same_page() -> None:
    assert page.to_html(recording()) == page.to_html(recording())


@pytest.mark.parametrize("title", ["</title><script>x</script>", "{csp}", "a & b", "\u202ex"])
def test_titles_are_text(title: str) -> None:
    text = page.to_html(recording(title), title=title)
    assert text.count("<script>") == 1
    assert "\u202e" not in text.split("<body>")[0]
    options = re.search(r'id="byocviz-options">([^<]*)<', text)
    assert options
    assert msgspec.json.decode(options.group(1)) == {"title": title}


def test_what_cannot_be_shown_is_refused() -> None:
    with pytest.raises(ValueError, match="'light' or 'dark'"):
        page.to_html(recording(), theme="blue")
    with pytest.raises(StepMissing):
        page.to_html(recording(), step="merge")


def test_a_missing_bundle_names_the_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(page, "VIEWER", tmp_path)
    with pytest.raises(MissingPackage, match=r"npm .* run build"):
        page.bundle()


def test_a_bundle_that_would_end_its_element_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(page, "VIEWER", tmp_path)
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "viewer.js").write_text("x = '</SCRIPT>'")
    for name in ("viewer.css", "worker.js", "graphviz.wasm.gz"):
        (tmp_path / "dist" / name).write_text("")
    page._read.cache_clear()
    with pytest.raises(AssertionError, match="script"):
        page.bundle()
    page._read.cache_clear()
