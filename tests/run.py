"""Set up everything that the tests need on a fresh machine, and run all of them.

    python3 tests/run.py                           every test, in two environments
    python3 tests/run.py [arguments for pytest]    the first environment alone
    python3 tests/run.py --relay [arguments]       the second one alone

Two, because the TVM with Relay and the TVM with Relax cannot be in one: .venv-test, made with the
Python that runs this, and .venv-test-relay, made with a Python 3.10 or 3.11 that is looked for.

Chromium and Graphviz, which no package of PyPI brings, come from the system's packages; where that
takes rights that are not there, the command to run is printed and nothing is tested. Where there is
no Python for the second environment, the command fails. A part that is silently left out would look
tested.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAIN = ROOT / ".venv-test"
RELAY = ROOT / ".venv-test-relay"

PROGRAMS = {
    "chromium": ("chromium", "chromium-browser", "google-chrome"),
    "graphviz": ("dot",),
}
"""The system's packages, and the programs of which one must be there."""

RELAY_VERSIONS = ("3.10", "3.11")
"""Of Python: those that TVM 0.19 has wheels for, the one that is tried first before the other."""

RELAY_TESTS = (
    "tests/flow/relay",
    "tests/building/relay",
    "tests/building/test_failures.py",
    "tests/models/test_gluoncv*.py",
    "tests/notebooks/test_relay_notebook.py",
    "tests/explorer/test_relay.py",
    "tests/test_doctor.py",
)
"""What runs in the second environment, of what is there."""

PROBE = "import ensurepip, sys, venv; print('%d.%d' % sys.version_info[:2])"

NO_PYTHON = """
=====================================================================================
THE RELAY TESTS DID NOT RUN: no Python 3.10 or 3.11 that can make an environment is here.
Install one, then again: pyenv install 3.11, or uv python install 3.11, or
sudo apt-get install python3.11-venv
=====================================================================================
"""


def program(environment: Path) -> Path:
    """The Python of an environment."""
    return environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


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


def relay_pythons(environ: Mapping[str, str]) -> Iterator[list[str]]:
    """Commands that may start a Python of `RELAY_VERSIONS`, the likeliest first."""
    yield [sys.executable]
    folders = environ.get("PATH", "").split(os.pathsep)
    for version in RELAY_VERSIONS:
        for folder in folders:
            found = shutil.which(f"python{version}", path=folder)
            if found:
                yield [found]
    home = environ.get("HOME") or environ.get("USERPROFILE") or "."
    versions = Path(environ.get("PYENV_ROOT") or Path(home, ".pyenv"), "versions")
    for version in RELAY_VERSIONS:
        for folder in sorted(versions.glob(f"{version}.*")):
            for name in ("bin/python", "python.exe"):
                if (folder / name).is_file():
                    yield [str(folder / name)]
    launcher = shutil.which("py", path=environ.get("PATH", ""))
    if launcher:
        yield from ([launcher, f"-{version}"] for version in RELAY_VERSIONS)
    uv = shutil.which("uv", path=environ.get("PATH", ""))
    if uv:
        # The second time over, uv fetches one.
        for fetch in (False, True):
            for version in RELAY_VERSIONS:
                if fetch and output([uv, "python", "install", version]) is None:
                    continue
                path = output([uv, "python", "find", "--no-project", version])
                if path:
                    yield [path]


def output(command: Sequence[str]) -> str | None:
    """What a command prints; None where it fails."""
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=600
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def relay_python(environ: Mapping[str, str]) -> list[str] | None:
    """The command of a Python that the second environment can be made with; None: there is none.

    Each is asked: a shim of pyenv may stand for a version that is not there, and a system's Python
    may come without ``venv``.
    """
    for command in relay_pythons(environ):
        if output([*command, "-c", PROBE]) in RELAY_VERSIONS:
            return command
    return None


def install(environment: Path, python: Sequence[str], extra: str) -> None:
    """Make the environment where it is not there, and bring it up to date."""
    if not program(environment).exists():
        subprocess.run([*python, "-m", "venv", str(environment)], check=True)
    command = [str(program(environment)), "-m", "pip", "install", "--quiet", "--editable"]
    subprocess.run([*command, f".[{extra}]"], cwd=ROOT, check=True)


def main_tests(arguments: Sequence[str]) -> int:
    system_packages()
    install(MAIN, [sys.executable], "test")
    return subprocess.run([str(program(MAIN)), "-m", "pytest", *arguments], cwd=ROOT).returncode


def relay_tests(arguments: Sequence[str]) -> int:
    if not program(RELAY).exists():
        python = relay_python(os.environ)
        if python is None:
            print(NO_PYTHON, file=sys.stderr)
            return 1
        install(RELAY, python, "test-relay")
    else:
        install(RELAY, [], "test-relay")
    paths = [str(p.relative_to(ROOT)) for name in RELAY_TESTS for p in sorted(ROOT.glob(name))]
    environ = {**os.environ, "TOPHUB_LOCATION": "NONE"}  # else TVM fetches tuned schedules
    if program(MAIN).exists():
        # What Relay's environment writes is taken up by Relax in this one.
        environ.setdefault("BYOCVIZ_RELAX_PYTHON", str(program(MAIN)))
    command = [str(program(RELAY)), "-m", "pytest", *arguments]
    if all(argument.startswith("-") for argument in arguments):
        command += paths
    return subprocess.run(command, cwd=ROOT, env=environ).returncode


def main(arguments: Sequence[str]) -> int:
    if arguments[:1] == ["--relay"]:
        return relay_tests(arguments[1:])
    first = main_tests(arguments)
    # Who gives arguments wants some tests, of the first environment.
    second = 0 if arguments else relay_tests([])
    return first or second


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
