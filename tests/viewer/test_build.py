"""The build hook: when it builds, with what, and what it says where it cannot."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from byocviz.viewer import hatch_build


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "src" / "ui").mkdir(parents=True)
    (tmp_path / "src" / "ui" / "a.ts").write_text("")
    for name in hatch_build.SOURCES[1:]:
        (tmp_path / name).write_text("")
    return tmp_path


def made(tree: Path) -> None:
    (tree / "dist").mkdir(exist_ok=True)
    for name in hatch_build.BUNDLE:
        (tree / "dist" / name).write_text("")


def test_fresh_is_all_of_it_and_no_older_than_its_sources(tree: Path) -> None:
    assert not hatch_build.fresh(tree)
    made(tree)
    assert hatch_build.fresh(tree)
    later = (tree / "dist" / "viewer.js").stat().st_mtime + 10
    os.utime(tree / "src" / "ui" / "a.ts", (later, later))
    assert not hatch_build.fresh(tree)
    made(tree)
    (tree / "dist" / "viewer.css").unlink()
    assert not hatch_build.fresh(tree)


def test_without_node_the_error_names_the_command(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hatch_build, "own_npm", lambda: None)
    monkeypatch.setattr(hatch_build, "wheel_npm", lambda: None)
    with pytest.raises(RuntimeError, match="npm ci && npm run build"):
        hatch_build.build(tree)


def test_a_failing_npm_is_quoted(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    npm = ["sh", "-c", "echo the cause >&2; exit 3"]
    monkeypatch.setattr(hatch_build, "own_npm", lambda: npm)
    with pytest.raises(RuntimeError, match=r"failed with 3(?s:.*)the cause(?s:.*)npm ci"):
        hatch_build.build(tree)


def test_an_old_node_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, says in (("node", "v16.20.2"), ("npm", "8")):
        (tmp_path / name).write_text(f"#!/bin/sh\necho {says}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    assert hatch_build.own_npm() is None
    (tmp_path / "node").write_text("#!/bin/sh\necho v18.0.0\n")
    assert hatch_build.own_npm() == [str(tmp_path / "npm")]
