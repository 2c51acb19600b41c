"""The version, in one place with pyproject.toml where the package is installed."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("byocviz")
except PackageNotFoundError:  # run from a source tree that was not installed
    __version__ = "0+source"
