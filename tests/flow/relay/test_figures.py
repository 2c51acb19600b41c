"""Figures where GluonCV and MXNet pin an old package graphviz (0.8.4)."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.relay import needs_relay

needs_relay()

import pytest  # noqa: E402

import byocviz  # noqa: E402
from byocviz.errors import ByocvizError, MissingPackage  # noqa: E402
from tests.corpus_relay import CASES  # noqa: E402

pytest.importorskip("graphviz")


@pytest.fixture(scope="module")
def recording() -> byocviz.Recording:
    case = next(case for case in CASES if case.name == "branches")
    return byocviz.record(case.build(), case.backend, progress=False)


@pytest.mark.skipif(not shutil.which("dot"), reason="Graphviz is not installed")
def test_each_step_is_drawn(recording: byocviz.Recording, tmp_path: Path) -> None:
    for step in recording.steps:
        assert "<svg" in recording.to_svg(step)
    assert recording.to_png("merge", dpi=50).startswith(b"\x89PNG")
    assert recording.to_svg("merge", path=tmp_path / "a.svg").read_text().startswith("<?xml")


@pytest.mark.parametrize("mode", [0o755, 0o644])
def test_what_goes_wrong_is_byocviz_s_own_error(
    recording: byocviz.Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingPackage, match="dot is not installed"):
        recording.to_svg("merge")
    broken = tmp_path / "dot"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(mode)
    with pytest.raises(ByocvizError, match="dot failed") as caught:
        recording.to_png("merge")
    assert caught.value.mend
