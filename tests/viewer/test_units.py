"""The front end's own unit tests and types, run by the same command as all others."""

from __future__ import annotations

import subprocess

import pytest

from byocviz.viewer.hatch_build import own_npm, wheel_npm

from .conftest import VIEWER


@pytest.mark.parametrize("task", ["test", "check"])
def test_npm(built: None, task: str) -> None:
    npm = own_npm() or wheel_npm()
    assert npm is not None
    done = subprocess.run(
        [*npm, "run", task], cwd=VIEWER, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
