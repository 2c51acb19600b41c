"""The machine's Chromium, for whoever drives one."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

VIEWER = Path(__file__).parents[1] / "byocviz" / "viewer"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def chromium() -> str:
    """Path of the machine's Chromium: BYOCVIZ_CHROMIUM, else the first on PATH."""
    wanted = os.environ.get("BYOCVIZ_CHROMIUM")
    for name in [wanted] if wanted else ["chromium", "chromium-browser", "google-chrome"]:
        found = shutil.which(name)
        if found:
            return found
    pytest.fail(
        "No Chromium was found; the viewer's tests drive a real one. Debian and Ubuntu: "
        "apt-get install -y chromium (or name one in BYOCVIZ_CHROMIUM)."
    )
