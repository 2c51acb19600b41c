"""The hint names what pip can find: this project's folder, or the name once it is published."""

from __future__ import annotations

import importlib.metadata
import json
import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest

from byocviz import _install
from byocviz.errors import missing


def from_url(monkeypatch: pytest.MonkeyPatch, text: str | None) -> None:
    found = SimpleNamespace(read_text=lambda name: text)
    monkeypatch.setattr(_install, "distribution", lambda name: found)


@pytest.mark.parametrize("name", ["plain", "with a blank", "it's", "percent%20"])
def test_a_folder_is_named_as_a_shell_reads_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / name
    folder.mkdir()
    (folder / "pyproject.toml").touch()
    from_url(monkeypatch, json.dumps({"url": folder.as_uri(), "dir_info": {}}))
    assert shlex.split(_install.pip_install("relax"))[-1] == f"{folder}[relax]"
    assert str(folder) in missing("x", "relax", "here").mend or "'" in name


@pytest.mark.parametrize(
    "text", [None, "", "{", "[]", "{}", '{"url": 3}', '{"url": "file:///is/not/there"}',
             '{"url": "https://example.org/byocviz.whl"}']
)  # fmt: skip
def test_elsewhere_it_is_the_name(text: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    from_url(monkeypatch, text)
    assert _install.pip_install("relax,plots") == "pip install 'byocviz[relax,plots]'"


def test_not_installed_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(_install, "distribution", gone)
    assert "byocviz[relay,gluoncv]" in _install.with_relay()
    assert "byocviz[relax]" in _install.with_relax()
