"""Real Jupyter servers, and the viewer's Chromium."""

from __future__ import annotations

from tests.viewer.conftest import browser, built

__all__ = ["browser", "built"]
