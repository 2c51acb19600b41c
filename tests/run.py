"""Set up everything that the tests need on a fresh machine, and run all of them.

    python3 tests/run.py [arguments for pytest]

Python packages go into .venv-test beside this folder. Chromium and Graphviz, which no package of
PyPI brings, come from the system's packages; where that takes rights that are not there, the
command to run is printed and nothing is tested: a part that is silently left out would look tested.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / ".venv-test"
PROGRAMS = {
    "chromium": ("chromium", "chromium-browser", "google-chrome"),
    "graphviz": ("dot",),
}
"""The system's packages, and the programs of which one must be there."""


def python() -> Path:
    folder = "Scripts" if os.name == "nt" else "bin"
    return ENVIRONMENT / folder / "python"


def system_packages() -> None:
    missing = [p for p, names in PROGRAMS.items() if not any(map(shutil.which, names))]
    if not missing:
        return
    command = ["apt-get", "install", "--yes", "--no-install-recommends", *missing]
    if not shutil.which("apt-get"):
        sys.exit(f"Install {' and '.join(missing)} with your system's package manager, then again.")
    prefix = [] if os.geteuid() == 0 else ["sudo", "--non-interactive"]
    try:
        subprocess.run([*prefix, "apt-get", "update", "--quiet"], check=True)
        subprocess.run([*prefix, *command], check=True)
    except (OSError, subprocess.CalledProcessError):
        sys.exit(f"Run this, then again:\n  sudo {' '.join(command)}")


def main() -> int:
    system_packages()
    if not python().exists():
        subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENT)], check=True)
    install = [str(python()), "-m", "pip", "install", "--quiet", "--editable", ".[test]"]
    subprocess.run(install, cwd=ROOT, check=True)
    return subprocess.run([str(python()), "-m", "pytest", *sys.argv[1:]], cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
