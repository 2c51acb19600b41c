"""How this very byocviz is installed with more of its extras."""

from __future__ import annotations

import json
import shlex
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname


def requirement(extras: str) -> str:
    """What pip is given, quoted for a shell: ``'byocviz[relax]'``, or the folder that this one was
    installed from, with the extras behind it.

    The folder is that of direct_url.json, which pip writes (packaging.python.org, "Recording the
    Direct URL Origin of installed distributions").
    """
    try:
        origin = json.loads(distribution("byocviz").read_text("direct_url.json") or "{}")
        url = urlsplit(str(origin.get("url", "")))
        folder = Path(url2pathname(url.path)) if url.scheme == "file" else None
        found = folder is not None and (folder / "pyproject.toml").is_file()
    except (PackageNotFoundError, AttributeError, OSError, ValueError):
        found = False
    return shlex.quote(f"{folder if found else 'byocviz'}[{extras}]")


def pip_install(extras: str) -> str:
    """The command that adds extras to this environment."""
    return f"pip install {requirement(extras)}"


def with_relax() -> str:
    """The command for an environment with Relax."""
    return f"python3 -m venv relax && relax/bin/pip install {requirement('relax')}"


def with_relay() -> str:
    """The same for Relay, and GluonCV with it, whose packages are for Python 3.10 and 3.11."""
    return f"python3.11 -m venv relay && relay/bin/pip install {requirement('relay,gluoncv')}"
